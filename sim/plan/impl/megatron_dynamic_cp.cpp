#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/slot.h"

namespace hdpsim {
namespace {

// A slot's largest load may exceed what its first sequence costs by this factor (DefaultDynamicCPScheduler).
constexpr double load_slack = 1.05;

struct DynamicOptions {
  std::int64_t min_cp = 1;    ///< A power of two.
  std::int64_t multiple = 1;  ///< The number of slots is a multiple of this.
  Position position;          ///< Where a study asks for the policy.
};

/// A slot of packed groups, as DefaultDynamicCPScheduler of Megatron-LM fills it.
class DynamicSlot {
 public:
  DynamicSlot(const Batch& batch, const PlanningContext& context, std::int64_t min_cp)
      : batch_(batch), context_(context), min_cp_(min_cp) {}

  /// Takes the sequences that run in this slot out of `waiting`, which is in falling length and not empty.
  Slot take(SequenceList& waiting) {
    most_allowed_ = static_cast<double>(tokens_of(waiting.front()) * context_.capacity) * load_slack;
    open(degree_of(waiting.front()));
    add(waiting.front(), 0);
    SequenceList left;
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      if (!place(waiting[i])) left.push_back(waiting[i]);
    }
    if (!fill()) return whole_pool(waiting);
    waiting = std::move(left);
    return std::move(slot_);
  }

 private:
  struct Choice {
    double most = std::numeric_limits<double>::infinity();  // largest load of the slot
    std::optional<std::size_t> group;                       // empty: a new one
    std::int64_t degree = 0;
  };

  [[nodiscard]] std::int64_t tokens_of(std::size_t sequence) const { return batch_.sequences[sequence].tokens; }
  [[nodiscard]] std::int64_t degree_of(std::size_t sequence) const {
    return power_of_two_degree(tokens_of(sequence), context_.capacity, min_cp_);
  }
  [[nodiscard]] double share(std::size_t sequence, std::int64_t degree) const {
    return static_cast<double>(tokens_of(sequence)) / static_cast<double>(degree);
  }

  // Where the slot's largest load stays the least, if it may be so large. Of equal places the first one counts, from
  // the least degree on, groups before a new group.
  [[nodiscard]] Choice choice_for(std::size_t sequence) const {
    Choice best;
    const auto consider = [&](const Choice& choice) {
      if (choice.most <= most_allowed_ && choice.most < best.most) best = choice;
    };
    for (std::int64_t degree = degree_of(sequence); degree <= context_.ranks && best.most > most_; degree *= 2) {
      const double work = square_work(tokens_of(sequence), degree);
      const auto room = static_cast<double>(context_.capacity) - share(sequence, degree);
      for (std::size_t i = 0; i < slot_.size() && best.most > most_; ++i) {
        if (slot_[i].degree == degree && used_[i] <= room) consider({std::max(most_, slot_[i].load + work), i, degree});
      }
      if (used_ranks_ + degree <= context_.ranks) consider({std::max(most_, work), std::nullopt, degree});
    }
    return best;
  }

  bool place(std::size_t sequence) {
    const Choice choice = choice_for(sequence);
    if (choice.degree == 0) return false;
    add(sequence, choice.group ? *choice.group : open(choice.degree));
    return true;
  }

  std::size_t open(std::int64_t degree) {
    slot_.push_back({degree, 0, {}});
    used_.push_back(0);
    used_ranks_ += degree;
    return slot_.size() - 1;
  }

  void add(std::size_t sequence, std::size_t group) {
    SlotGroup& to = slot_[group];
    to.sequences.push_back(sequence);
    to.load += square_work(tokens_of(sequence), to.degree);
    used_[group] += share(sequence, to.degree);
    most_ = std::max(most_, to.load);
  }

  // Doubles the first of the smallest groups until no rank is idle. False: there are too few ranks for that.
  bool fill() {
    for (; used_ranks_ < context_.ranks; used_ranks_ = ranks_of(slot_)) {
      const auto group = first_of_smallest(slot_);
      if (used_ranks_ + group->degree > context_.ranks) return false;
      widen(*group, 2 * group->degree, batch_);
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
  std::int64_t min_cp_;
  double most_allowed_ = 0;
  Slot slot_;
  std::vector<double> used_;  // by group: tokens of a rank
  std::int64_t used_ranks_ = 0;
  double most_ = 0;  // the largest load
};

/// Megatron-LM's dynamic context parallelism (megatron/core/datasets/data_schedule.py, DefaultDynamicCPScheduler):
/// slots of groups whose degrees are powers of two, the sequences of a group packed into one micro-batch.
class MegatronDynamicCp final : public Planner {
 public:
  MegatronDynamicCp(const PlanningContext& context, DynamicOptions options)
      : context_(context), options_(std::move(options)) {}

  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("megatron-dynamic-cp", context_, batch, step);
    SequenceList waiting = longest_first(batch);
    if (!waiting.empty()) require_degree(batch.sequences[waiting.front()].tokens);
    std::vector<Slot> slots;
    while (!waiting.empty()) slots.push_back(DynamicSlot(batch, context_, options_.min_cp).take(waiting));
    split(slots);
    for (const Slot& slot : slots) add_packed(builder, slot);
    return builder.take();
  }

 private:
  void require_degree(std::int64_t tokens) const {
    const std::int64_t degree = power_of_two_degree(tokens, context_.capacity, options_.min_cp);
    if (degree <= context_.ranks) return;
    throw InputError(options_.position,
                     fmt::format("megatron-dynamic-cp gives a sequence of {} tokens {} ranks, the pool has {}",
                                 count_text(tokens), degree, context_.ranks),
                     "use a pool of a power of two of ranks, or a larger capacity");
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

  // Takes the groups on the left half of the ranks out of a slot of several, but not all of them, and gives all ranks to
  // both halves.
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
      group->degree += std::min(group->degree, context_.ranks - used);
    }
  }

  [[noreturn]] void refuse_splitting(std::size_t slots) const {
    throw InputError(options_.position,
                     fmt::format("megatron-dynamic-cp makes {} slots, which it cannot split into a multiple of {}",
                                 slots, options_.multiple),
                     "use larger batches, or a smaller 'micro_batches_divided_by'");
  }

  PlanningContext context_;
  DynamicOptions options_;
};

/// `megatron-dynamic-cp: {min_cp: N, micro_batches_divided_by: N}`.
struct DynamicPolicy final : PolicyOptions {
  std::int64_t min_cp = 1;
  std::int64_t multiple = 1;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    pool.require_room();
    return std::make_unique<MegatronDynamicCp>(pool.context(),
                                               DynamicOptions{pool.least_group(min_cp), multiple, pool.position()});
  }
};

}  // namespace

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
