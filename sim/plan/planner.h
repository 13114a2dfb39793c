#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/plan/policy.h"
#include "sim/plan/work_model.h"
#include "sim/trace/sequence.h"

namespace hdpsim {

/// What a device has room for when activations of a micro-batch of more than C tokens leave it. A rank of T > C tokens
/// keeps activations of C - unmovable x (T - C) of them at most: logits and buffers of the others have to fit as well.
struct OffloadRoom {
  std::int64_t most_tokens = 0;  ///< Of a rank, whatever leaves the device; at least C.
  double unmovable = 0;          ///< Memory of a token that stays whatever leaves, in tokens' worth of activations.
  std::int64_t rounding = 0;     ///< Tokens that a rank has more at most as its devices share them evenly.
};

/// What every planner is told about the cluster and the model.
struct PlanningContext {
  std::int64_t ranks = 1;           ///< HDP ranks of the pool.
  std::int64_t ranks_per_node = 1;  ///< Consecutive ranks that share a node; at least 1.
  std::int64_t capacity = 0;        ///< C: tokens that one rank holds per micro-batch.
  std::int64_t context = 0;         ///< The longest sequence.
  std::int64_t layers = 1;          ///< Of a pass: those on one rank, or the fewest of a pipeline's chunks.
  std::int64_t stages = 1;          ///< Of every rank's pipeline.
  WorkModel work;
  std::int64_t expert_ranks = 1;    ///< Ranks that go through waves together: see sim/plan/expert_waves.h.
  std::int64_t expert_padding = 0;  ///< Tokens of a micro-batch on a rank that has nothing to run in a wave.
  /// Tokens whose offloaded activations fit one rank's share of host memory, all layers counted; nothing: no host
  /// memory.
  std::optional<std::int64_t> host_tokens;
  /// If empty, memory counts in activations alone, as in ByteScale's eq. 3: C tokens stay, the others may leave.
  std::optional<OffloadRoom> offload_room = {};
  /// Compute speed of every rank in a step, relative to the device that `work` is of, for planners that know of it.
  /// Nothing: all ranks are alike to them.
  std::function<std::vector<double>(std::int64_t step)> rank_speeds{};
};

/// Makes the plan of one step from its batch. Pure and deterministic; safe to call from several threads at once.
/// Cost O((n + m) log (n + P)) for n sequences, P ranks and m = sum of group sizes.
class Planner {
 public:
  virtual ~Planner() = default;
  [[nodiscard]] virtual Plan plan(const Batch& batch, std::int64_t step) const = 0;
};

/// The planner of a policy for a pool and a context. `groups: uniform` makes it that of `static`, `balance: none` that of
/// hdp-naive with the same offload. With expert groups over several ranks the policy's plan is brought into their waves
/// (in_expert_waves), whichever it is; `balance: auto` is then pp, whose micro-batches stand in waves already.
/// Options that do not fit the pool and a context that it cannot hold are reported; the result is then null. `auto`
/// offload on a cluster without host memory is none. `token-wise` is MEMO's split between host memory and recomputation
/// (MicroBatch::token_wise), for micro-batches that two layers of activations make room for.
[[nodiscard]] std::unique_ptr<Planner> make_planner(const Policy& policy, const PlanningContext& context,
                                                    Diagnostics& diagnostics);

}  // namespace hdpsim
