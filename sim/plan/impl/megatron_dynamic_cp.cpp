#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/plan/impl/loads.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/slot.h"

namespace hdpsim {
namespace {

// A slot's largest load may exceed what its first sequence costs by this factor (DefaultDynamicCPScheduler).
constexpr double load_slack = 1.05;

struct DynamicOptions {
  std::int64_t min_cp = 1;    ///< A power of two.
  std::int64_t multiple = 1;  ///< The number of slots is a multiple of this.
  SlotOwner owner;
};

/// A slot of packed groups, as DefaultDynamicCPScheduler of Megatron-LM fills it.
class DynamicSlot {
 public:
  DynamicSlot(const Batch& batch, const PlanningContext& context, const DynamicOptions& options)
      : batch_(batch), context_(context), options_(options) {
    for (std::int64_t degree = options.min_cp; degree <= context.ranks; degree *= 2) {
      levels_.push_back({degree, {}, LoadTree(static_cast<std::size_t>(context.ranks / degree))});
    }
  }

  /// Takes the sequences that run in this slot out of `waiting`, which is in falling length and not empty.
  Slot take(SequenceList& waiting) {
    most_allowed_ = static_cast<double>(tokens_of(waiting.front()) * context_.capacity) * load_slack;
    Level& level = *level_of(waiting.front());
    add(waiting.front(), level, open(level));
    SequenceList left;
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      if (!place(waiting[i])) left.push_back(waiting[i]);
    }
    if (!fill()) return whole_pool(waiting);
    waiting = std::move(left);
    return std::move(slot_);
  }

 private:
  // The groups of one degree.
  struct Level {
    std::int64_t degree;
    std::vector<std::size_t> groups;  // in the slot
    LoadTree loads;                   // of them, and the tokens of each of their ranks
  };

  struct Choice {
    double most = never;                 // largest load of the slot
    Level* level = nullptr;              // null: nowhere
    std::size_t place = LoadTree::none;  // in its groups; none: a new one
  };

  [[nodiscard]] std::int64_t tokens_of(std::size_t sequence) const { return batch_.sequences[sequence].tokens; }
  [[nodiscard]] std::int64_t degree_of(std::size_t sequence) const {
    return power_of_two_degree(tokens_of(sequence), context_.capacity, options_.min_cp);
  }
  [[nodiscard]] double share(std::size_t sequence, std::int64_t degree) const {
    return static_cast<double>(tokens_of(sequence)) / static_cast<double>(degree);
  }

  [[nodiscard]] std::vector<Level>::iterator level_of(std::size_t sequence) {
    return std::find_if(levels_.begin(), levels_.end(),
                        [degree = degree_of(sequence)](const Level& level) { return level.degree == degree; });
  }

  // Where the slot's largest load stays the least, if it may be so large. Of equal places the first one counts, from
  // the least degree on, groups before a new group.
  [[nodiscard]] Choice choice_for(std::size_t sequence) {
    Choice best;
    const auto consider = [&](double load, Level& level, std::size_t place) {
      const double most = std::max(most_, load);
      if (most <= most_allowed_ && most < best.most) best = {most, &level, place};
    };
    for (auto level = level_of(sequence); level != levels_.end() && best.most > most_; ++level) {
      const double work = square_work(tokens_of(sequence), level->degree);
      const double room = static_cast<double>(context_.capacity) - share(sequence, level->degree);
      const std::size_t place = level->loads.least({.most_used = room, .more = work, .floor = most_});
      if (place != LoadTree::none) consider(slot_[level->groups[place]].load + work, *level, place);
      if (used_ranks_ + level->degree <= context_.ranks) consider(work, *level, LoadTree::none);
    }
    return best;
  }

  bool place(std::size_t sequence) {
    const Choice choice = choice_for(sequence);
    if (choice.level == nullptr) return false;
    add(sequence, *choice.level, choice.place != LoadTree::none ? choice.place : open(*choice.level));
    return true;
  }

  std::size_t open(Level& level) {
    level.groups.push_back(slot_.size());
    slot_.push_back({level.degree, 0, {}});
    used_.push_back(0);
    used_ranks_ += level.degree;
    return level.groups.size() - 1;
  }

  void add(std::size_t sequence, Level& level, std::size_t place) {
    const std::size_t group = level.groups[place];
    SlotGroup& to = slot_[group];
    to.sequences.push_back(sequence);
    to.load += square_work(tokens_of(sequence), to.degree);
    used_[group] += share(sequence, to.degree);
    most_ = std::max(most_, to.load);
    level.loads.set(place, to.load, used_[group]);
  }

  // Doubles groups until no rank is idle. False: one would be larger than the pool.
  bool fill() {
    while (ranks_of(slot_) < context_.ranks) {
      const Doubling doubling = next_doubling(slot_, context_.ranks);
      const std::int64_t end = std::accumulate(slot_.begin(), std::next(doubling.group), std::int64_t{0},
                                               [](std::int64_t ranks, const SlotGroup& g) { return ranks + g.degree; });
      if (end + doubling.more > context_.ranks) return false;
      widen(doubling, slot_, batch_, options_.owner);
    }
    return true;
  }

  // All ranks take what they can hold together, longest first.
  [[nodiscard]] Slot whole_pool(SequenceList& waiting) const {
    Slot slot{{context_.ranks, 0, {}}};
    double used = 0;
    SequenceList left;
    for (const std::size_t sequence : waiting) {
      const double more = share(sequence, context_.ranks);
      const bool fits = used + more <= static_cast<double>(context_.capacity);
      if (fits) used += more;
      (fits ? slot.front().sequences : left).push_back(sequence);
    }
    waiting = std::move(left);
    return slot;
  }

