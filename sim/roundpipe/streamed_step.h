#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/analysis/memory_use.h"
#include "sim/cluster/cluster.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/model/memory.h"
#include "sim/plan/plan.h"
#include "sim/profile/device_profile.h"
#include "sim/program/program.h"
#include "sim/program/streamed_schedule.h"
#include "sim/roundpipe/round_robin.h"
#include "sim/roundpipe/stage_cut.h"

namespace hdpsim {

/// What the micro-batches of a plan take on one device.
struct StreamedTimes {
  /// Of the mean micro-batch: the layers of the model, with the embedding in front and the head behind them.
  std::vector<StreamedLayer> layers;
  std::vector<double> micro_batches;  ///< Seconds of each in a layer.
};
/// By the planners' work model of models of one layer and of two. What these have in common is the head's.
[[nodiscard]] StreamedTimes streamed_times(const LoweringOptions& job, const Plan& plan, const Machine& machine);
/// The same without times: in their place a layer's bytes forward and three times as many backward, as RoundPipe cuts
/// before it has timed layers.
[[nodiscard]] std::vector<StreamedLayer> untimed_layers(const LoweringOptions& job);

/// The work of a step of `plan` for round_robin_step(): the stages of `cut` with their copies.
///
/// Forward, every layer's output is kept on the host; backward, a stage reads its input again and computes all of its
/// layers from there.
[[nodiscard]] RoundRobinJob round_robin_job(const LoweringOptions& job, const Plan& plan, const StageCut& cut,
                                            const std::vector<StreamedLayer>& layers);

/// Copies of the devices of a cluster by the rates of a profile; without any, those of the cluster's PCIe.
[[nodiscard]] StreamLinks stream_links(const ClusterSpec& cluster, const DeviceProfile& profile, const Machine& machine);

/// Simulates a step. An InputError if the plan has anything but whole micro-batches of one rank.
[[nodiscard]] Timeline streamed_step(const Program& program, const Machine& machine, const ClusterSpec& cluster,
                                     const DeviceProfile& profile);

/// What no cut of a step's work over devices of these speeds takes less than, from when they computed.
[[nodiscard]] Duration streamed_bound(const Timeline& timeline, const std::vector<double>& speeds);

/// The memory of a device with micro-batches of `tokens` tokens of each rank: of the untimed cut, because that is the
/// first one, the weights and gradients of two stages that follow each other on a device, and the activations of the
/// stage that needs most, all of whose layers are computed again before their backward pass. `pairs`: see
/// MemoryLoad::pairs.
[[nodiscard]] MemoryParts streamed_memory(const LoweringOptions& job, std::int64_t tokens, Bytes device, double pairs);
/// A device's share of what the host has: parameters, gradients and optimizer states, and what all layers keep of the
/// `tokens` of a step. Page-locked pools may take more.
[[nodiscard]] Bytes streamed_host_memory(const LoweringOptions& job, std::int64_t tokens);
/// Both for a plan.
[[nodiscard]] MemoryUse streamed_use(const LoweringOptions& job, const Plan& plan, Bytes device);
/// The same through a step of the only rank: that of the fullest moment all the time.
[[nodiscard]] RankMemory constant_memory(const MemoryUse& use, Duration step);

/// Whether a device holds micro-batches of so many tokens, with the largest gaps that allocators leave.
[[nodiscard]] bool holds_streamed(const LoweringOptions& job, std::int64_t tokens, Bytes device);

}  // namespace hdpsim
