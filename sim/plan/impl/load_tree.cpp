#include "sim/plan/impl/load_tree.h"

#include <algorithm>
#include <array>
#include <bit>

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

}  // namespace hdpsim
