#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/exec/checkpoint.h"
#include "kernels/exec/executor.h"
#include "kernels/exec/parameter_tensors.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::exec {

/// The end of a step (ZeRO-1, Rajbhandari et al. 2020): every rank of the data-parallel group updates its share of all
/// parameters, and only it keeps their master weights and moments, in fp32; parameters are elements of the backend. The
/// shares are equal; the last one may reach beyond the parameters.
class ShardedAdam {
 public:
  ShardedAdam(Backend& backend, Transport& transport, const ParameterLayout& layout, const TrainingOptions& options);

  /// Parameters of a share, in a data-parallel group of devices with `layout`, rounded up to a multiple at which
  /// kernels can begin a share.
  [[nodiscard]] static std::int64_t share_of(const ParameterLayout& layout, const Transport& pool) {
    constexpr std::int64_t unit = 8;
    const std::int64_t units = (layout.count() + unit - 1) / unit;
    return (units + pool.size() - 1) / pool.size() * unit;
  }
  [[nodiscard]] std::int64_t share() const { return share_; }
  /// Size of all shares together: the size of the buffers of parameters and gradients.
  [[nodiscard]] std::int64_t padded() const { return share_ * transport_.size(); }

  /// Reduce-scatter: sums this rank's share of the gradients over all ranks.
  void reduce(const float* gradients);
  /// Updates this rank's share of the parameters.
  void update(void* parameters);
  /// All-gather: sends every rank's share to all.
  void gather(void* parameters);

  [[nodiscard]] std::int64_t updates() const { return updates_; }
  /// The state tensors, [share()] each, in the order of checkpoint_tensors.
  [[nodiscard]] std::array<float*, 3> state() const;
  /// Loads its share of the state from a checkpoint, and restores all parameters from it.
  void load(CheckpointReader& reader, void* parameters);

  [[nodiscard]] const float* gradient() const { return static_cast<const float*>(gradient_.get()); }

  /// This rank's share of the parameters.
  [[nodiscard]] void* own_share(void* parameters) const {
    return static_cast<std::byte*>(parameters) + static_cast<std::size_t>(transport_.rank()) * share_bytes();
  }

 private:
  /// Bytes of a share of the parameters.
  [[nodiscard]] std::size_t share_bytes() const {
    return static_cast<std::size_t>(share_) * element_bytes(backend_.element());
  }

  Backend& backend_;
  Transport& transport_;
  AdamOptions options_;
  const ParameterLayout& layout_;
  std::int64_t share_;
  std::int64_t updates_ = 0;
  DeviceMemory gradient_, master_, first_moment_, second_moment_;
};

}  // namespace hdpsim::kernels::exec
