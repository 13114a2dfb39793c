#include "sim/plan/impl/loads.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

namespace hdpsim {

LoadTree::LoadTree(std::size_t bins) : leaves_(std::bit_ceil(std::max<std::size_t>(1, bins))) {
  nodes_.assign(2 * leaves_, {never, never, 0});
}

void LoadTree::set(std::size_t bin, double load, double used) {
  std::size_t node = leaves_ + bin;
  nodes_[node] = {load, used, bin};
  for (node /= 2; node > 0; node /= 2) {
    const Node& left = nodes_[2 * node];
    const Node& right = nodes_[2 * node + 1];
    const Node& least = right.load < left.load ? right : left;
    const Node now{least.load, std::min(left.used, right.used), least.bin};
    if (now == nodes_[node]) return;
    nodes_[node] = now;
  }
}

std::size_t LoadTree::emptiest() const {
  std::size_t node = 1;
  while (node < leaves_) node = 2 * node + (nodes_[2 * node + 1].used < nodes_[2 * node].used ? 1 : 0);
  return node - leaves_;
}

std::size_t LoadTree::first_of(std::size_t node) const {
  return (node << (std::bit_width(leaves_) - std::bit_width(node))) - leaves_;
}

// Nodes that may hold a better bin than the best so far, the more promising child of each first. Where the least loaded
// bins are full, that is most nodes: then a look at each bin is faster.
std::size_t LoadTree::least(const LoadQuery& query) const {
  std::array<std::size_t, 64> open;  // not cleared, which would take longer than the search
  std::size_t count = 0;
  open[count++] = 1;
  double least = never;
  std::size_t best = none;
  for (auto looks = 8 * std::bit_width(leaves_); count > 0; --looks) {
    if (looks == 0) return least_by_looking(query);
    const std::size_t node = open[--count];
    const double load = load_of(node, query);
    if (nodes_[node].used > query.most_used || load > least) continue;
    if (load == least && (load == never || first_of(node) > best)) continue;
    if (const std::size_t bin = nodes_[node].bin; is_answer(node, query)) {
      least = load;
      best = bin;
      continue;
    }
    const bool right_first = load_of(2 * node + 1, query) < load_of(2 * node, query);
    open[count++] = 2 * node + (right_first ? 0 : 1);
    open[count++] = 2 * node + (right_first ? 1 : 0);
  }
  return best;
}

// Loads that differ may be equal with what is added, or below the floor: the first of them is then further down.
bool LoadTree::is_answer(std::size_t node, const LoadQuery& query) const {
  const bool are_as_stored = query.more == 0 && nodes_[node].load >= query.floor;
  return node >= leaves_ || (are_as_stored && nodes_[leaves_ + nodes_[node].bin].used <= query.most_used);
}

std::size_t LoadTree::least_by_looking(const LoadQuery& query) const {
  double least = never;
  std::size_t best = none;
  for (std::size_t leaf = leaves_; leaf < nodes_.size() && least > query.floor; ++leaf) {
    const double load = load_of(leaf, query);
    if (nodes_[leaf].used > query.most_used || load >= least) continue;
    least = load;
    best = leaf - leaves_;
  }
  return best;
}

double LoadTree::load_of(std::size_t node, const LoadQuery& query) const {
  return std::max(query.floor, nodes_[node].load + query.more);
}

LeastLoaded::LeastLoaded(const std::vector<double>& loads) {
  initial_.reserve(loads.size());
  for (std::size_t bin = 0; bin < loads.size(); ++bin) {
    initial_.push_back({loads[bin], static_cast<std::uint32_t>(bin)});
  }
  sort(initial_);
  begin_round();
}

// First into as many parts of equal width as there are loads, then each part alone (Knuth, The Art of Computer
// Programming, 5.2.5, exercise 10). O(n) where they are spread, as mostly; O(n log n) where they are not.
void LeastLoaded::sort(std::vector<Load>& loads) {
  constexpr std::size_t few = 64;
  if (loads.size() < few) return std::sort(loads.begin(), loads.end());
  const auto [first, last] = std::minmax_element(loads.begin(), loads.end());
  const double least = first->load;
  const double per_second = static_cast<double>(loads.size() - 1) / (last->load - least);
  if (!std::isfinite(per_second)) return std::sort(loads.begin(), loads.end());
  const auto part = [&](const Load& each) { return static_cast<std::size_t>((each.load - least) * per_second); };
  ends_.assign(loads.size() + 2, 0);
  for (const Load& each : loads) ++ends_[part(each) + 1];
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  merged_.resize(loads.size());
  // Each entry is the begin of its part at first, and its end after this loop.
  for (const Load& each : loads) merged_[ends_[part(each)]++] = each;
  std::swap(loads, merged_);
  std::uint32_t begin = 0;
  for (const std::uint32_t end : ends_) {
    if (end - begin > 1) std::sort(loads.begin() + begin, loads.begin() + end);
    begin = end;
  }
}

void LeastLoaded::get(std::vector<double>& loads) {
  for (; !again_.empty(); again_.pop()) later_.push_back(again_.top());
  for (const Load& load : later_) loads[load.bin] = load.load;
  for (std::size_t i = next_; i < sorted_.size(); ++i) loads[sorted_[i].bin] = sorted_[i].load;
}

// A round as wide as the least step, so that no bin comes twice in it; but no narrower than a part of all that is
// sorted, so that these are not gone through for the sake of a few.
void LeastLoaded::begin_round() {
  constexpr double most_rounds = 32;
  sort(later_);
  sorted_.erase(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(in_round_));
  merge_in(later_.begin(), later_.end());
  later_.clear();
  const bool none = sorted_.empty();
  const bool joins_first = none || (joined_ < initial_.size() && initial_[joined_] < sorted_.front());
  const double first = joins_first ? initial_[joined_].load : sorted_.front().load;
  const double all = none ? 0 : sorted_.back().load - first;
  const double step = std::isfinite(least_step_) ? least_step_ : 0;
  end_ = first + std::max(step, all / most_rounds);
  const auto is_in = [&](const Load& load) { return load.load <= end_; };
  const auto joining = initial_.begin() + static_cast<std::ptrdiff_t>(joined_);
  const auto joined = std::partition_point(joining, initial_.end(), is_in);
  merge_in(joining, joined);
  joined_ = static_cast<std::size_t>(joined - initial_.begin());
  next_ = 0;
  in_round_ = static_cast<std::size_t>(std::partition_point(sorted_.begin(), sorted_.end(), is_in) - sorted_.begin());
  least_step_ = never;
}

void LeastLoaded::merge_in(std::vector<Load>::const_iterator begin, std::vector<Load>::const_iterator end) {
  if (begin == end) return;
  merged_.resize(sorted_.size() + static_cast<std::size_t>(end - begin));
  std::merge(sorted_.begin(), sorted_.end(), begin, end, merged_.begin());
  std::swap(sorted_, merged_);
}

}  // namespace hdpsim
