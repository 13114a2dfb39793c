#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/cost_model.h"

namespace hdpsim {

/// The least and the greatest of some whole numbers.
struct Extent {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = 0;
  void add(std::int64_t number);
  void add(const Extent& other);
  friend bool operator==(const Extent&, const Extent&) = default;
};

/// The operations that were asked of a profile, and how many of them lie beyond what was measured: extrapolated, or
/// from the data sheet. Sums and extents only, so that the order in which parts are added does not matter.
class Coverage {
 public:
  void add(const Gemm& op, Evidence evidence);
  void add(const Attention& op, Evidence evidence);
  void add(const MemoryBound& op, Evidence evidence);
  void add(const Coverage& other);

  /// A line for every kind of operation that partly lies beyond the profile, with counts, the sizes asked for and the
  /// sizes measured. At most one for each direction and head dimension, and one each for products and other kernels.
  [[nodiscard]] std::vector<std::string> warnings(const DeviceProfile& profile) const;

  /// The coverage as numbers, for another process.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;
  /// The coverage from numbers(); empty if the numbers are invalid.
  [[nodiscard]] static std::optional<Coverage> of_numbers(std::span<const std::int64_t> numbers);

  friend bool operator==(const Coverage&, const Coverage&) = default;

 private:
  struct Asked {
    std::int64_t operations = 0;
    std::int64_t beyond = 0;
    bool count(Evidence evidence);
    void add(const Asked& other);
    friend bool operator==(const Asked&, const Asked&) = default;
  };
  struct AttentionAsked : Asked {
    Extent sides;  ///< Sides of the blocks in launches beyond the profile.
    friend bool operator==(const AttentionAsked&, const AttentionAsked&) = default;
  };
  struct GemmAsked : Asked {
    Extent m, n, k;
    friend bool operator==(const GemmAsked&, const GemmAsked&) = default;
  };
  struct MemoryBoundAsked : Asked {
    Extent bytes;
    friend bool operator==(const MemoryBoundAsked&, const MemoryBoundAsked&) = default;
  };
  using AttentionKind = std::pair<Direction, std::int64_t>;  // and head dimension
  template <class Self, class Visit>
  static void visit_kernels(Self& self, const Visit& visit);
  template <class Self, class Visit>
  static void visit_attention(Self& asked, const Visit& visit);
  [[nodiscard]] static std::string warning(const AttentionKind& kind, const AttentionAsked& asked,
                                           const DeviceProfile& profile);
  [[nodiscard]] static std::string warning(const GemmAsked& asked, const DeviceProfile& profile);
  [[nodiscard]] static std::string warning(const MemoryBoundAsked& asked, const DeviceProfile& profile);

  std::map<AttentionKind, AttentionAsked> attention_;
  GemmAsked gemm_;
  MemoryBoundAsked memory_bound_;
};

/// Answers as another model does and records what it is asked. Not for several threads at once.
class WatchedCostModel final : public CostModel {
 public:
  explicit WatchedCostModel(const CostModel& model) : model_(model) {}
  [[nodiscard]] Estimate gemm(const Gemm& op) const override { return noted(op, model_.gemm(op)); }
  [[nodiscard]] Estimate attention(const Attention& op) const override { return noted(op, model_.attention(op)); }
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override {
    return noted(op, model_.memory_bound(op));
  }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return model_.kernels(op); }
  void asked_again(const Coverage& operations) const override { coverage_.add(operations); }
  [[nodiscard]] const Coverage& coverage() const { return coverage_; }
  /// The coverage recorded since the last call.
  [[nodiscard]] Coverage take_coverage() { return std::exchange(coverage_, {}); }

 private:
  template <class Operation>
  Estimate noted(const Operation& op, const Estimate& estimate) const {
    coverage_.add(op, estimate.evidence);
    return estimate;
  }

  const CostModel& model_;
  mutable Coverage coverage_;  // recording changes no answer
};

}  // namespace hdpsim
