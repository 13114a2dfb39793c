#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/division.h"
#include "sim/plan/impl/dynamic_batches.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// OpenRLHF's step with dynamic batches (experience.py, balance_experiences; seqlen_balancing.py): sequences are dealt
/// to the replicas in a zig-zag, longest first; those of a replica are divided among micro-batches by largest
/// differencing on their lengths.
class OpenRlhf final : public DynamicBatches {
 public:
  /// `limit`: the tokens that a micro-batch should have.
  OpenRlhf(const PlanningContext& context, std::int64_t cp, std::int64_t limit)
      : DynamicBatches("openrlhf", context, cp), limit_(limit) {}

 private:
  [[nodiscard]] ExactWork cost(std::int64_t tokens) const override { return static_cast<ExactWork>(tokens); }

  // Rows of one sequence a replica, longest first: the first row, the last one backwards, the second, and so on.
  [[nodiscard]] std::vector<Replicas> updates_of(const Batch& batch, std::size_t count) const override {
    const SequenceList order = longest_first(batch);
    const auto rows = static_cast<std::size_t>(divided(std::ssize(order), static_cast<std::int64_t>(count)));
    Replicas replicas(count);
    const auto deal = [&](std::size_t row, bool backwards) {
      const std::size_t first = row * count;
      const std::size_t length = std::min(count, order.size() - first);
      for (std::size_t i = 0; i < length; ++i) {
        replicas[i].push_back(order[first + (backwards ? length - 1 - i : i)]);
      }
    };
    for (std::size_t row = 0; row < rows / 2; ++row) {
      deal(row, false);
      deal(rows - 1 - row, true);
    }
    if (rows % 2 == 1) deal(rows / 2, true);
    return {std::move(replicas)};
  }

  // The most packs that the sequences of a replica fill if each goes to the first one with room.
  [[nodiscard]] std::size_t micro_batches_of(const Batch& batch, const Replicas& replicas) const override {
    std::size_t most = 1;
    for (const SequenceList& replica : replicas) most = std::max(most, first_fit(batch, replica, limit_).size());
    return most;
  }

  [[nodiscard]] Replicas in_order(Replicas parts, const std::vector<ExactWork>& /*costs*/) const override {
    return parts;
  }

  std::int64_t limit_;
};

/// `openrlhf: {cp: auto | N, max_tokens: N}`.
struct OpenRlhfPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> max_tokens;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const std::int64_t degree = pool.degree_of(cp);
    return std::make_unique<OpenRlhf>(pool.context(), degree, pool.micro_batch_limit(degree, max_tokens));
  }
};

}  // namespace

PolicyKind openrlhf_policy() {
  KeyTable<OpenRlhfPolicy> keys("openrlhf");
  add_cp(keys);
  add_max_tokens(keys);
  return policy_kind("openrlhf",
                     "OpenRLHF's dynamic batches: sequences are assigned to replicas in a zig-zag, longest first, and "
                     "divided among micro-batches by largest differencing on their lengths",
                     std::move(keys));
}

}  // namespace hdpsim
