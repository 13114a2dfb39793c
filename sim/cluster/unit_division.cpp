#include "sim/cluster/unit_division.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

/// A pod with free nodes.
struct FreePod {
  std::int64_t free = 0;
  std::size_t pod = 0;
};

/// Pods that hold so many units, which no unit leaves.
struct PodGroup {
  std::vector<FreePod> pods;
  std::int64_t units = 0;
};

std::int64_t free_of(const std::vector<FreePod>& pods, std::size_t count) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < std::min(count, pods.size()); ++i) sum += pods[i].free;
  return sum;
}

/// Searches for groups of pods for units of `nodes` nodes, which have at most `spread` pods each.
class GroupSearch {
 public:
  GroupSearch(std::int64_t nodes, std::int64_t spread, std::int64_t& tries_left)
      : nodes_(nodes), spread_(spread), tries_left_(tries_left) {}

  /// `pods`: the largest first. Empty if there are no such groups, or the search was given up.
  std::optional<std::vector<PodGroup>> run(const std::vector<FreePod>& pods, std::int64_t units) {
    if (spread_ >= nodes_ && free_of(pods, pods.size()) >= units * nodes_) {
      add_largest(pods, units);  // each node of a unit may be in a pod of its own
      return groups_;
    }
    if (!fits(pods, units)) return std::nullopt;
    return groups_;
  }
  [[nodiscard]] bool was_given_up() const { return gave_up_; }

 private:
  // The most pods that so many units connect.
  [[nodiscard]] std::int64_t most_connected(std::int64_t units) const { return units * (spread_ - 1) + 1; }

  bool fits(const std::vector<FreePod>& pods, std::int64_t units) {
    if (units == 0) return true;
    const auto connected = static_cast<std::size_t>(most_connected(units));
    if (free_of(pods, connected) >= units * nodes_) {
      add_largest(pods, units);
      return true;
    }
    // Groups of one unit use the most pods.
    if (free_of(pods, static_cast<std::size_t>(units * spread_)) < units * nodes_) return false;
    if (!failed_.insert(key_of(pods, units)).second) return false;
    for (std::int64_t in_group = 1; in_group < units; ++in_group) {
      std::vector<std::size_t> chosen{0};
      if (choose(pods, units, in_group, chosen, pods.front().free)) return true;
    }
    return false;
  }

  void add_largest(const std::vector<FreePod>& pods, std::int64_t units) {
    PodGroup& group = groups_.emplace_back();
    group.units = units;
    for (std::int64_t free = 0; free < units * nodes_; free += group.pods.back().free) {
      group.pods.push_back(pods[group.pods.size()]);
    }
  }

  // The largest pod is in a group, if need be in place of another one: in the first. `chosen` has that pod and those of
  // its group so far, the largest first.
  bool choose(const std::vector<FreePod>& pods, std::int64_t units, std::int64_t in_group,
              std::vector<std::size_t>& chosen, std::int64_t sum) {
    if (sum >= in_group * nodes_) return take(pods, units, in_group, chosen, sum);
    const std::int64_t left = most_connected(in_group) - static_cast<std::int64_t>(chosen.size());
    for (std::size_t next = chosen.back() + 1; next < pods.size(); ++next) {
      if (sum + left * pods[next].free < in_group * nodes_) return false;
      const bool is_like_last = next > chosen.back() + 1 && pods[next].free == pods[next - 1].free;
      if (is_like_last) continue;
      if (--tries_left_ < 0) gave_up_ = true;
      if (gave_up_) return false;
      chosen.push_back(next);
      const bool found = choose(pods, units, in_group, chosen, sum + pods[next].free);
      chosen.pop_back();
      if (found) return true;
    }
    return false;
  }

  bool take(const std::vector<FreePod>& pods, std::int64_t units, std::int64_t in_group,
            const std::vector<std::size_t>& chosen, std::int64_t sum) {
    if (!is_tight(pods, in_group, chosen, sum)) return false;
    std::vector<FreePod> others;
    PodGroup group{{}, in_group};
    for (std::size_t i = 0; i < pods.size(); ++i) {
      const bool is_chosen = std::find(chosen.begin(), chosen.end(), i) != chosen.end();
      (is_chosen ? group.pods : others).push_back(pods[i]);
    }
    const std::size_t before = groups_.size();
    groups_.push_back(std::move(group));
    if (fits(others, units - in_group)) return true;
    groups_.resize(before);
    return false;
  }

