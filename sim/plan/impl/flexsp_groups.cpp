#include "sim/plan/impl/flexsp_groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "sim/base/check.h"
#include "sim/plan/impl/bin_exchange.h"
#include "sim/plan/impl/loads.h"

namespace hdpsim {
namespace {

// The search ends where the last group ends within this share of a bound, and exchanges end where gains are a tenth of
// it.
constexpr double good_enough = 0.01;
// Groups, of those that end first, with which the last one may exchange sequences.
constexpr std::size_t partner_groups = 8;

class GroupSearch {
 public:
  GroupSearch(const Batch& batch, const SequenceList& sequences, const GroupPool& pool, const GroupPrices& prices)
      : sequences_(sequences), pool_(pool), prices_(prices), degrees_(prices.degrees()) {
    seconds_.reserve(sequences.size() * degrees_.size());
    for (const std::size_t sequence : sequences) {
      tokens_.push_back(batch.sequences[sequence].tokens);
      for (std::size_t level = 0; level < degrees_.size(); ++level) {
        seconds_.push_back(prices.seconds(sequence, level));
      }
    }
  }

  std::optional<Slot> best() {
    Counts best;
    double earliest = never;
    for (std::size_t level = 0; level < degrees_.size(); ++level) {
      Counts counts = start_with(level);
      const double end = end_with(counts);
      if (end >= earliest) continue;
      earliest = end;
      best = std::move(counts);
    }
    if (earliest == never) return std::nullopt;
    climb(best);
    Filled filled = fill(best);
    Exchanges(*this, filled).run();
    return slot_of(filled);
  }

 private:
  using Counts = std::vector<std::int64_t>;  // groups of degrees_[i]

  struct Group {
    std::size_t level;
    std::int64_t room;
    double end;
    std::vector<std::size_t> places;  // in sequences_
  };
  using Filled = std::vector<Group>;  // empty: the groups do not hold all sequences, or not all get one

  [[nodiscard]] double seconds(std::size_t place, std::size_t level) const {
    return seconds_[place * degrees_.size() + level];
  }

  // Groups of one degree, and one that holds the longest sequence if they do not.
  [[nodiscard]] Counts start_with(std::size_t level) const {
    Counts counts(degrees_.size());
    std::size_t needed = level;
    while (needed + 1 < degrees_.size() && degrees_[needed] * pool_.capacity < tokens_.front()) ++needed;
    std::int64_t left = pool_.ranks;
    if (needed > level) {
      counts[needed] = 1;
      left -= degrees_[needed];
    }
    counts[level] += left / degrees_[level];
    return counts;
  }

  // Splits a group in two, or joins two of equal degree.
  struct Change {
    std::size_t from;
    std::int64_t taken;
    std::size_t to;
    std::int64_t added;
  };

  // Follows the best of all changes, each as often as it helps, until none helps.
  void climb(Counts& counts) {
    double end = end_with(counts);
    while (end > least_end() * (1 + good_enough)) {
      const std::optional<Change> change = best_change(counts, end);
      if (!change) return;
      while (true) {
        const Counts other = changed(counts, *change);
        const double other_end = end_with(other);
        if (other_end >= end) break;
        counts = other;
        end = other_end;
      }
    }
  }

  [[nodiscard]] static Counts changed(Counts counts, const Change& change) {
    counts[change.from] -= change.taken;
    counts[change.to] += change.added;
    return counts;
  }

  // Empty if none ends before `end`.
  std::optional<Change> best_change(const Counts& counts, double end) {
    std::optional<Change> best;
    for (std::size_t level = 0; level + 1 < degrees_.size(); ++level) {
      for (const Change& change : {Change{level + 1, 1, level, 2}, Change{level, 2, level + 1, 1}}) {
        const double other = end_with(changed(counts, change));
        if (other >= end) continue;
        end = other;
        best = change;
      }
    }
    return best;
  }

  // No groups end earlier: every sequence on the degree that takes the least of all ranks' time.
  [[nodiscard]] double least_end() const {
    double fixed = never;
    for (std::size_t level = 0; level < degrees_.size(); ++level) fixed = std::min(fixed, prices_.fixed(level));
    double sum = 0;
    for (std::size_t place = 0; place < sequences_.size(); ++place) {
      double least = never;
      for (std::size_t level = 0; level < degrees_.size(); ++level) {
        least = std::min(least, seconds(place, level) * static_cast<double>(degrees_[level]));
      }
      sum += least;
    }
    return fixed + sum / static_cast<double>(pool_.ranks);
  }

  double end_with(const Counts& counts) {
    if (*std::min_element(counts.begin(), counts.end()) < 0) return never;
    const auto [found, is_new] = ends_.try_emplace(counts, never);
    if (is_new) found->second = end_of_filled(fill(counts));
    return found->second;
  }

  [[nodiscard]] static double end_of_filled(const Filled& filled) {
    if (filled.empty()) return never;
    return std::max_element(filled.begin(), filled.end(), ends_earlier)->end;
  }
  [[nodiscard]] static bool ends_earlier(const Group& a, const Group& b) { return a.end < b.end; }

