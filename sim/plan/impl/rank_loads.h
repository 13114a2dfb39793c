#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace hdpsim {

/// Which ranks a micro-batch gets, among those that are free in time.
enum class RankChoice {
  least_wait,    ///< The ranks that became free last, so that the least loaded stay free for narrower work.
  least_loaded,  ///< As in ByteScale's Algorithm 2; ranks that are far behind are included and wait.
};

/// The ranks of the pool by the seconds of work assigned so far. Loads are compared in levels of `delta` seconds: ranks
/// of one level count as equally loaded, and among equals whole nodes are taken first.
class RankLoads {
 public:
  /// All ranks start at zero. `delta` > 0 seconds; `ranks_per_node` consecutive ranks form a node.
  /// The ranks `held_back` are in no level until they are released.
  RankLoads(std::int64_t ranks, std::int64_t ranks_per_node, double delta,
            const std::vector<std::int64_t>& held_back = {});

  /// Makes at least `count` ranks available, if necessary by releasing those held back.
  void make_available(std::int64_t count);

  /// Number of ranks more than delta below the maximum, counted in levels: those below the level of the most loaded
  /// rank.
  [[nodiscard]] std::int64_t target_count() const;

  /// `ranks` ranks are free at `start` seconds.
  struct Offer {
    std::int64_t ranks;
    double start;
  };
  /// One offer per level, from the least to the most loaded. O(levels).
  [[nodiscard]] std::vector<Offer> offers() const;

  /// Takes `count` ranks that are free together as early as possible, in ascending order. They are in no level until
  /// they are put back. O(levels + count log ranks).
  [[nodiscard]] std::vector<std::int64_t> take(std::int64_t count, RankChoice choice);
  /// Puts taken ranks, in ascending order, back with their new load. O(log levels + nodes log nodes).
  void put(std::span<const std::int64_t> ranks, double load);
  void put(std::int64_t rank, double load) { put({&rank, 1}, load); }

  [[nodiscard]] double load(std::int64_t rank) const { return loads_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const std::vector<double>& loads() const { return loads_; }

 private:
  struct Level {
    std::int64_t ranks = 0;
    double latest = 0;                                              // the largest load that was put here
    std::map<std::int64_t, std::vector<std::int64_t>> nodes;        // node -> its ranks here, in any order
    std::set<std::pair<std::int64_t, std::int64_t>> nodes_by_size;  // (ranks here, node)
  };
  using Levels = std::map<std::int64_t, Level>;

  /// The last level that is needed for `count` ranks.
  [[nodiscard]] Levels::iterator last_level_for(std::int64_t count);
  void take_from(Level& level, std::int64_t count, std::vector<std::int64_t>& taken);

  std::int64_t ranks_per_node_;
  double delta_;
  std::vector<double> loads_;
  std::vector<std::int64_t> held_back_;
  Levels levels_;
  std::int64_t ranks_in_levels_ = 0;
};

}  // namespace hdpsim