  const Batch& batch_;
  const PlanningContext& context_;
  const DynamicOptions& options_;
  double most_allowed_ = 0;
  std::vector<Level> levels_;  // by rising degree
  Slot slot_;
  std::vector<double> used_;  // by group: tokens of a rank
  std::int64_t used_ranks_ = 0;
  double most_ = 0;  // the largest load
};

std::vector<Slot> dynamic_slots_of(const Batch& batch, SequenceList waiting, const PlanningContext& pool,
                                   const DynamicOptions& options) {
  const auto tokens = [&](std::size_t sequence) { return batch.sequences[sequence].tokens; };
  std::stable_sort(waiting.begin(), waiting.end(), [&](std::size_t a, std::size_t b) { return tokens(a) > tokens(b); });
  if (!waiting.empty()) {
    const std::int64_t degree = power_of_two_degree(tokens(waiting.front()), pool.capacity, options.min_cp);
    if (degree > pool.ranks) options.owner.refuse_length(tokens(waiting.front()), degree);
  }
  std::vector<Slot> slots;
  while (!waiting.empty()) slots.push_back(DynamicSlot(batch, pool, options).take(waiting));
  return slots;
}

/// Megatron-LM's dynamic context parallelism (megatron/core/datasets/data_schedule.py, DefaultDynamicCPScheduler):
/// slots of groups whose degrees are powers of two, the sequences of a group packed into one micro-batch.
class MegatronDynamicCp final : public BuildingPlanner {
 public:
  MegatronDynamicCp(const PlanningContext& context, DynamicOptions options)
      : BuildingPlanner("megatron-dynamic-cp", context, true), options_(std::move(options)) {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    std::vector<Slot> slots = dynamic_slots_of(batch, in_data_order(batch), context_, options_);
    split(slots);
    for (const Slot& slot : slots) add_packed(builder, slot);
  }

  // Splits slots, the last ones first, until their number is a multiple.
  void split(std::vector<Slot>& slots) const {
    const auto multiple = static_cast<std::size_t>(options_.multiple);
    std::size_t split_in_round = 1;
    for (std::size_t at = 0; slots.size() % multiple != 0; --at) {
      if (at == 0) {
        if (std::exchange(split_in_round, 0) == 0) refuse_splitting(slots.size());
        at = slots.size();
      }
      if (slots[at - 1].size() < 2) continue;
      Slot left = left_half(slots[at - 1]);
      slots.push_back(std::move(left));
      ++split_in_round;
    }
  }

  // Takes the groups on the left half of the ranks out of a slot of several, but not all of them, and gives all ranks
  // to both halves.
  [[nodiscard]] Slot left_half(Slot& slot) const {
    const auto last = std::prev(slot.end());
    auto end = slot.begin();
    for (std::int64_t ranks = 0; ranks < context_.ranks / 2 && end != last; ++end) ranks += end->degree;
    Slot left(slot.begin(), end);
    slot.erase(slot.begin(), end);
    for (Slot* half : {&left, &slot}) spread(*half);
    return left;
  }

  // Doubles the first group of the last run of equal degrees until all ranks have work.
  void spread(Slot& slot) const {
    for (std::int64_t used = ranks_of(slot); used < context_.ranks; used = ranks_of(slot)) {
      auto group = std::prev(slot.end());
      while (group != slot.begin() && std::prev(group)->degree == group->degree) --group;
      if (group->degree > context_.ranks - used) options_.owner.refuse_doubling(group->degree, context_.ranks - used);
      group->degree *= 2;
    }
  }

  [[noreturn]] void refuse_splitting(std::size_t slots) const {
    throw InputError(options_.owner.position,
                     fmt::format("megatron-dynamic-cp makes {} slots, which it cannot split into a multiple of {}",
                                 slots, options_.multiple),
                     "use larger batches, or a smaller 'micro_batches_divided_by'");
  }

  DynamicOptions options_;
};

/// `megatron-dynamic-cp: {min_cp: N, micro_batches_divided_by: N}`.
struct DynamicPolicy final : PolicyOptions {
  std::int64_t min_cp = 1;
  std::int64_t multiple = 1;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    pool.require_room();
    const std::int64_t ranks = pool.context().ranks;
    return std::make_unique<MegatronDynamicCp>(
        pool.context(),
        DynamicOptions{pool.least_group(min_cp), multiple, SlotOwner{"megatron-dynamic-cp", pool.position(), ranks}});
  }
};

}  // namespace

std::vector<Slot> dynamic_slots(const Batch& batch, SequenceList sequences, const PlanningContext& pool,
                                const SlotOwner& owner) {
  return dynamic_slots_of(batch, std::move(sequences), pool, {.owner = owner});
}

PolicyKind megatron_dynamic_cp_policy() {
  KeyTable<DynamicPolicy> keys("megatron-dynamic-cp");
  add_min_cp(keys);
  add_micro_batch_multiple(keys);
  return policy_kind("megatron-dynamic-cp",
                     "Megatron-LM's default_dynamic_cp: groups of powers of two of ranks by length, packed up to the "
                     "capacity, slots of even s^2",
                     std::move(keys));
}

}  // namespace hdpsim
