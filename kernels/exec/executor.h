#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/exec/tokens.h"
#include "kernels/spec/backend.h"
#include "kernels/spec/host_copies.h"
#include "kernels/transport/transport.h"
#include "sim/engine/timeline.h"
#include "sim/model/parameters.h"
#include "sim/model/transformer.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// The options of Adam in kernels/spec/layer.h.
struct AdamOptions {
  float rate = 3e-4F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float decay = 0;
};

struct TrainingOptions {
  std::uint64_t seed = 1;  ///< Seed of the initial parameters.
  AdamOptions adam;
  // An HDP rank is tp x pp devices.
  int tp = 1;
  int pp = 1;                     ///< Stages of its pipeline ...
  PipelineOptions pipeline = {};  ///< ... and the schedule of its programs.
};

/// The outcome of one optimizer step, the same on all ranks.
struct StepOutcome {
  double loss = 0;           ///< Mean over all tokens of the batch that have a next one, natural logarithm.
  std::int64_t targets = 0;  ///< Number of these tokens.
  bool stopped = false;      ///< Some rank was asked to stop; all ranks see the same value.
  /// The measured timeline, with every instruction of every rank. Only rank 0 has it, and the following.
  std::optional<Timeline> timeline;
  /// By worker, as in the timeline: its booked time except waits for send/recv, without the time in which its thread
  /// had no core. Ranks that share cores compute for longer than this.
  std::vector<Breakdown> processor;
};

/// The backend and the transports of one device of a job. All of them must outlive an executor.
struct JobDevice {
  Backend& backend;
  Transport& transport;  ///< Between the memories of the backends.
  Transport& host;       ///< Between the memories of the hosts, for the same ranks. On CPUs both may be one.
  /// Copies between both kinds of memory; null on a CPU, where a thread copies.
  HostCopies* copies = nullptr;
};

/// The lowering options for programs of an executor on such a backend: its element sizes, and attention that
/// accumulates its result itself. Of the recipe `wanted` they have what is computed again and how the ranks of a group
/// share keys (recompute, key_exchange, a2a_ranks); all else is what the executor does, which passes states on in
/// layers of linear mixing.
[[nodiscard]] LoweringOptions lowering_for(Element element, const Transformer& model, const Mesh& mesh,
                                           const Recipe& wanted = {}, const PipelineOptions& pipeline = {});
[[nodiscard]] inline LoweringOptions lowering_for(const Backend& backend, const Transformer& model, const Mesh& mesh,
                                                  const Recipe& wanted = {}, const PipelineOptions& pipeline = {}) {
  return lowering_for(backend.element(), model, mesh, wanted, pipeline);
}

/// Provides the program of a step. It may block until there is one, which must live as long as the step.
using ProgramSource = std::function<const Program&()>;

/// Trains a transformer for real. Every device has its own executor, and all do the same. Device t of stage s of HDP
/// rank r is rank (r pp + s) tp + t of the transport. It runs the very programs that the simulator prices
/// (sim/program), pass by pass in the order of the pipeline's schedule, with the ZeRO-1 step end of StepEnd over the
/// devices that hold the same shard of the same stage, before which those of a worker add up the gradients of their
/// norms, and two stages those of the parameters that both have: a tied table, or a second copy of the model. Tensors
/// are elements of the backend, fp32 or bf16; master weights, moments, gradients of parameters and what is summed over
/// ranks or ring steps are fp32.
///
/// Wherever a sequence is computed, the loss is a mean over the tokens of the batch and gradients are sums over them,
/// so that all plans of a batch give the same gradients except for rounding, under every tp and pp. Sums have a fixed
/// order: the same plan gives the same bits, unless the backend itself adds in no fixed order
/// (kernels/cuda/layer_launches.h).
///
/// On a backend that runs ahead a step waits for the device when the loss is needed, and at its end. Times are then
/// those at which the device got there.
///
/// Times are wall-clock times since all ranks left the barrier before the step; between hosts they are only as exact as
/// the barrier. A send/recv ends when the rank notices its end, which is at the latest when something needs it. The
/// wait for one is group_wait until the peer has posted its side, and cp_comm from then on; the wait for a copy to or
/// from the host is offload_stall, the wait for another stage bubble. The timeline is that of the first device of each
/// worker.
///
/// Memory: parameters (elements) and gradients (fp32) of the device in full, 16 bytes per parameter of its share, and
/// activations of the micro-batches that have run forward and not yet backward, as their programs keep them
/// (kernels/exec/impl/activations.h).
class Executor {
 public:
  /// UnsupportedInput for a model, a pipeline or a backend that cannot be executed, or a number of ranks that is not a
  /// multiple of tp x pp. Pipelines need a backend in the host's memory.
  Executor(const JobDevice& device, const Transformer& model, const TrainingOptions& options = {});
  /// An executor on a CPU.
  Executor(Backend& backend, Transport& transport, const Transformer& model, const TrainingOptions& options = {})
      : Executor({backend, transport, transport}, model, options) {}
  ~Executor();

  /// Runs one step. UnsupportedInput, on every rank alike, if the plan is for another number of ranks, another model or
  /// another mesh, or if the model's vocabulary is smaller than the tokens'. DeviceError if a rank fails or is silent
  /// for the time limit of the transport, or if the loss is not a number: the parameters are then those before the
  /// step. `stop` says whether this rank was asked to stop; the step is finished in any case.
  [[nodiscard]] StepOutcome run_step(const Program& program, const TokenSource& tokens, bool stop = false);
  /// The same, with a program that is requested when the step begins: the rank's wait for it is data_wait.
  [[nodiscard]] StepOutcome run_step(const ProgramSource& source, const TokenSource& tokens, bool stop = false);

  /// Writes a checkpoint (kernels/exec/checkpoint.h), which rank 0 does for all; `next_step` is kept for load(). A
  /// collective. DeviceError if it cannot be written; the earlier file stays.
  void save(const std::filesystem::path& path, std::int64_t next_step);
  /// Continues from a checkpoint and returns its next step: bit-identical to a run without a break, whatever the number
  /// of ranks that wrote it. A collective. UnsupportedInput, on every rank alike, if it is damaged or of another model.
  [[nodiscard]] std::int64_t load(const std::filesystem::path& path);

  /// Parameters of the whole model.
  [[nodiscard]] std::int64_t parameter_count() const;
  /// The largest number of micro-batches, or chunks of them, that had activations on this device at once.
  [[nodiscard]] std::size_t most_in_flight() const;
  /// The sum over ranks of the last step's gradients, returned on all ranks. A collective: all ranks call it.
  [[nodiscard]] std::vector<float> gradients();
  /// All parameters. Also a collective.
  [[nodiscard]] std::vector<float> parameters();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hdpsim::kernels::exec
