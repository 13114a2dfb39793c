#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hdpsim {

/// Lets the last of several bins end earlier: it exchanges something with one of the bins that end first, again and
/// again.
class ExchangeSearch {
 public:
  virtual ~ExchangeSearch() = default;
  /// Ends where no exchange helps, or where an end is early enough.
  void run();

 protected:
  /// The `partners` bins that end first are those with which the last one may exchange.
  explicit ExchangeSearch(std::size_t partners) : partners_(partners) {}

  /// Asked before every exchange.
  [[nodiscard]] virtual bool is_enough(double last_end) = 0;
  /// Makes the best exchange of `from`, the last bin, with one of the partners, none of which is `from`, and keeps
  /// `ends_`. False if none helps.
  virtual bool exchange(std::size_t from, std::span<const std::size_t> partners) = 0;

  std::vector<double> ends_;  ///< By bin.

 private:
  std::size_t partners_;
};

/// What items cost in bins of several kinds. Items are in falling order of their tokens, and no kind takes an item to
/// cost more than the one before it.
struct ItemCosts {
  std::vector<std::int64_t> tokens;          ///< By item.
  std::vector<std::vector<double>> of_kind;  ///< By kind and item.
};

/// Items that take turns, and when they end.
struct Bin {
  std::size_t kind = 0;      ///< Of ItemCosts::of_kind.
  std::int64_t room = 0;     ///< The most tokens of its items together,
  std::int64_t longest = 0;  ///< and of one of them.
  double weight = 1;         ///< It ends at weight x (cost of its items + fixed) + tail x cost of the largest one;
  double fixed = 0;          ///< without items, at 0.
  double tail = 0;           ///< At least 0.
  std::size_t origin = 0;    ///< For whoever made it.

  double cost = 0;                   ///< Sum of its items.
  std::int64_t tokens = 0;           ///< Sum of its items.
  std::vector<std::size_t> items{};  ///< In rising order, so that the largest is the first.

  void add(std::size_t item, const ItemCosts& costs);
  [[nodiscard]] double end(const ItemCosts& costs) const;
};

/// When the last bin ends; 0 without bins.
[[nodiscard]] double last_end(const std::vector<Bin>& bins, const ItemCosts& costs);

/// Lets the last bin end earlier by moving up to two of its items to another bin, for none, one or two of that bin's,
/// again and again: each time the best such exchange with any of the 16 bins that end first. Bins of more than 32 items
/// exchange single ones. Ends where no exchange helps, where the last end is at most `enough`, or where `budget`, which
/// counts the exchanges that were looked at, is spent; it is lowered by those. Deterministic. An exchange of bins of n
/// and m items takes O(n log m), with n^2 and m^2 in place of n and m up to 32 items.
void exchange_items(std::vector<Bin>& bins, const ItemCosts& costs, double enough, std::int64_t& budget);

/// The same, and where no exchange helps any more, again from there after a few exchanges at random, of which only what
/// lets the last bin end earlier is kept: up to `restarts` times. The random numbers are the same in every call, so
/// that the answer depends on the arguments alone.
void exchange_with_restarts(std::vector<Bin>& bins, const ItemCosts& costs, double enough, int restarts,
                            std::int64_t& budget);

/// Work as the methods below add it up: whole numbers of 128 bits, whose sums are exact for any batch.
__extension__ using ExactWork = unsigned __int128;

/// Divides values into `parts` sets of similar sums by the largest differencing method (Karmarkar and Karp 1982), as
/// verl and OpenRLHF do (verl/utils/seqlen_balancing.py, karmarkar_karp): every state has `parts` sets; the two states
/// with the largest difference between their largest and smallest sets are joined, the largest set of the one with the
/// smallest of the other, until one state is left.
///
/// `equal_sizes`: all sets get the same number of values, which must be a multiple of `parts` (checked). The result has
/// the sets by falling sum, each with the places of its values in ascending order; with fewer values than parts some
/// are empty. O(n log^2 n) comparisons for n values.
[[nodiscard]] std::vector<std::vector<std::size_t>> largest_differencing(std::span<const ExactWork> values,
                                                                         std::size_t parts, bool equal_sizes);

}  // namespace hdpsim
