#pragma once

namespace hdpsim::kernels {

/// Floating-point operations a second of one core: the fastest of many short bursts of independent fused multiply-adds
/// on registers, with the best instruction set. Takes about 0.1 s.
[[nodiscard]] double fma_peak_flops();

/// Bytes read plus bytes written per second by one core that copies more than its caches hold; the fastest of several
/// copies. The lines that the processor loads before it overwrites them are not counted. Takes about 0.2 s.
[[nodiscard]] double copy_bandwidth();

}  // namespace hdpsim::kernels