  [[nodiscard]] Filled empty_groups(const Counts& counts) const {
    Filled groups;
    for (std::size_t level = degrees_.size(); level-- > 0;) {
      const Group empty{level, degrees_[level] * pool_.capacity, prices_.fixed(level), {}};
      groups.insert(groups.end(), static_cast<std::size_t>(counts[level]), empty);
    }
    return groups;
  }

  // The groups of one degree among all of them.
  struct Level {
    std::size_t first;
    LoadTree ends;  // of the groups from the first on, and their tokens
  };

  [[nodiscard]] std::vector<Level> levels_of(const Counts& counts) const {
    std::vector<Level> levels;
    std::size_t first = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    for (std::size_t level = 0; level < degrees_.size(); ++level) {
      const auto count = static_cast<std::size_t>(counts[level]);
      first -= count;
      levels.push_back({first, LoadTree(count)});
      for (std::size_t i = 0; i < count; ++i) levels.back().ends.set(i, prices_.fixed(level), 0);
    }
    return levels;
  }

  [[nodiscard]] Filled fill(const Counts& counts) const {
    Filled groups = filled_evenly(counts);
    return groups.empty() ? filled_tightly(counts) : groups;
  }

  // Each sequence to the group that then ends first.
  [[nodiscard]] Filled filled_evenly(const Counts& counts) const {
    Filled groups = empty_groups(counts);
    if (groups.size() > sequences_.size()) return {};
    std::vector<Level> levels = levels_of(counts);
    for (std::size_t place = 0; place < sequences_.size(); ++place) {
      std::optional<std::size_t> first;
      double earliest = never;
      for (std::size_t level = degrees_.size(); level-- > 0;) {
        const auto most_used = static_cast<double>(degrees_[level] * pool_.capacity - tokens_[place]);
        const std::size_t found = levels[level].ends.least({.most_used = most_used});
        if (found == LoadTree::none) continue;
        const std::size_t group = levels[level].first + found;
        const double end = groups[group].end + seconds(place, level);
        if (end >= earliest) continue;
        earliest = end;
        first = group;
      }
      if (!first) return {};
      Group& chosen = groups[*first];
      add(place, chosen);
      const std::int64_t used = degrees_[chosen.level] * pool_.capacity - chosen.room;
      levels[chosen.level].ends.set(*first - levels[chosen.level].first, earliest, static_cast<double>(used));
    }
    return all_at_work(std::move(groups));
  }

  // Each sequence to the group that it leaves the least room in: where groups have hardly more than sequences need.
  [[nodiscard]] Filled filled_tightly(const Counts& counts) const {
    Filled groups = empty_groups(counts);
    if (groups.size() > sequences_.size()) return {};
    BestFit rooms;
    for (std::size_t i = 0; i < groups.size(); ++i) rooms.put(i, groups[i].room);
    for (std::size_t place = 0; place < sequences_.size(); ++place) {
      const auto chosen = rooms.take(tokens_[place]);
      if (!chosen) return {};
      add(place, groups[chosen->pack]);
      rooms.put(chosen->pack, groups[chosen->pack].room);
    }
    return all_at_work(std::move(groups));
  }

  void add(std::size_t place, Group& group) const {
    group.end += seconds(place, group.level);
    group.room -= tokens_[place];
    group.places.push_back(place);
  }

  [[nodiscard]] static Filled all_at_work(Filled groups) {
    const auto is_idle = [](const Group& group) { return group.places.empty(); };
    return std::any_of(groups.begin(), groups.end(), is_idle) ? Filled{} : groups;
  }

  // What a group and another end at if they exchange sequences.
  struct Exchange {
    double end = never;  // the later of both
    std::size_t given = 0;
    std::size_t to = 0;
    std::optional<std::size_t> taken;  // empty: nothing comes back
    double from_end = 0;
    double to_end = 0;
  };

  // The last group exchanges a sequence for a shorter one, or for none, of a group that ends early.
  class Exchanges final : public ExchangeSearch {
   public:
    Exchanges(const GroupSearch& search, Filled& groups)
        : ExchangeSearch(partner_groups), search_(search), groups_(groups) {
      for (const Group& group : groups) ends_.push_back(group.end);
    }

   private:
    [[nodiscard]] bool is_enough(double last_end) override {
      double sum = 0;
      for (const Group& group : groups_) sum += group.end * static_cast<double>(search_.degrees_[group.level]);
      return last_end <= sum / static_cast<double>(search_.pool_.ranks) * (1 + good_enough);
    }

    bool exchange(std::size_t from, std::span<const std::size_t> partners) override {
      Exchange best;
      const double unchanged = best.end = ends_[from] * (1 - good_enough / 10);
      for (const std::size_t to : partners) {
        for (std::size_t given = 0; given < groups_[from].places.size(); ++given) consider(from, given, to, best);
      }
      if (best.end >= unchanged) return false;
      move(from, best.given, best.to);
      if (best.taken) move(best.to, *best.taken, from);
      ends_[from] = groups_[from].end = best.from_end;
      ends_[best.to] = groups_[best.to].end = best.to_end;
      return true;
    }

