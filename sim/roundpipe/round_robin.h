#pragma once

#include <cstdint>
#include <vector>

namespace hdpsim {

/// A stage of a round, for the mean micro-batch: what a GPU computes and copies while it has it.
struct StreamedStage {
  double seconds = 0;         ///< Of a micro-batch.
  double weight_bytes = 0;    ///< From the host, once a round.
  double input_bytes = 0;     ///< From the host, for each micro-batch.
  double output_bytes = 0;    ///< To the host, for each micro-batch.
  double gradient_bytes = 0;  ///< To the host, once a round, behind the last micro-batch.
  double update_seconds = 0;  ///< Of the host's optimizer, for what these gradients update.
  std::int64_t first = 0;     ///< Its layers: first ...
  std::int64_t layers = 0;    ///< ... to first + layers - 1.
};

/// A micro-batch relative to the mean one.
struct StreamedMicroBatch {
  double time = 1;
  double bytes = 1;
};

/// Copies between devices and one host. Rates in B/s; 0: endless.
struct StreamLinks {
  double up = 0;    ///< From the host to a device that copies alone, ...
  double down = 0;  ///< ... and back.
  /// What a byte to the host takes of a device's rate from the host while both run, in bytes; 0: they do not meet.
  double down_meets_up = 0;
  double switch_rate = 0;            ///< Of a PCIe uplink in each direction, which ...
  std::int64_t gpus_per_switch = 1;  ///< ... so many devices share.
};

/// When the host's optimizer updates the parameters.
enum class HostOptimizer : std::uint8_t {
  at_end,  ///< When all gradients of a step are there; the next step begins behind it.
  /// While the next step runs, whose weights are those of one step before: the pipeline never drains.
  one_step_behind,
};

/// Steps of a pipeline whose stages go round the GPUs.
struct RoundRobinJob {
  std::vector<StreamedStage> stages;  ///< Of a round, in the order in which they run.
  std::vector<StreamedMicroBatch> micro_batches;
  std::vector<double> speeds;  ///< By GPU, relative to that of the times; one for each.
  StreamLinks links;
  HostOptimizer optimizer = HostOptimizer::at_end;
};

/// The time of a GPU in a step, by what it does or waits for. Seconds.
struct StreamedTime {
  double compute = 0;
  double copies = 0;     ///< For weights or for the input of its next micro-batch, which has been computed.
  double pipeline = 0;   ///< For another GPU that computes this input, or for the end of the step.
  double optimizer = 0;  ///< For the host's update.
  [[nodiscard]] double total() const { return compute + copies + pipeline + optimizer; }
};

/// When a stage of a round computed a micro-batch. Seconds since the begin of the step.
struct StreamedPass {
  double begin = 0;
  double end = 0;
};

struct RoundRobinStep {
  double seconds = 0;              ///< Of a step among others like it.
  std::vector<StreamedTime> gpus;  ///< Each totals `seconds`.
  /// Of a first step, which no other precedes: by stage x micro-batches + micro-batch.
  std::vector<StreamedPass> passes;
  std::uint64_t events = 0;
};

/// Simulates RoundPipe (its section 3): stage i of the stages of all steps runs on GPU i mod N, all micro-batches of
/// the step one after another, then the GPU takes stage i + N.
///
/// * The weights of a stage are copied from the host while the GPU computes its former one, into the memory of the one
///   before that, whose gradients have left it.
/// * A micro-batch begins when the GPU is free, its weights are there, and its input, which the former stage's GPU has
///   copied to the host, has been copied from there; that of the next micro-batch is copied meanwhile. Outputs leave
///   while the next micro-batch is computed.
/// * A GPU copies inputs, weights, outputs and gradients at the same time, one of each. Copies share links max-min
///   fairly (FairShare), but inputs and outputs go before weights and gradients, which RoundPipe cuts to fill the gaps
///   between them.
/// * One thread of the host updates parameters. With HostOptimizer::one_step_behind, a stage of step t needs the
///   updates of step t - 2, and the result is the mean of as many steps as bring stages back to the same GPUs.
///
/// The bubble without copies, of equal times t and S stages that N divides: M S t + N (N - 1) t of all GPUs together.
/// Requires stages, micro-batches and GPUs (checked). O(copies of all steps x GPUs).
[[nodiscard]] RoundRobinStep round_robin_step(const RoundRobinJob& job);

}  // namespace hdpsim
