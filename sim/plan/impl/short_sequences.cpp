#include "sim/plan/impl/short_sequences.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace hdpsim {

ShortSequences::ShortSequences(const Batch& batch, std::span<const std::size_t> longest_first)
    : batch_(batch), ascending_(longest_first.rbegin(), longest_first.rend()), last_left_(ascending_.size() + 1) {
  const auto tokens = [&](std::size_t sequence) { return batch_.sequences[sequence].tokens; };
  for (auto first = ascending_.begin(); first != ascending_.end();) {
    const auto longer = [&](std::size_t sequence) { return tokens(sequence) > tokens(*first); };
    const auto end = std::find_if(first, ascending_.end(), longer);
    std::reverse(first, end);
    first = end;
  }
  std::iota(last_left_.begin(), last_left_.end(), 0U);
}

std::size_t ShortSequences::last_left(std::size_t end) {
  while (last_left_[end] != end) {
    last_left_[end] = last_left_[last_left_[end]];
    end = last_left_[end];
  }
  return end;
}

std::optional<std::size_t> ShortSequences::take_longest_within(
    std::int64_t most, const std::function<bool(std::size_t sequence)>& wanted) {
  const auto fits = [&](std::size_t sequence) { return batch_.sequences[sequence].tokens <= most; };
  const auto beyond = std::partition_point(ascending_.begin(), ascending_.end(), fits);
  const std::size_t place = last_left(static_cast<std::size_t>(beyond - ascending_.begin()));
  if (place == 0 || !wanted(ascending_[place - 1])) return std::nullopt;
  last_left_[place] = static_cast<std::uint32_t>(place - 1);
  return ascending_[place - 1];
}

SequenceList ShortSequences::rest() const {
  SequenceList sequences;
  for (std::size_t place = ascending_.size(); place > 0; --place) {
    if (last_left_[place] == place) sequences.push_back(ascending_[place - 1]);
  }
  return sequences;
}

namespace {

/// The micro-batches of one rank that have room, while best fit fills them.
class OpenPacks {
 public:
  struct Pack {
    std::int64_t room;
    std::uint32_t id;
    double seconds;  ///< Seconds so far, including the fixed time.
  };

  /// Takes out the fullest pack that has room for `tokens`.
  std::optional<Pack> take(std::int64_t tokens) {
    const auto fit = from(tokens);
    if (fit == ascending_.end()) return std::nullopt;
    const Pack pack = *fit;
    ascending_.erase(fit);
    return pack;
  }

  void put(Pack pack) {
    if (pack.room > 0) ascending_.insert(from(pack.room), pack);
  }

 private:
  std::vector<Pack>::iterator from(std::int64_t room) {
    return std::lower_bound(ascending_.begin(), ascending_.end(), room,
                            [](const Pack& pack, std::int64_t least) { return pack.room < least; });
  }

  std::vector<Pack> ascending_;  // by room
};

/// The rank that is done first, the lowest among equals. A heap with four children per node: they share a cache line,
/// and the path down, with a miss per level in large pools, is half as long as with two.
class LeastLoaded {
 public:
  explicit LeastLoaded(const std::vector<double>& loads) {
    heap_.reserve(loads.size());
    for (std::size_t rank = 0; rank < loads.size(); ++rank) heap_.push_back({loads[rank], rank});
    std::sort(heap_.begin(), heap_.end());
  }

  [[nodiscard]] std::size_t rank() const { return heap_.front().second; }

  /// Sets the load of rank(), which must not decrease.
  void set_load(double load) {
    const Load moved{load, rank()};
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap_.size(); child = children * hole + 1) {
      const auto begin = heap_.begin() + static_cast<std::ptrdiff_t>(child);
      const auto end = heap_.begin() + static_cast<std::ptrdiff_t>(std::min(child + children, heap_.size()));
      const auto least = std::min_element(begin, end);
      if (!(*least < moved)) break;
      heap_[hole] = *least;
      hole = static_cast<std::size_t>(least - heap_.begin());
    }
    heap_[hole] = moved;
  }

 private:
  static constexpr std::size_t children = 4;
  using Load = std::pair<double, std::size_t>;  // seconds and rank
  std::vector<Load> heap_;
};

/// The lengths in a separate pass: they are scattered in memory, and the dealing would wait for each one.
std::vector<std::int64_t> lengths_of(const Batch& batch, const SequenceList& sequences) {
  std::vector<std::int64_t> tokens(sequences.size());
  std::transform(sequences.begin(), sequences.end(), tokens.begin(),
                 [&](std::size_t sequence) { return batch.sequences[sequence].tokens; });
  return tokens;
}

/// The indices of `keys` by key, those of one key in their order; `ends`: the end of each key's indices.
struct ByKey {
  std::vector<std::size_t> indices;
  std::vector<std::size_t> ends;
};

ByKey by_key(const std::vector<std::uint32_t>& keys, std::size_t count) {
  ByKey sorted{std::vector<std::size_t>(keys.size()), std::vector<std::size_t>(count + 1)};
  for (const std::uint32_t key : keys) ++sorted.ends[key + 1];
  std::partial_sum(sorted.ends.begin(), sorted.ends.end(), sorted.ends.begin());
  // Each entry is the begin of its key at first, and its end after this loop.
  for (std::size_t index = 0; index < keys.size(); ++index) sorted.indices[sorted.ends[keys[index]]++] = index;
  return sorted;
}

}  // namespace

void DealtSequences::add_to(PlanBuilder& builder) const {
  ByKey by_pack = by_key(packs, ranks.size());
  for (std::size_t& index : by_pack.indices) index = sequences[index];
  const std::size_t pool = ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end()) + std::size_t{1};
  for (const std::size_t pack : by_key(ranks, pool).indices) {
    const std::size_t begin = pack == 0 ? 0 : by_pack.ends[pack - 1];
    builder.add_consecutive(ranks[pack], {}, std::span(by_pack.indices).subspan(begin, by_pack.ends[pack] - begin));
  }
}

DealtSequences deal_to_least_loaded(const Batch& batch, SequenceList sequences, const PlanningContext& context,
                                    std::vector<double>& loads, const std::vector<double>& speeds) {
  DealtSequences dealt{.sequences = std::move(sequences), .packs = {}, .ranks = {}};
  dealt.packs.reserve(dealt.sequences.size());
  LeastLoaded least_loaded(loads);
  std::vector<OpenPacks> open(loads.size());
  for (const std::int64_t tokens : lengths_of(batch, dealt.sequences)) {
    const std::size_t rank = least_loaded.rank();
    double seconds = context.work.compute_seconds(causal_pairs(tokens), tokens);
    std::optional<OpenPacks::Pack> pack = open[rank].take(tokens);
    double below_least = 0;  // is in the load already
    if (pack) {
      below_least = std::max(0.0, context.work.least - pack->seconds);
    } else {
      pack = {context.capacity, static_cast<std::uint32_t>(dealt.ranks.size()), 0};
      dealt.ranks.push_back(static_cast<std::uint32_t>(rank));
      seconds += context.work.per_micro_batch;
    }
    dealt.packs.push_back(pack->id);
    pack->seconds += seconds;
    open[rank].put({pack->room - tokens, pack->id, pack->seconds});
    seconds += std::max(0.0, context.work.least - pack->seconds) - below_least;
    loads[rank] += speeds.empty() ? seconds : seconds / speeds[rank];
    least_loaded.set_load(loads[rank]);
  }
  return dealt;
}

}  // namespace hdpsim
