#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/plan/plan_time.h"
#include "sim/plan/policy.h"
#include "sim/plan/work_model.h"
#include "sim/trace/batch_source.h"

namespace hdpsim {

/// The room on a device when activations of a micro-batch of more than C tokens leave it. A rank of T > C tokens keeps
/// the activations of at most C - unmovable x (T - C) tokens: logits and buffers of the other tokens have to fit as
/// well.
struct OffloadRoom {
  std::int64_t most_tokens = 0;  ///< Maximum tokens of a rank, whatever leaves the device; at least C.
  double unmovable = 0;          ///< Memory of a token that always stays, in units of the activations of a token.
  std::int64_t rounding = 0;     ///< Maximum additional tokens of a rank because its devices share them evenly.
};

/// Bytes that travel when a rank attends for another one, per token and layer.
struct ServedBytes {
  std::int64_t query = 0;  ///< A query and attention's output.
  std::int64_t key = 0;    ///< A key and a value.
};

/// FLOPs of a forward pass over a sequence of s tokens, as frameworks count them that balance by them: linear x s +
/// square x s^2.
struct CountedFlops {
  std::int64_t linear = 1;
  std::int64_t square = 0;
};

/// The information that every planner gets about the cluster and the model.
struct PlanningContext {
  std::int64_t ranks = 1;           ///< HDP ranks of the pool.
  std::int64_t ranks_per_node = 1;  ///< Consecutive ranks that share a node; at least 1.
  std::int64_t capacity = 0;        ///< C: tokens that one rank holds per micro-batch.
  std::int64_t context = 0;         ///< The longest sequence.
  std::int64_t layers = 1;          ///< Layers of a pass: those on one rank, or of most of a pipeline's chunks.
  std::int64_t stages = 1;          ///< Stages of every rank's pipeline.
  /// Whether micro-batches may continue others (MicroBatch::continues): not under every schedule of a pipeline.
  bool runs_chunks_in_order = true;
  /// Why ranks cannot attend for each other (TokenCut::served). Empty: they can.
  std::string not_served{};
  ServedBytes served_bytes = {};
  CountedFlops counted_flops = {};
  std::int64_t tp = 1;  ///< Devices that compute each layer of a rank together.
  WorkModel work;
  /// What takes the place of `work` where every group may choose how it shares: the same with others. Null if there is
  /// one way. It costs as much as `work` for each way: to be asked by planners that let groups choose, while they are
  /// made. If empty, there is one way.
  std::function<std::shared_ptr<const WorkModel>()> work_in_any_way{};
  std::int64_t expert_ranks = 1;    ///< Ranks that run waves together: see sim/plan/expert_waves.h.
  std::int64_t expert_padding = 0;  ///< Tokens of the micro-batch of a rank that has no other work in a wave.
  /// Tokens whose offloaded activations fit into one rank's share of host memory, all layers counted. Empty: no host
  /// memory.
  std::optional<std::int64_t> host_tokens;
  /// If empty, memory counts activations only, as in ByteScale's eq. 3: C tokens stay, the others may leave.
  std::optional<OffloadRoom> offload_room = {};
  /// Compute speed of every rank in a step, relative to the device of `work`, for planners that know the speeds. If
  /// empty, they take all ranks to be equal.
  std::function<std::vector<double>(std::int64_t step)> rank_speeds{};
  /// Seconds of a step whose passes take `seconds` (by micro-batch) on devices that are not slow, by the order in which
  /// ranks run them and the speeds that planners know. If empty, ranks do not wait for each other in pipelines or in
  /// waves of experts, and plan_time() says it.
  std::function<double(const Plan& plan, std::span<const PassSeconds> seconds)> seconds_in_order{};
  /// Seconds of a step by the plan, as simulated; safe to call from several threads at once. If empty, planners compare
  /// whole plans by `work` (plan_time()).
  std::function<double(const Plan& plan)> simulated_seconds{};
};

/// Sequences that wait for a later step.
struct HeldSequences {
  Batch left;                 ///< Sequences for which no micro-batch had room: the first of the next step.
  std::vector<Batch> queues;  ///< By length, as the policy says.
};

/// What a step trains when these sequences arrive; what waits from then on. Pure.
using HoldingRule = std::function<Batch(const Batch& arrived, HeldSequences& held)>;

/// Makes the plan of one step from its batch, or throws an InputError with the reason why the policy has none for this
/// batch. Pure and deterministic; safe to call from several threads at once.
/// The static mesh and the policies of HDP cost O((n + m) log (n + P)) for n sequences, P ranks and m = sum of group
/// sizes. Other policies do what their authors' code does, which may grow with n P.
class Planner {
 public:
  virtual ~Planner() = default;
  [[nodiscard]] virtual Plan plan(const Batch& batch, std::int64_t step) const = 0;
  /// What a run of `steps` steps trains in place of `data`, if the policy holds sequences back from one step for a
  /// later one; null: each batch as it comes. `data` must outlive the result.
  [[nodiscard]] virtual BatchSourcePtr held_back(const BatchSource& /*data*/, std::int64_t /*steps*/) const {
    return nullptr;
  }
  /// The same for batches that come one by one, as a training run has them; null: each is trained as it comes. `data`
  /// and `steps` are a sample of them, which is not used later. What arrives last is trained by batches of nothing.
  [[nodiscard]] virtual HoldingRule holding(const BatchSource& /*data*/, std::int64_t /*steps*/) const {
    return nullptr;
  }
  /// Whether plan() may refuse a batch or leave more on a rank than it holds. Who runs a long series of steps asks for
  /// all plans beforehand if so.
  [[nodiscard]] virtual bool may_refuse() const { return true; }
};

/// The planner of a policy for a pool and a context. With `groups: uniform` it is that of `static`, with `balance:
/// none` that of hdp-naive with the same offload. If expert groups span several ranks, the plans of any policy are
/// converted to waves (in_expert_waves); `balance: auto` is then pp, whose micro-batches are in waves already.
/// Options that do not fit the pool, and a context that it cannot hold, are reported; the result is then null. `auto`
/// offload on a cluster without host memory is no offload. `token-wise` is MEMO's split between host memory and
/// recomputation (MicroBatch::token_wise), for micro-batches that fit if two layers of activations stay.
[[nodiscard]] std::unique_ptr<Planner> make_planner(const Policy& policy, const PlanningContext& context,
                                                    Diagnostics& diagnostics);

}  // namespace hdpsim
