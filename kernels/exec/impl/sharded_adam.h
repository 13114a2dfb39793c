#pragma once

#include <cstdint>

#include "kernels/exec/executor.h"
#include "kernels/exec/parameters.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::exec {

/// The end of a step (ZeRO-1, Rajbhandari et al. 2020): every rank updates its share of all parameters, of which it alone
/// keeps the master weights and the moments, fp32. The shares are equal; the last may reach beyond the parameters.
class ShardedAdam {
 public:
  ShardedAdam(Backend& backend, Transport& transport, const ParameterLayout& layout, const TrainingOptions& options);

  /// Parameters of a share.
  [[nodiscard]] std::int64_t share() const { return share_; }
  /// Of all shares: what the buffers of parameters and gradients hold.
  [[nodiscard]] std::int64_t padded() const { return share_ * transport_.size(); }

  /// Sums the gradients of all ranks, of this rank's share.
  void reduce(const float* gradients);
  /// Updates this rank's share of the parameters.
  void update(float* parameters);
  /// Makes everybody's shares known to all.
  void gather(float* parameters);

  [[nodiscard]] const float* gradient() const { return static_cast<const float*>(gradient_.get()); }

 private:
  [[nodiscard]] float* own_share(float* parameters) const { return parameters + share_ * transport_.rank(); }

  Backend& backend_;
  Transport& transport_;
  AdamOptions options_;
  std::int64_t share_;
  std::int64_t updates_ = 0;
  DeviceMemory gradient_, master_, first_moment_, second_moment_;
};

}  // namespace hdpsim::kernels::exec
