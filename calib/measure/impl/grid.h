#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "calib/measure/device.h"
#include "calib/measure/subject.h"
#include "sim/model/transformer.h"

namespace hdpsim::calib {

/// A subject that a plan may take. Low levels are taken first.
struct Candidate {
  /// Accepts any kind of Subject.
  template <class Kind>
  Candidate(Kind kind, int in_level) : subject(std::move(kind)), level(in_level) {}

  Subject subject;
  int level;
};

/// Square and rectangular blocks (ring steps), causal and full, both head dimensions, forward and backward; packs of
/// documents whose lengths follow lognormal distributions of several means, causal and as ring steps.
[[nodiscard]] std::vector<Candidate> attention_grid(const std::optional<Transformer>& model, const DeviceSpeed& speed,
                                                    std::uint64_t seed);
/// The products of a model (forward and backward, several token counts and tensor-parallel degrees), and a grid.
[[nodiscard]] std::vector<Candidate> gemm_grid(const std::optional<Transformer>& model);
[[nodiscard]] std::vector<Candidate> memory_bound_grid(const DeviceSpeed& speed, kernels::Element element);
[[nodiscard]] std::vector<Candidate> copy_grid(const std::vector<CopyKind>& kinds);
[[nodiscard]] std::vector<Candidate> message_grid(const std::vector<std::int64_t>& rank_counts);

}  // namespace hdpsim::calib
