#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "sim/plan/impl/never.h"

namespace hdpsim {

/// Which of a LoadTree's bins count, and with which load.
struct LoadQuery {
  double most_used = never;  ///< Those that use at most so much.
  double more = 0;           ///< What is added to every load, ...
  double floor = 0;          ///< ... which then counts as this at least.
};

/// Numbered bins, each with a load and with what of its room is used: where the least loaded one is found of those that
/// have room. A binary tree over the bins, each node of which has the least of both. At first no bin is open: all have
/// a load of `never`.
class LoadTree {
 public:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  explicit LoadTree(std::size_t bins);

  /// O(log bins).
  void set(std::size_t bin, double load, double used);

  /// The first of the open bins of the least load; `none` if none has room. O(log bins) where the least loaded bins
  /// have room or none has, as mostly in packing; O(bins) otherwise.
  [[nodiscard]] std::size_t least(const LoadQuery& query = {}) const;
  /// The first of the bins that use least. O(log bins).
  [[nodiscard]] std::size_t emptiest() const;

 private:
  struct Node {
    double load;
    double used;
    std::size_t bin;  // the first one of that load
    bool operator==(const Node&) const = default;
  };

  [[nodiscard]] std::size_t least_by_looking(const LoadQuery& query) const;
  [[nodiscard]] bool is_answer(std::size_t node, const LoadQuery& query) const;
  [[nodiscard]] double load_of(std::size_t node, const LoadQuery& query) const;
  [[nodiscard]] std::size_t first_of(std::size_t node) const;

  std::size_t leaves_;       // a power of two
  std::vector<Node> nodes_;  // the root is 1, the children of i are 2 i and 2 i + 1
};

}  // namespace hdpsim