    void consider(std::size_t giver, std::size_t given, std::size_t taker, Exchange& best) const {
      const Group& from = groups_[giver];
      const Group& to = groups_[taker];
      const std::size_t place = from.places[given];
      const double without = from.end - search_.seconds(place, from.level);
      const double with = to.end + search_.seconds(place, to.level);
      const auto compare = [&](std::optional<std::size_t> taken) {
        const std::int64_t tokens = taken ? search_.tokens_[to.places[*taken]] : 0;
        if (tokens >= search_.tokens_[place] || to.room + tokens < search_.tokens_[place]) return;
        const double from_end = taken ? without + search_.seconds(to.places[*taken], from.level) : without;
        const double to_end = taken ? with - search_.seconds(to.places[*taken], to.level) : with;
        const double end = std::max(from_end, to_end);
        if (end < best.end) best = {end, given, taker, taken, from_end, to_end};
      };
      if (from.places.size() > 1) compare(std::nullopt);
      for (std::size_t taken = 0; taken < to.places.size(); ++taken) compare(taken);
    }

    void move(std::size_t from, std::size_t index, std::size_t to) {
      Group& giver = groups_[from];
      const std::size_t place = giver.places[index];
      giver.places.erase(giver.places.begin() + static_cast<std::ptrdiff_t>(index));
      giver.room += search_.tokens_[place];
      groups_[to].places.push_back(place);
      groups_[to].room -= search_.tokens_[place];
    }

    const GroupSearch& search_;
    Filled& groups_;
  };

  [[nodiscard]] Slot slot_of(const Filled& filled) const {
    Slot slot;
    for (const Group& group : filled) {
      SlotGroup& made = slot.emplace_back(SlotGroup{degrees_[group.level], group.end, {}});
      for (const std::size_t place : group.places) made.sequences.push_back(sequences_[place]);
    }
    return slot;
  }

  const SequenceList& sequences_;
  const GroupPool& pool_;
  const GroupPrices& prices_;
  const std::vector<std::int64_t>& degrees_;
  std::vector<std::int64_t> tokens_;  // by place in sequences_
  std::vector<double> seconds_;       // by place and degree
  std::map<Counts, double> ends_;
};

}  // namespace

GroupPrices::GroupPrices(const Batch& batch, const GroupPool& pool, const GroupTimes& times) {
  for (std::int64_t degree = pool.least_degree; degree <= pool.ranks; degree *= 2) {
    degrees_.push_back(degree);
    fixed_.push_back(times.fixed(degree));
  }
  seconds_.reserve(batch.sequences.size() * degrees_.size());
  for (const Sequence& sequence : batch.sequences) {
    for (const std::int64_t degree : degrees_) seconds_.push_back(times.sequence_seconds(sequence.tokens, degree));
  }
}

std::vector<SequenceList> even_runs(const Batch& batch, const SequenceList& sequences, std::size_t count) {
  const std::size_t n = sequences.size();
  HDPSIM_CHECK(count >= 1 && count <= n, "{} runs of {} sequences", count, n);
  std::vector<std::int64_t> before(n + 1);  // tokens of the first i sequences
  for (std::size_t i = 0; i < n; ++i) before[i + 1] = before[i] + batch.sequences[sequences[i]].tokens;
  std::vector<std::int64_t> largest = before;  // by length of the prefix, for the runs so far
  std::vector<std::vector<std::size_t>> cuts;  // by run and prefix: where its last run begins
  for (std::size_t run = 2; run <= count; ++run) {
    std::vector<std::int64_t> next(n + 1);
    std::vector<std::size_t>& cut = cuts.emplace_back(n + 1);
    std::size_t at = run - 1;
    for (std::size_t i = run; i <= n; ++i) {
      const auto end = [&](std::size_t j) { return std::max(largest[j], before[i] - before[j]); };
      while (at + 1 < i && end(at + 1) < end(at)) ++at;
      cut[i] = at;
      next[i] = end(at);
    }
    largest = std::move(next);
  }
  std::vector<SequenceList> runs(count);
  std::size_t end = n;
  for (std::size_t run = count; run-- > 0;) {
    const std::size_t begin = run == 0 ? 0 : cuts[run - 1][end];
    runs[run].assign(sequences.begin() + static_cast<std::ptrdiff_t>(begin),
                     sequences.begin() + static_cast<std::ptrdiff_t>(end));
    end = begin;
  }
  return runs;
}

std::optional<Slot> early_groups(const Batch& batch, const SequenceList& longest_first, const GroupPool& pool,
                                 const GroupPrices& prices) {
  HDPSIM_CHECK(!longest_first.empty(), "groups of {} ranks without a sequence", pool.ranks);
  return GroupSearch(batch, longest_first, pool, prices).best();
}

}  // namespace hdpsim
