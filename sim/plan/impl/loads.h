#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <vector>

namespace hdpsim {

/// The end of what cannot be done: later than all that can.
inline constexpr double never = std::numeric_limits<double>::infinity();

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

/// Numbered bins that get more and more load: finds the one of least load, the first among equals. A heap of all bins
/// would miss the cache on every level; here the bins that are next are a round, in their order, and those that got
/// load wait for the next round, for which they are sorted. Bins with far more load than others come in when the others
/// have as much.
class LeastLoaded {
 public:
  /// At least one bin, and finite loads.
  explicit LeastLoaded(const std::vector<double>& loads);

  /// The bin of least load. O(1).
  [[nodiscard]] std::size_t bin() const { return front().bin; }
  /// A bin that comes soon, if none gets in between.
  [[nodiscard]] std::size_t bin_ahead() const {
    constexpr std::size_t ahead = 12;
    return sorted_[std::min(next_ + ahead, sorted_.size() - 1)].bin;
  }

  /// Adds to the load of bin(); no less than 0. O(log bins), amortised.
  void add(double more) {
    const Load moved{front().load + more, front().bin};
    if (more > 0) least_step_ = std::min(least_step_, more);
    is_again() ? again_.pop() : static_cast<void>(++next_);
    if (moved.load <= end_) {
      again_.push(moved);
    } else {
      later_.push_back(moved);
    }
    if (next_ == in_round_ && again_.empty()) begin_round();
  }

  /// The loads by bin.
  void get(std::vector<double>& loads);

 private:
  struct Load {
    double load;
    std::uint32_t bin;
    // By load, equal ones by bin. Loads are numbers, so that two comparisons decide.
    friend bool operator<(const Load& a, const Load& b) {
      return a.load < b.load || (a.load == b.load && a.bin < b.bin);
    }
    friend bool operator>(const Load& a, const Load& b) { return b < a; }
  };

  [[nodiscard]] bool is_again() const {
    return !again_.empty() && (next_ == in_round_ || again_.top() < sorted_[next_]);
  }
  [[nodiscard]] const Load& front() const { return is_again() ? again_.top() : sorted_[next_]; }
  void sort(std::vector<Load>& loads);
  void begin_round();
  void merge_in(std::vector<Load>::const_iterator begin, std::vector<Load>::const_iterator end);

  std::vector<Load> initial_;  // all bins by the load that they began with; the first `joined_` are elsewhere
  std::size_t joined_ = 0;
  std::vector<Load> sorted_;  // by load; the first `in_round_` are the round, the first `next_` of which are done
  std::size_t in_round_ = 0;
  std::size_t next_ = 0;
  double end_ = 0;                                                      // the largest load of the round
  std::priority_queue<Load, std::vector<Load>, std::greater<>> again_;  // bins that are in the round again
  std::vector<Load> later_;                                             // those that are not, in any order
  std::vector<Load> merged_;
  std::vector<std::uint32_t> ends_;  // of the parts of a sort
  double least_step_ = never;        // by which a load of this round has grown
};

/// Deals items, in their order, each to the bin of least load so far, the first among equals: longest processing time
/// first (Graham 1969) if `items` are by falling cost. `cost(item)` is added to the load of its bin. Returns the items
/// of each bin, and updates the loads. O(bins log bins + items log bins).
template <class Cost>
[[nodiscard]] std::vector<std::vector<std::size_t>> deal_to_least_loaded(std::span<const std::size_t> items,
                                                                         std::vector<double>& loads, const Cost& cost) {
  std::vector<std::vector<std::size_t>> dealt(loads.size());
  LeastLoaded least_loaded(loads);
  for (const std::size_t item : items) {
    dealt[least_loaded.bin()].push_back(item);
    least_loaded.add(cost(item));
  }
  least_loaded.get(loads);
  return dealt;
}

}  // namespace hdpsim
