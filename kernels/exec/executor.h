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
#include "sim/model/transformer.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// As in kernels/spec/layer.h.
struct AdamOptions {
  float rate = 3e-4F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float decay = 0;
};

struct TrainingOptions {
  std::uint64_t seed = 1;  ///< Of the initial parameters.
  AdamOptions adam;
  // An HDP rank is tp x pp devices.
  int tp = 1;
  int pp = 1;                     ///< Stages of its pipeline ...
  PipelineOptions pipeline = {};  ///< ... and the schedule of its programs.
};

/// One optimizer step as all ranks know it.
struct StepOutcome {
  double loss = 0;           ///< Mean over all tokens of the batch that have a next one, natural logarithm.
  std::int64_t targets = 0;  ///< How many these are.
  bool stopped = false;      ///< Some rank was asked to stop: all are told the same.
  /// Measured, with every instruction of every rank. Known to rank 0 alone, as what follows.
  std::optional<Timeline> timeline;
  /// By worker, as the timeline: what it booked, waits for exchanges excepted, less the time in which its thread had no
  /// core. Ranks that share cores compute for longer than this.
  std::vector<Breakdown> processor;
};

/// What a device of a job computes with and reaches the others by. All of it outlives an executor.
struct JobDevice {
  Backend& backend;
  Transport& transport;  ///< Between memory of the backends.
  Transport& host;       ///< Between memory of the hosts, of the same ranks. On CPUs the two may be one.
  /// Between the two kinds of memory; none on a CPU, where a thread copies.
  HostCopies* copies = nullptr;
};

/// How programs for an executor on such a backend are lowered: its element sizes, and attention that adds up by itself.
[[nodiscard]] LoweringOptions lowering_for(Element element, const Transformer& model, const Mesh& mesh,
                                           Recompute recompute = {}, const PipelineOptions& pipeline = {});
[[nodiscard]] inline LoweringOptions lowering_for(const Backend& backend, const Transformer& model, const Mesh& mesh,
                                                  Recompute recompute = {}, const PipelineOptions& pipeline = {}) {
  return lowering_for(backend.element(), model, mesh, recompute, pipeline);
}

/// Where the program of a step comes from. It may block until there is one, which stays as long as the step lasts.
using ProgramSource = std::function<const Program&()>;

/// Trains a transformer for real: one device of several, each with its own executor, which all do the same. Device t of
/// stage s of HDP rank r is rank (r pp + s) tp + t of the transport. Runs the very programs that the simulator prices
/// (sim/program), pass by pass in the order of the pipeline's schedule, with the ZeRO-1 step end of StepEnd over the
/// devices that hold the same shard of the same stage, before which those of a worker add up the gradients of their
/// norms, and two stages those of the parameters that both have: a tied table, or a second copy of the model. Tensors are elements of the backend, fp32
/// or bf16; master weights, moments, gradients of parameters and what is summed over ranks or ring steps are fp32.
///
/// Wherever a sequence is computed, the loss is a mean over the tokens of the batch and gradients are sums over them,
/// so that all plans of a batch give the same gradients but for rounding, and every tp and pp as well. Sums are added
/// in one order: the same plan gives the same bits, unless the backend itself adds in none (kernels/cuda/layer.h).
///
/// On a backend that runs ahead a step waits for the device when the loss is needed, and at its end. Times are then
/// those at which the device got there.
///
/// Times are wall-clock times since all ranks left the barrier before the step; between hosts they are known no better
/// than the ranks left it together. An exchange ends when the rank finds that it has, which is at most when something
/// needs it. The wait for one is group_wait while the peer had not posted its side, and cp_comm from then on; the wait
/// for a copy to or from the host is offload_stall, that for another stage bubble. The timeline is that of the first
/// device of each worker.
///
/// Memory: parameters (elements) and gradients (fp32) of the device in full, 16 bytes a parameter of its share,
/// activations of as many micro-batches as have gone forward and not yet backward, as their programs keep them
/// (kernels/exec/impl/activations.h).
class Executor {
 public:
  /// UnsupportedInput for a model, a pipeline or a backend that cannot be executed, or ranks that are no multiple of
  /// tp x pp. Pipelines need a backend in the host's memory.
  Executor(const JobDevice& device, const Transformer& model, const TrainingOptions& options = {});
  /// On a CPU.
  Executor(Backend& backend, Transport& transport, const Transformer& model, const TrainingOptions& options = {})
      : Executor({backend, transport, transport}, model, options) {}
  ~Executor();

  /// Runs one step. UnsupportedInput, on every rank alike, if the plan is one for another number of ranks, another
  /// model or another mesh, or if the model's vocabulary is smaller than the tokens'. DeviceError if a rank fails or
  /// stays away for the time limit of the transport, or if the loss is not a number: the parameters are then those
  /// before the step. `stop`: whether this rank was asked to; the step is finished in any case.
  [[nodiscard]] StepOutcome run_step(const Program& program, const TokenSource& tokens, bool stop = false);
  /// The same, with a program that is asked for when the step begins: what the rank waits for it is data_wait.
  [[nodiscard]] StepOutcome run_step(const ProgramSource& source, const TokenSource& tokens, bool stop = false);

  /// Writes a checkpoint (kernels/exec/checkpoint.h), which rank 0 does for all; `next_step` is kept for load(). A
  /// collective. DeviceError if it cannot be written; the one that stood there stays.
  void save(const std::filesystem::path& path, std::int64_t next_step);
  /// Goes on from a checkpoint, whose next step it returns: to the bit, as if there had been no break; whatever the
  /// number of ranks that wrote it. A collective. UnsupportedInput, on every rank alike, if it is damaged or of another
  /// model.
  [[nodiscard]] std::int64_t load(const std::filesystem::path& path);

  /// Of the whole model.
  [[nodiscard]] std::int64_t parameter_count() const;
  /// How many micro-batches, or chunks of them, had activations on this device at once, at most.
  [[nodiscard]] std::size_t most_in_flight() const;
  /// The sum over ranks of the last step's gradients. A collective: all ranks call it, all get all of it.
  [[nodiscard]] std::vector<float> gradients();
  /// All parameters. A collective likewise.
  [[nodiscard]] std::vector<float> parameters();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hdpsim::kernels::exec