  // Whether no pod of a group but the first could be left out or exchanged for a smaller one that is not in the group:
  // those that remain would then be no smaller.
  [[nodiscard]] bool is_tight(const std::vector<FreePod>& pods, std::int64_t in_group,
                              const std::vector<std::size_t>& chosen, std::int64_t sum) const {
    const std::set<std::size_t> in(chosen.begin(), chosen.end());
    for (std::size_t i = 1; i < chosen.size(); ++i) {
      const std::int64_t without = sum - pods[chosen[i]].free;
      if (without >= in_group * nodes_) return false;
      for (std::size_t other = chosen[i] + 1; other < pods.size(); ++other) {
        if (in.contains(other) || pods[other].free == pods[chosen[i]].free) continue;
        if (without + pods[other].free >= in_group * nodes_) return false;
        break;  // the following are smaller
      }
    }
    return true;
  }

  static std::vector<std::int64_t> key_of(const std::vector<FreePod>& pods, std::int64_t units) {
    std::vector<std::int64_t> key{units};
    for (const FreePod& pod : pods) key.push_back(pod.free);
    return key;
  }

  std::int64_t nodes_;
  std::int64_t spread_;
  std::int64_t& tries_left_;
  bool gave_up_ = false;
  std::vector<PodGroup> groups_;
  std::set<std::vector<std::int64_t>> failed_;
};

/// Divides the units of one group among its pods, one after the other.
class GroupDivision {
 public:
  GroupDivision(PodGroup group, std::int64_t nodes, std::int64_t spread)
      : pods_(std::move(group.pods)), units_(group.units), nodes_(nodes), spread_(static_cast<std::size_t>(spread)) {
    give_back(free_of(pods_, pods_.size()) - units_ * nodes_);
  }

  void run(std::vector<std::vector<UnitDivision::Share>>& units) {
    for (; units_ > 0; --units_) {
      sort();
      std::map<std::size_t, std::int64_t> shares;
      for (const auto& [index, share] : next_unit()) {
        pods_[index].free -= share;
        shares[pods_[index].pod] += share;
      }
      HDPSIM_CHECK(shares.size() <= spread_, "a unit of {} pods, at most {}", shares.size(), spread_);
      units.emplace_back(shares.begin(), shares.end());
    }
  }

 private:
  void sort() {
    std::erase_if(pods_, [](const FreePod& pod) { return pod.free == 0; });
    std::stable_sort(pods_.begin(), pods_.end(), [](const FreePod& a, const FreePod& b) { return a.free < b.free; });
  }

  // Leaves nodes over: what exceeds whole units first, so that fewer units are in several pods.
  void give_back(std::int64_t nodes) {
    std::vector<FreePod*> by_rest;
    for (FreePod& pod : pods_) by_rest.push_back(&pod);
    const auto rest = [&](const FreePod* pod) { return pod->free % nodes_; };
    std::stable_sort(by_rest.begin(), by_rest.end(),
                     [&](const FreePod* a, const FreePod* b) { return rest(a) < rest(b); });
    for (FreePod* pod : by_rest) {
      if (rest(pod) > nodes) break;
      nodes -= rest(pod);
      pod->free -= rest(pod);
    }
    for (std::size_t i = pods_.size(); nodes > 0; --i) {  // the smallest first
      const std::int64_t here = std::min(nodes, pods_[i - 1].free);
      nodes -= here;
      pods_[i - 1].free -= here;
    }
  }

  // Pods by index, the smallest first, and nodes of each. The units after it connect the pods that it leaves.
  std::vector<UnitDivision::Share> next_unit() {
    const std::size_t connected = static_cast<std::size_t>(units_ - 1) * (spread_ - 1) + 1;
    if (pods_.size() <= connected) return from_the_largest();
    return with_the_smallest();
  }

  std::vector<UnitDivision::Share> from_the_largest() {
    std::vector<UnitDivision::Share> unit;
    std::int64_t left = nodes_;
    for (std::size_t i = pods_.size(); left > 0; left -= unit.back().second) {
      --i;
      unit.emplace_back(i, std::min(left, pods_[i].free));
    }
    return unit;
  }

  // The unit uses up pods. One of the `spread_` pods of a window is raised from one try to the next, from the smallest
  // pods to the largest, until they suffice; all of them but the raised one are then too few by themselves.
  std::vector<UnitDivision::Share> with_the_smallest() {
    const std::size_t width = std::min(spread_, pods_.size());
    std::vector<std::size_t> window(width);
    std::iota(window.begin(), window.end(), std::size_t{0});
    const auto sum = [&] {
      std::int64_t free = 0;
      for (const std::size_t i : window) free += pods_[i].free;
      return free;
    };
    std::size_t raised = width - 1;
    while (sum() < nodes_) {
      if (window[raised] == pods_.size() - width + raised) --raised;
      ++window[raised];
    }
    std::swap(window[raised], window.back());
    std::vector<UnitDivision::Share> unit;
    std::int64_t left = nodes_;
    for (const std::size_t i : window) {
      if (left == 0) break;
      unit.emplace_back(i, std::min(left, pods_[i].free));
      left -= unit.back().second;
    }
    return unit;
  }

