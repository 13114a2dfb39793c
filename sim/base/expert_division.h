#pragma once

#include <cstdint>

namespace hdpsim {

/// How devices divide the experts of a layer among each other. Meshes, models and plans agree on it.
struct ExpertDivision {
  /// Expert parallelism: equal parts into which the experts of a layer are divided, and tokens travel to them. 1: there
  /// are no groups; the tensor-parallel devices cut every expert as they cut a dense MLP.
  std::int64_t ep = 1;
  /// Devices that cut each expert of a part among each other (expert tensor parallelism), where ep is above 1. They are
  /// neighbours in the order of ranks (Megatron-Core, parallel_state.py: tp-cp-ep-dp-pp, with etp in the place of tp).
  std::int64_t etp = 1;

  ExpertDivision(std::int64_t parts = 1, std::int64_t cut_by = 1) : ep(parts), etp(cut_by) {}  // NOLINT: ep alone

  [[nodiscard]] bool has_groups() const { return ep > 1; }
  /// Devices of an expert group, which together have all experts of a layer once; 1 without groups.
  [[nodiscard]] std::int64_t devices() const { return has_groups() ? ep * etp : 1; }
  /// Devices that cut each expert.
  [[nodiscard]] std::int64_t cut(std::int64_t tp) const { return has_groups() ? etp : tp; }
};

}  // namespace hdpsim
