#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// A sequence with the seconds of its work on one rank, the F(s) of the paper.
struct Weighed {
  std::size_t sequence = 0;
  std::int64_t tokens = 0;
  double work = 0;
};

/// The placement of one micro-batch's sequences on the `ranks` ranks of a replica, each of which has room for
/// `capacity` tokens (the paper's algorithm 1, "DACP"): sequences, shortest first, go to one rank while there is room,
/// and are shared by all ranks otherwise.
///
/// The printed algorithm takes what a roll-back shares from one rank's room alone, with the sign turned round. Here all
/// ranks give their part, so that in micro-batches which nearly fill their ranks one roll-back leads to the next: all
/// is shared then.
class LocalOrShared {
 public:
  LocalOrShared(std::int64_t ranks, std::int64_t capacity)
      : capacity_(capacity), held_(static_cast<std::size_t>(ranks)) {}

  /// False if the sequences do not fit. O(sequences x ranks).
  [[nodiscard]] bool place(const std::vector<Weighed>& shortest_first) {
    return std::all_of(shortest_first.begin(), shortest_first.end(), [&](const Weighed& s) { return place(s); }) &&
           room(fullest()) >= 0;
  }

  [[nodiscard]] SequenceList shared() const { return names_of(shared_); }
  [[nodiscard]] std::vector<SequenceList> local() const {
    std::vector<SequenceList> lists;
    for (const Held& rank : held_) lists.push_back(names_of(rank.sequences));
    return lists;
  }

 private:
  struct Held {
    std::vector<Weighed> sequences;
    std::int64_t tokens = 0;
    double work = 0;  // without what is shared, which adds the same to all
  };

  bool place(const Weighed& sequence) {
    while (true) {
      if (const auto rank = rank_for(sequence.tokens)) {
        hold(held_[*rank], sequence);
        return true;
      }
      const std::size_t full = fullest();
      if (room_beside(full, sequence.tokens) >= 0) {
        share(sequence);
        return true;
      }
      if (held_[full].sequences.empty()) return false;
      roll_back(held_[full]);
    }
  }

  // The rank with least work, or with most room where that one has none; the first among equals.
  [[nodiscard]] std::optional<std::size_t> rank_for(std::int64_t tokens) const {
    const auto less_work = [](const Held& a, const Held& b) { return a.work < b.work; };
    for (const std::size_t rank : {index(std::min_element(held_.begin(), held_.end(), less_work)), emptiest()}) {
      if (tokens <= room(rank)) return rank;
    }
    return std::nullopt;
  }

  static void hold(Held& rank, const Weighed& sequence) {
    rank.sequences.push_back(sequence);
    rank.tokens += sequence.tokens;
    rank.work += sequence.work;
  }

  void share(const Weighed& sequence) {
    shared_.push_back(sequence);
    shared_tokens_ += sequence.tokens;
  }

  // The rank's shortest sequence becomes shared.
  void roll_back(Held& rank) {
    const Weighed shortest = rank.sequences.front();
    rank.sequences.erase(rank.sequences.begin());
    rank.tokens -= shortest.tokens;
    rank.work -= shortest.work;
    share(shortest);
  }

  [[nodiscard]] std::int64_t room(std::size_t rank) const { return room_beside(rank, 0); }
  // What is left on a rank once the group shares `tokens` more.
  [[nodiscard]] std::int64_t room_beside(std::size_t rank, std::int64_t tokens) const {
    const std::int64_t ranks = std::ssize(held_);
    return capacity_ - held_[rank].tokens - (shared_tokens_ + tokens + ranks - 1) / ranks;
  }
  [[nodiscard]] std::size_t emptiest() const { return index(std::min_element(held_.begin(), held_.end(), less_held)); }
  [[nodiscard]] std::size_t fullest() const { return index(std::max_element(held_.begin(), held_.end(), less_held)); }
  static bool less_held(const Held& a, const Held& b) { return a.tokens < b.tokens; }
  [[nodiscard]] std::size_t index(std::vector<Held>::const_iterator rank) const {
    return static_cast<std::size_t>(rank - held_.begin());
  }
  static SequenceList names_of(const std::vector<Weighed>& sequences) {
    SequenceList names;
    for (const Weighed& sequence : sequences) names.push_back(sequence.sequence);
    return names;
  }