  std::vector<FreePod> pods_;
  std::int64_t units_;
  std::int64_t nodes_;
  std::size_t spread_;
};

std::vector<FreePod> largest_first(const std::vector<std::int64_t>& free) {
  std::vector<FreePod> pods;
  for (std::size_t pod = 0; pod < free.size(); ++pod) {
    if (free[pod] > 0) pods.push_back({free[pod], pod});
  }
  std::stable_sort(pods.begin(), pods.end(), [](const FreePod& a, const FreePod& b) { return a.free > b.free; });
  return pods;
}

/// The fewest pods for units of a given spread.
struct FewestPods {
  std::optional<std::vector<PodGroup>> groups;
  std::int64_t pods = 0;
  std::optional<std::int64_t> least;  ///< No fewer pods do; empty if not even all of them do.
};

FewestPods fewest_for_whole_units(const std::vector<FreePod>& pods, const DivisionTask& task) {
  std::vector<PodGroup> groups;
  std::int64_t left = task.units;
  for (std::size_t i = 0; i < pods.size() && left > 0; ++i) {
    const std::int64_t here = std::min(left, pods[i].free / task.nodes);
    if (here > 0) groups.push_back({{pods[i]}, here});
    left -= here;
  }
  if (left > 0) return {};
  const auto count = static_cast<std::int64_t>(groups.size());
  return {std::move(groups), count, count};
}

// `by_nodes`: the fewest pods that have so many nodes.
FewestPods fewest_pods(const std::vector<FreePod>& pods, const DivisionTask& task, std::int64_t spread,
                       std::int64_t by_nodes, std::int64_t& tries_left) {
  if (spread == 1) return fewest_for_whole_units(pods, task);
  FewestPods answer;
  for (auto count = by_nodes; !answer.groups && count <= static_cast<std::int64_t>(pods.size()); ++count) {
    GroupSearch search(task.nodes, spread, tries_left);
    answer.groups = search.run({pods.begin(), pods.begin() + count}, task.units);
    answer.pods = count;
    if (!answer.least && (answer.groups || search.was_given_up())) answer.least = count;
  }
  return answer;
}

double cost_of(const DivisionTask& task, std::int64_t pods, std::int64_t spread) {
  return task.alpha * static_cast<double>(pods) + (1 - task.alpha) * static_cast<double>(spread);
}

UnitDivision divided(const std::vector<PodGroup>& groups, const DivisionTask& task, std::int64_t spread) {
  UnitDivision division;
  for (const PodGroup& group : groups) GroupDivision(group, task.nodes, spread).run(division.units);
  std::sort(division.units.begin(), division.units.end(), [](const auto& a, const auto& b) {
    const auto pod_of = [](const UnitDivision::Share& share) { return share.first; };
    if (std::ranges::equal(a, b, {}, pod_of, pod_of)) return a < b;
    return std::ranges::lexicographical_compare(a, b, {}, pod_of, pod_of);
  });
  std::set<std::size_t> used;
  for (const auto& unit : division.units) {
    division.spread = std::max(division.spread, static_cast<std::int64_t>(unit.size()));
    for (const UnitDivision::Share& share : unit) used.insert(share.first);
  }
  division.pods = static_cast<std::int64_t>(used.size());
  division.cost = cost_of(task, division.pods, division.spread);
  return division;
}

}  // namespace

UnitDivision divide_units(const DivisionTask& task, std::int64_t most_tries) {
  const std::vector<FreePod> pods = largest_first(task.free);
  HDPSIM_CHECK(task.units > 0 && task.nodes > 0 && free_of(pods, pods.size()) >= task.units * task.nodes,
               "{} units of {} nodes on {} free ones", task.units, task.nodes, free_of(pods, pods.size()));
  std::int64_t by_nodes = 0;
  for (std::int64_t free = 0; free < task.units * task.nodes; ++by_nodes) {
    free += pods[static_cast<std::size_t>(by_nodes)].free;
  }
  constexpr double rounding = 1e-9;  // of costs that are equal
  UnitDivision best;
  double least = std::numeric_limits<double>::infinity();
  std::int64_t tries_left = most_tries;
  const auto most_spread = std::min(task.nodes, static_cast<std::int64_t>(pods.size()));
  for (std::int64_t spread = 1; spread <= most_spread; ++spread) {
    const FewestPods fewest = fewest_pods(pods, task, spread, by_nodes, tries_left);
    if (fewest.least) least = std::min(least, cost_of(task, *fewest.least, spread));
    if (!fewest.groups) continue;
    UnitDivision division = divided(*fewest.groups, task, spread);
    if (best.units.empty() || division.cost < best.cost - rounding) best = std::move(division);
    if (fewest.pods == by_nodes) break;  // a wider spread would save no pod
  }
  best.least_cost = std::min(best.cost, least);
  return best;
}

}  // namespace hdpsim
