#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "sim/base/units.h"
#include "sim/model/operation.h"
#include "sim/model/work.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The evidence of a time, from the strongest to the weakest.
enum class Evidence { measured, interpolated, extrapolated, formula };
inline constexpr std::size_t evidence_kinds = 4;
[[nodiscard]] std::string_view evidence_name(Evidence evidence);

/// The time of an operation, and its evidence.
struct Estimate {
  Duration time;
  Evidence evidence = Evidence::formula;
};

class Coverage;

/// The time of one operation on one device of nominal speed. A formula, a table or a fit answers; the engine never
/// learns which. Pure: same operation, same answer; no clock, no random number, no I/O. Launch overhead is included.
class CostModel {
 public:
  virtual ~CostModel() = default;
  [[nodiscard]] virtual Estimate gemm(const Gemm& op) const = 0;
  [[nodiscard]] virtual Estimate attention(const Attention& op) const = 0;
  [[nodiscard]] virtual Estimate memory_bound(const MemoryBound& op) const = 0;
  /// The time of all kernels of a part one after another, with the weakest evidence among them: a sum is known no
  /// better than that.
  [[nodiscard]] Estimate linear(const LinearPart& part) const;
  /// Kernels that a host has to issue for it. No default: who wraps a model must ask it.
  [[nodiscard]] virtual std::int64_t kernels(const Attention& op) const = 0;
  /// Somebody uses answers again that were given when these operations were asked for: who records what is asked for
  /// counts them.
  virtual void asked_again(const Coverage& operations) const;
};

/// Kernels of FlashAttention that a host has to issue: one forward; backward the rows' products of output and gradient,
/// the gradients, and those of the queries from their fp32 sums (flash_bwd_launch_template.h).
[[nodiscard]] std::int64_t flash_attention_kernels(const Attention& op);

/// The cost model of a device: the fits of its profile where it has them, tables where it has samples, the roofline of
/// its data sheet where it has neither. The parts of the profile that it needs are copied.
[[nodiscard]] std::unique_ptr<CostModel> make_cost_model(const DeviceProfile& profile);

}  // namespace hdpsim
