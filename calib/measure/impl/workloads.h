#pragma once

#include <cstdint>
#include <functional>

#include "calib/measure/subject.h"
#include "kernels/spec/backend.h"

namespace hdpsim::calib {

// Functions that queue one launch of a subject on a backend and own its tensors, with random content from `seed`.
[[nodiscard]] std::function<void()> attention_workload(kernels::Backend& backend, const Attention& op,
                                                       std::uint64_t seed);
[[nodiscard]] std::function<void()> gemm_workload(kernels::Backend& backend, const Gemm& op, std::uint64_t seed);
[[nodiscard]] std::function<void()> memory_bound_workload(kernels::Backend& backend, const MemoryBoundSubject& op,
                                                          std::uint64_t seed);

/// The bytes that memory_bound_workload() really moves: those of the subject, rounded to whole rows of its kernel.
[[nodiscard]] std::int64_t moved_bytes(const MemoryBoundSubject& op, kernels::Element element);

}  // namespace hdpsim::calib
