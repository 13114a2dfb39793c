#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/slot.h"

namespace hdpsim {
namespace {

// A bucket is closed before its work exceeds its share by more than this (BalancedCPScheduler.make_buckets_equal).
constexpr double bucket_slack = 1.1;
// Ranks count as balanced if their loads differ by less than this share of the largest (next_hdp_group, delta).
constexpr double imbalance = 0.05;

/// Whether the sequences of a group in a slot are one micro-batch, and what that asks for.
struct HybridPacking {
  bool packs = false;         ///< They are, and a group takes no more than its ranks hold.
  std::int64_t least_cp = 1;  ///< Ranks of a group at least, a power of two.
};

/// Fills one slot, as BalancedCPScheduler.next_hdp_group of Megatron-LM does.
class HybridSlot {
 public:
  HybridSlot(const Batch& batch, const PlanningContext& context, const HybridPacking& packing)
      : batch_(batch), context_(context), packing_(packing) {}

  /// Takes the sequences that run in this slot out of `waiting`, which is not empty.
  Slot take(SequenceList& waiting) {
    std::vector<std::span<const std::size_t>> buckets = buckets_of(waiting);
    place(buckets);
    SequenceList left;
    for (const auto& bucket : buckets) left.insert(left.end(), bucket.begin(), bucket.end());
    if (!packing_.packs) trim(left);
    waiting = std::move(left);
    return std::move(slot_);
  }

 private:
  [[nodiscard]] std::int64_t degree_of(std::size_t sequence) const {
    return power_of_two_degree(batch_.sequences[sequence].tokens, context_.capacity, packing_.least_cp);
  }
  [[nodiscard]] double work_of(std::size_t sequence) const {
    return square_work(batch_.sequences[sequence].tokens, degree_of(sequence));
  }

  // Consecutive runs of similar work, as many as there are degrees. A run also ends where the sequences left are few
  // for the runs left; that both sides of this comparison count closed runs is as in the original.
  [[nodiscard]] std::vector<std::span<const std::size_t>> buckets_of(const SequenceList& waiting) const {
    std::set<std::int64_t> degrees;
    double total = 0;
    for (const std::size_t sequence : waiting) {
      degrees.insert(degree_of(sequence));
      total += work_of(sequence);
    }
    const double most = total / static_cast<double>(degrees.size()) * bucket_slack;
    std::vector<std::span<const std::size_t>> buckets;
    const std::span all(waiting);
    std::size_t first = 0;
    double work = 0;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const double more = work_of(waiting[i]);
      const bool few_left = waiting.size() - i + 2 * buckets.size() <= degrees.size();
      if (i > first && (work + more > most || few_left)) {
        buckets.push_back(all.subspan(first, i - first));
        first = i;
        work = 0;
      }
      work += more;
    }
    buckets.push_back(all.subspan(first));
    return buckets;
  }

  // Places heads of buckets until none has room or, once shorter sequences than the first are placed, loads are even.
  void place(std::vector<std::span<const std::size_t>>& buckets) {
    bool below_first = false;
    while (!buckets.empty()) {
      const auto bucket = std::find_if(buckets.begin(), buckets.end(),
                                       [&](const auto& b) { return !b.empty() && can_place(degree_of(b.front())); });
      if (bucket == buckets.end()) return;
      const std::size_t sequence = bucket->front();
      if (!add(sequence)) return;
      *bucket = bucket->subspan(1);
      buckets.erase(buckets.begin(),
                    std::find_if(buckets.begin(), buckets.end(), [](const auto& b) { return !b.empty(); }));
      below_first = below_first || degree_of(sequence) < slot_.front().degree;
      if (below_first && !buckets.empty() && is_even()) return;
    }
  }

  [[nodiscard]] bool can_place(std::int64_t degree) const {
    return free_ranks() >= degree ||
           std::any_of(slot_.begin(), slot_.end(), [&](const SlotGroup& group) { return group.degree == degree; });
  }

  // To a new group if there are ranks for it, else to the least loaded of its degree that has room. False: none has.
  bool add(std::size_t sequence) {
    const std::int64_t degree = degree_of(sequence);
    SlotGroup* group = nullptr;
    if (free_ranks() >= degree) {
      group = &slot_.emplace_back(SlotGroup{degree, 0, {}});
      used_ += degree;
    } else {
      for (SlotGroup& other : slot_) {
        if (other.degree != degree || !has_room(other, sequence)) continue;
        if (group == nullptr || other.load < group->load) group = &other;
      }
    }
    if (group == nullptr) return false;
    group->load += work_of(sequence);
    group->sequences.push_back(sequence);
    return true;
  }

