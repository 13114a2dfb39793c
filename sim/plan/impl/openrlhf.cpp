#include <algorithm>
#include <optional>
#include <utility>

#include "sim/plan/impl/differencing.h"
#include "sim/plan/impl/micro_batch_limit.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// OpenRLHF's step with dynamic batches (experience.py, balance_experiences; seqlen_balancing.py): sequences are dealt
/// to the replicas longest first, there and back; those of a replica are divided among micro-batches by largest
/// differencing on their lengths.
class OpenRlhf final : public Planner {
 public:
  OpenRlhf(const PlanningContext& context, std::int64_t cp, std::int64_t limit)
      : context_(context), cp_(cp), limit_(limit) {}

  Plan plan(const Batch& batch, std::int64_t step) const override {
    const std::vector<SequenceList> replicas = replicas_of(batch);
    std::size_t count = 1;
    for (const SequenceList& replica : replicas) count = std::max(count, first_fit(batch, replica));
    PlanBuilder builder("openrlhf", context_, batch, step);
    for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
      for (const SequenceList& sequences : divided(batch, replicas[replica], count)) {
        builder.add_consecutive(replica * static_cast<std::size_t>(cp_), {cp_}, sequences);
      }
    }
    Plan made = builder.take();
    raise_capacity(made);
    return made;
  }

 private:
  // Rows of one sequence a replica, longest first: the first row, the last one backwards, the second, and so on.
  [[nodiscard]] std::vector<SequenceList> replicas_of(const Batch& batch) const {
    const SequenceList order = longest_first(batch);
    const auto count = static_cast<std::size_t>(context_.ranks / cp_);
    const std::size_t rows = (order.size() + count - 1) / count;
    std::vector<SequenceList> replicas(count);
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
    return replicas;
  }

  // Packs that the sequences fill if each goes to the first one with room.
  [[nodiscard]] std::size_t first_fit(const Batch& batch, const SequenceList& replica) const {
    std::vector<std::int64_t> packs;
    for (const std::size_t sequence : replica) {
      const std::int64_t tokens = batch.sequences[sequence].tokens;
      const auto pack =
          std::find_if(packs.begin(), packs.end(), [&](std::int64_t used) { return used + tokens <= limit_; });
      if (pack == packs.end()) {
        packs.push_back(tokens);
      } else {
        *pack += tokens;
      }
    }
    return packs.size();
  }

  [[nodiscard]] static std::vector<SequenceList> divided(const Batch& batch, const SequenceList& replica,
                                                         std::size_t count) {
    std::vector<ExactWork> lengths;
    for (const std::size_t sequence : replica) {
      lengths.push_back(static_cast<ExactWork>(batch.sequences[sequence].tokens));
    }
    std::vector<SequenceList> parts = largest_differencing(lengths, std::min(count, replica.size() + 1), false);
    std::erase_if(parts, [](const SequenceList& part) { return part.empty(); });
    for (SequenceList& part : parts) {
      for (std::size_t& place : part) place = replica[place];
    }
    return parts;
  }

  PlanningContext context_;
  std::int64_t cp_;
  std::int64_t limit_;  // tokens that a micro-batch should have
};

/// `openrlhf: {cp: auto | N, max_tokens: N}`.
struct OpenRlhfPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> max_tokens;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const std::int64_t degree = pool.degree_of(cp);
    return std::make_unique<OpenRlhf>(pool.context(), degree, micro_batch_limit(pool, degree, max_tokens));
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
