#pragma once

#include <string>

#include "sim/study/point.h"
#include "sim/trust/run_kind.h"

namespace hdpsim {

/// The kind of the runs of a point, from what its study says, by which published runs they are told how sure they are.
/// `stack` is one of stack_names().
[[nodiscard]] RunKind kind_of_run(const Value& study, const PointSpec& point, std::string stack);

/// Seconds that a device at its peak would take for one layer of a full micro-batch, forward and backward.
[[nodiscard]] double layer_seconds_at_peak(const PointSpec& point);

/// Layers shorter than this at the peak are taken to be host-bound, unless kernels are launched as graphs. Hosts take
/// 2.2 ms (DGX H100) to 4.3 ms (DGX A100) to issue the kernels of a dense layer, forward and backward (step times of
/// the functional tests of NVIDIA/Megatron-LM core_v0.7.0, tests/functional_tests/test_results, of a layer so small
/// that they are the host's alone), and kernels reach half of the peak.
inline constexpr double host_bound_layer_s = 2e-3;

}  // namespace hdpsim
