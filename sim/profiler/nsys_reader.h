#pragma once

#include <filesystem>

#include "sim/profiler/kineto_reader.h"

namespace hdpsim {

/// Reads what `nsys stats --report cuda_gpu_trace --format csv` of Nsight Systems prints, of one device, line by line:
/// kernels, copies and fills with their times, as a trace of PyTorch's profiler has them. It has neither shapes, nor
/// launches, nor what collectives move. Lines before the head are skipped. InputError with file, line and column: no
/// head, or another report's; rows with too few fields or with fields that are no numbers (the first 20 of these); rows
/// of a second device. MachineError if the file cannot be read.
[[nodiscard]] ProfilerHeader read_nsys(
    const std::filesystem::path& path, const TakeEvent& take, const TellShare& tell = [](double) {});

}  // namespace hdpsim
