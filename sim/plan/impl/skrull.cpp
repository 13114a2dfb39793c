#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/division.h"
#include "sim/plan/impl/loads.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// The placement of one micro-batch's sequences on the `ranks` ranks of a replica, each of which has room for
/// `capacity` tokens (the paper's algorithm 1, "DACP"): sequences, shortest first, go to one rank while there is room,
/// and are shared by all ranks otherwise. Their work on one rank is the F(s) of the paper.
///
/// The printed algorithm takes what a roll-back shares from one rank's room alone, with the sign turned round. Here all
/// ranks give their part, so that in micro-batches which nearly fill their ranks one roll-back leads to the next: all
/// is shared then.
class LocalOrShared {
 public:
  LocalOrShared(const Batch& batch, const PlanningContext& context, std::int64_t ranks)
      : batch_(batch), context_(context), held_(static_cast<std::size_t>(ranks)) {}

  /// False if the sequences do not fit. O(sequences x ranks).
  [[nodiscard]] bool place(const SequenceList& shortest_first) {
    return std::all_of(shortest_first.begin(), shortest_first.end(), [&](std::size_t s) { return place(s); }) &&
           room_beside(fullest(), 0) >= 0;
  }

  void add_to(PlanBuilder& builder, std::size_t first_rank) const {
    std::vector<SequenceList> local;
    for (const SequencePack& rank : held_) local.push_back(rank.sequences);
    builder.add_with_local(first_rank, shared_.sequences, local);
  }

 private:
  bool place(std::size_t sequence) {
    const std::int64_t tokens = batch_.sequences[sequence].tokens;
    while (true) {
      if (const auto rank = rank_for(tokens)) {
        held_[*rank].add(sequence, tokens, work_of(context_.work, tokens));
        return true;
      }
      const std::size_t full = fullest();
      if (room_beside(full, tokens) >= 0) {
        shared_.add(sequence, tokens);
        return true;
      }
      if (held_[full].sequences.empty()) return false;
      roll_back(held_[full]);
    }
  }

  // The rank with least work, or with most room where that one has none; the first among equals.
  [[nodiscard]] std::optional<std::size_t> rank_for(std::int64_t tokens) const {
    const auto less_work = [](const SequencePack& a, const SequencePack& b) { return a.work < b.work; };
    const auto least = std::min_element(held_.begin(), held_.end(), less_work);
    const auto emptiest = std::min_element(held_.begin(), held_.end(), less_held);
    for (const std::size_t rank : {index(least), index(emptiest)}) {
      if (tokens <= room_beside(rank, 0)) return rank;
    }
    return std::nullopt;
  }

  // The rank's shortest sequence becomes shared.
  void roll_back(SequencePack& rank) {
    const std::size_t shortest = rank.sequences.front();
    const std::int64_t tokens = batch_.sequences[shortest].tokens;
    rank.sequences.erase(rank.sequences.begin());
    rank.tokens -= tokens;
    rank.work -= work_of(context_.work, tokens);
    shared_.add(shortest, tokens);
  }

  // What is left on a rank once the group shares `tokens` more.
  [[nodiscard]] std::int64_t room_beside(std::size_t rank, std::int64_t tokens) const {
    return context_.capacity - held_[rank].tokens - divided(shared_.tokens + tokens, std::ssize(held_));
  }
  [[nodiscard]] std::size_t fullest() const { return index(std::max_element(held_.begin(), held_.end(), less_held)); }
  static bool less_held(const SequencePack& a, const SequencePack& b) { return a.tokens < b.tokens; }
  [[nodiscard]] std::size_t index(std::vector<SequencePack>::const_iterator rank) const {
    return static_cast<std::size_t>(rank - held_.begin());
  }

  const Batch& batch_;
  const PlanningContext& context_;
  std::vector<SequencePack> held_;  // by rank, without what is shared, which adds the same to all
  SequencePack shared_;
};

/// Skrull (Xu et al. 2025, arXiv 2505.19609): its global scheduling deals sequences to replicas by work, largest first
/// to the least load, and every n-th sequence of a replica, shortest first, to each of its n micro-batches, with the
/// least n whose micro-batches can be placed.
class Skrull final : public BuildingPlanner {
 public:
  Skrull(const PlanningContext& context, std::int64_t cp) : BuildingPlanner("skrull", context), cp_(cp) {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    std::vector<double> loads(static_cast<std::size_t>(context_.ranks / cp_));
    auto replicas = deal_to_least_loaded(longest_first(batch), loads, [&](std::size_t sequence) {
      return work_of(context_.work, batch.sequences[sequence].tokens);
    });
    for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
      std::reverse(replicas[replica].begin(), replicas[replica].end());
      for (const LocalOrShared& placed : micro_batches(batch, replicas[replica])) {
        placed.add_to(builder, replica * static_cast<std::size_t>(cp_));
      }
    }
  }

  // A sequence fits alone, since the ranks of a replica hold the context. O(n (log n + ranks)) for n sequences, unless
  // micro-batches that have room cannot be placed.
  [[nodiscard]] std::vector<LocalOrShared> micro_batches(const Batch& batch, const SequenceList& shortest_first) const {
    const std::int64_t room = context_.capacity * cp_;
    for (auto count = static_cast<std::size_t>(divided(tokens_of(batch, shortest_first), room));; ++count) {
      if (tokens_of_largest(batch, shortest_first, count) > room) continue;
      if (auto placed = placed_in(batch, shortest_first, count)) return std::move(*placed);
    }
  }

  // The largest of `count` micro-batches is the one with the longest sequence. O(n / count).
  [[nodiscard]] static std::int64_t tokens_of_largest(const Batch& batch, const SequenceList& shortest_first,
                                                      std::size_t count) {
    std::int64_t tokens = 0;
    for (std::size_t i = shortest_first.size(); i > 0; i -= std::min(i, count)) {
      tokens += batch.sequences[shortest_first[i - 1]].tokens;
    }
    return tokens;
  }

  [[nodiscard]] std::optional<std::vector<LocalOrShared>> placed_in(const Batch& batch,
                                                                    const SequenceList& shortest_first,
                                                                    std::size_t count) const {
    std::vector<LocalOrShared> all;
    for (std::size_t first = 0; first < count; ++first) {
      SequenceList every_nth;
      for (std::size_t i = first; i < shortest_first.size(); i += count) every_nth.push_back(shortest_first[i]);
      if (!all.emplace_back(batch, context_, cp_).place(every_nth)) return std::nullopt;
    }
    return all;
  }

  std::int64_t cp_;
};

/// `skrull: {cp: auto | N}`.
struct SkrullPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    // A sequence that fills the room of a replica needs a micro-batch alone, which only as many micro-batches as there
    // are sequences give it.
    const std::int64_t degree = cp ? pool.checked_degree(*cp) : pool.least_degree_with_room(2, "cp");
    return std::make_unique<Skrull>(pool.context(), degree);
  }
};

}  // namespace

PolicyKind skrull_policy() {
  KeyTable<SkrullPolicy> keys("skrull");
  add_cp(keys, "the least that holds twice the context, or the context where the pool has no more ranks");
  return policy_kind("skrull",
                     "Skrull on a static mesh: in a micro-batch short sequences stay whole on one rank while it has "
                     "room, and the group shares the others",
                     std::move(keys));
}

}  // namespace hdpsim
