#include "sim/plan/impl/rank_loads.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {

RankLoads::RankLoads(std::int64_t ranks, std::int64_t ranks_per_node, double delta,
                     const std::vector<std::int64_t>& held_back)
    : ranks_per_node_(ranks_per_node),
      delta_(delta),
      loads_(static_cast<std::size_t>(ranks), 0.0),
      held_back_(held_back) {
  HDPSIM_CHECK(delta > 0 && ranks_per_node > 0, "delta {}, ranks per node {}", delta, ranks_per_node);
  std::vector<bool> is_held_back(loads_.size());
  for (const std::int64_t rank : held_back) is_held_back.at(static_cast<std::size_t>(rank)) = true;
  std::vector<std::int64_t> free;
  free.reserve(loads_.size());
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (!is_held_back[static_cast<std::size_t>(rank)]) free.push_back(rank);
  }
  put(free, 0);
}

void RankLoads::make_available(std::int64_t count) {
  if (count <= ranks_in_levels_) return;
  for (const std::int64_t rank : std::exchange(held_back_, {})) put(rank, loads_[static_cast<std::size_t>(rank)]);
}

std::int64_t RankLoads::target_count() const {
  return levels_.empty() ? 0 : ranks_in_levels_ - levels_.rbegin()->second.ranks;
}

std::vector<RankLoads::Offer> RankLoads::offers() const {
  std::vector<Offer> offers;
  offers.reserve(levels_.size());
  std::int64_t ranks = 0;
  for (const auto& [number, level] : levels_) {
    ranks += level.ranks;
    offers.push_back({ranks, level.latest});
  }
  return offers;
}

void RankLoads::put(std::span<const std::int64_t> ranks, double load) {
  if (ranks.empty()) return;
  Level& level = levels_[static_cast<std::int64_t>(std::floor(load / delta_))];
  for (std::size_t i = 0; i < ranks.size();) {
    const std::int64_t node = ranks[i] / ranks_per_node_;
    std::vector<std::int64_t>& members = level.nodes[node];
    if (!members.empty()) level.nodes_by_size.erase({static_cast<std::int64_t>(members.size()), node});
    for (; i < ranks.size() && ranks[i] / ranks_per_node_ == node; ++i) {
      loads_[static_cast<std::size_t>(ranks[i])] = load;
      members.push_back(ranks[i]);
    }
    level.nodes_by_size.insert({static_cast<std::int64_t>(members.size()), node});
  }
  level.latest = std::max(level.latest, load);
  level.ranks += std::ssize(ranks);
  ranks_in_levels_ += std::ssize(ranks);
}

// Takes whole nodes while `count` needs them, then the smallest remainder of a node that suffices; if none does, the
// largest.
void RankLoads::take_from(Level& level, std::int64_t count, std::vector<std::int64_t>& taken) {
  while (count > 0) {
    auto chosen = level.nodes_by_size.lower_bound({std::min(count, ranks_per_node_), 0});
    if (chosen == level.nodes_by_size.end()) {
      chosen = level.nodes_by_size.lower_bound({level.nodes_by_size.rbegin()->first, 0});
    }
    const auto [size, node] = *chosen;
    level.nodes_by_size.erase(chosen);
    const auto members = level.nodes.find(node);
    std::vector<std::int64_t>& ranks = members->second;
    std::sort(ranks.begin(), ranks.end());
    const std::int64_t used = std::min(count, size);
    taken.insert(taken.end(), ranks.begin(), ranks.begin() + used);
    ranks.erase(ranks.begin(), ranks.begin() + used);
    if (ranks.empty()) {
      level.nodes.erase(members);
    } else {
      level.nodes_by_size.insert({size - used, node});
    }
    level.ranks -= used;
    ranks_in_levels_ -= used;
    count -= used;
  }
}

RankLoads::Levels::iterator RankLoads::last_level_for(std::int64_t count) {
  auto level = levels_.begin();
  for (std::int64_t ranks = level->second.ranks; ranks < count; ranks += level->second.ranks) ++level;
  return level;
}

std::vector<std::int64_t> RankLoads::take(std::int64_t count, RankChoice choice) {
  HDPSIM_CHECK(count >= 1 && count <= ranks_in_levels_, "{} of {} ranks", count, ranks_in_levels_);
  std::vector<std::int64_t> taken;
  taken.reserve(static_cast<std::size_t>(count));
  auto level = choice == RankChoice::least_wait ? last_level_for(count) : levels_.begin();
  while (true) {
    const std::int64_t here = std::min(count, level->second.ranks);
    take_from(level->second, here, taken);
    count -= here;
    if (count == 0) break;
    level = levels_.erase(level);
    if (choice == RankChoice::least_wait) --level;
  }
  if (level->second.ranks == 0) levels_.erase(level);
  std::sort(taken.begin(), taken.end());
  return taken;
}

}  // namespace hdpsim