  std::int64_t capacity_;
  std::vector<Held> held_;
  std::vector<Weighed> shared_;
  std::int64_t shared_tokens_ = 0;
};

/// Skrull (Xu et al. 2025, arXiv 2505.19609): its global scheduling deals sequences to replicas by work, largest first
/// to the least load, and every n-th sequence of a replica, shortest first, to each of its n micro-batches, with the
/// least n whose micro-batches can be placed.
class Skrull final : public Planner {
 public:
  Skrull(const PlanningContext& context, std::int64_t cp) : context_(context), cp_(cp) {}

  [[nodiscard]] bool may_refuse() const override { return false; }
  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("skrull", context_, batch, step);
    const std::vector<std::vector<Weighed>> replicas = dealt(batch);
    for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
      for (const LocalOrShared& placed : micro_batches(replicas[replica])) {
        builder.add_with_local(replica * static_cast<std::size_t>(cp_), placed.shared(), placed.local());
      }
    }
    return builder.take();
  }

 private:
  // Of every replica its sequences, shortest first. O(n (log n + log replicas)).
  [[nodiscard]] std::vector<std::vector<Weighed>> dealt(const Batch& batch) const {
    std::vector<std::vector<Weighed>> replicas(static_cast<std::size_t>(context_.ranks / cp_));
    std::vector<std::pair<double, std::size_t>> loads;  // a heap, least load first
    for (std::size_t replica = 0; replica < replicas.size(); ++replica) loads.emplace_back(0, replica);
    for (const std::size_t sequence : longest_first(batch)) {
      const std::int64_t tokens = batch.sequences[sequence].tokens;
      const double work = context_.work.compute_seconds(causal_pairs(tokens), tokens);
      std::pop_heap(loads.begin(), loads.end(), std::greater<>());
      auto& [load, replica] = loads.back();
      load += work;
      replicas[replica].push_back({sequence, tokens, work});
      std::push_heap(loads.begin(), loads.end(), std::greater<>());
    }
    for (std::vector<Weighed>& replica : replicas) std::reverse(replica.begin(), replica.end());
    return replicas;
  }

  // A sequence fits alone, since the ranks of a replica hold the context. O(n (log n + ranks)) for n sequences, unless
  // micro-batches that have room cannot be placed.
  [[nodiscard]] std::vector<LocalOrShared> micro_batches(const std::vector<Weighed>& shortest_first) const {
    std::int64_t tokens = 0;
    for (const Weighed& sequence : shortest_first) tokens += sequence.tokens;
    auto count = static_cast<std::size_t>((tokens + context_.capacity * cp_ - 1) / (context_.capacity * cp_));
    for (;; ++count) {
      if (!has_room(shortest_first, count)) continue;
      if (auto placed = placed_in(shortest_first, count)) return std::move(*placed);
    }
  }

  // Whether the largest of `count` micro-batches, the one with the longest sequence, fits the replica. O(n / count).
  [[nodiscard]] bool has_room(const std::vector<Weighed>& shortest_first, std::size_t count) const {
    std::int64_t tokens = 0;
    for (std::size_t i = shortest_first.size(); i > 0; i -= std::min(i, count)) tokens += shortest_first[i - 1].tokens;
    return tokens <= context_.capacity * cp_;
  }

  [[nodiscard]] std::optional<std::vector<LocalOrShared>> placed_in(const std::vector<Weighed>& shortest_first,
                                                                    std::size_t count) const {
    std::vector<LocalOrShared> all;
    for (std::size_t first = 0; first < count; ++first) {
      std::vector<Weighed> every_nth;
      for (std::size_t i = first; i < shortest_first.size(); i += count) every_nth.push_back(shortest_first[i]);
      LocalOrShared& placed = all.emplace_back(cp_, context_.capacity);
      if (!placed.place(every_nth)) return std::nullopt;
    }
    return all;
  }

  PlanningContext context_;
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