  [[nodiscard]] bool has_room(const SlotGroup& group, std::size_t sequence) const {
    const std::int64_t tokens = batch_.sequences[sequence].tokens;
    return !packing_.packs || tokens_of(batch_, group.sequences) + tokens <= group.degree * context_.capacity;
  }

  [[nodiscard]] double least() const {
    if (free_ranks() > 0) return 0;
    double least = slot_.front().load;
    for (const SlotGroup& group : slot_) least = std::min(least, group.load);
    return least;
  }
  [[nodiscard]] double most() const { return largest_load(slot_); }
  [[nodiscard]] bool is_even() const { return most() - least() <= imbalance * most(); }

  // The most loaded group gives up its last sequence while that makes loads more even.
  void trim(SequenceList& left) {
    while (!slot_.empty() && !is_even() && least() > 0) {
      const auto group = std::max_element(slot_.begin(), slot_.end(),
                                          [](const SlotGroup& a, const SlotGroup& b) { return a.load < b.load; });
      if (group->sequences.size() < 2) return;
      const double slack = most() - least();
      const double before = std::exchange(group->load, group->load - work_of(group->sequences.back()));
      if (most() - least() >= slack) {
        group->load = before;
        return;
      }
      left.push_back(group->sequences.back());
      group->sequences.pop_back();
    }
  }

  [[nodiscard]] std::int64_t free_ranks() const { return context_.ranks - used_; }

  const Batch& batch_;
  const PlanningContext& context_;
  const HybridPacking& packing_;
  Slot slot_;
  std::int64_t used_ = 0;
};

/// Megatron-LM's hybrid context parallelism (megatron/core/pipeline_parallel/hybrid_cp_schedule.py,
/// BalancedCPScheduler): slots of groups whose degrees are powers of two, each sequence a micro-batch of its own. With
/// packing, as at cf486eee (pull request 5191): those of a group in a slot are one micro-batch, so that all ranks run
/// as many; where a group of the degree exists but has no room, the slot ends.
class MegatronHybridCp final : public BuildingPlanner {
 public:
  MegatronHybridCp(const PlanningContext& context, Position position, const HybridPacking& packing)
      : BuildingPlanner("megatron-hybrid-cp", context, true),
        packing_(packing),
        owner_{"megatron-hybrid-cp", std::move(position), context.ranks} {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    SequenceList waiting = longest_first(batch);
    while (!waiting.empty()) {
      Slot slot = HybridSlot(batch, context_, packing_).take(waiting);
      if (slot.empty()) {
        const std::int64_t tokens = batch.sequences[waiting.front()].tokens;
        owner_.refuse_length(tokens, power_of_two_degree(tokens, context_.capacity, packing_.least_cp));
      }
      // No rank stays idle.
      while (ranks_of(slot) < context_.ranks) widen(next_doubling(slot, context_.ranks), slot, batch, owner_);
      if (packing_.packs) {
        add_packed(builder, slot);
        continue;
      }
      std::size_t rank = 0;
      for (const SlotGroup& group : slot) {
        for (const std::size_t sequence : group.sequences) {
          builder.add_consecutive(rank, {group.degree}, std::span(&sequence, 1));
        }
        rank += static_cast<std::size_t>(group.degree);
      }
    }
  }

  HybridPacking packing_;
  SlotOwner owner_;
};

/// `megatron-hybrid-cp: {packing: true | false, min_cp: N}`.
struct HybridPolicy final : PolicyOptions {
  bool packing = false;
  std::int64_t min_cp = 1;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    pool.require_room();
    if (!packing && min_cp > 1) {
      pool.error(pool.where("min_cp"),
                 fmt::format("'min_cp' is {}, but only the scheduler with packing has it", min_cp),
                 "write packing: true, or remove it");
    }
    return std::make_unique<MegatronHybridCp>(pool.context(), pool.position(),
                                              HybridPacking{packing, pool.least_group(min_cp)});
  }
};

}  // namespace

PolicyKind megatron_hybrid_cp_policy() {
  KeyTable<HybridPolicy> keys("megatron-hybrid-cp");
  keys.flag(
      "packing", at(&HybridPolicy::packing),
      "the sequences that a group gets in a slot are one micro-batch, up to what its ranks hold (pull request 5191)");
  add_min_cp(keys);
  return policy_kind(
      "megatron-hybrid-cp",
      "Megatron-LM's --hybrid-context-parallel: groups of powers of two of ranks by length, a sequence a "
      "micro-batch, slots of even s^2",
      std::move(keys));
}

}  // namespace hdpsim
