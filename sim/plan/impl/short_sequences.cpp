#include "sim/plan/impl/short_sequences.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "sim/plan/impl/loads.h"

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
  sequences.reserve(ascending_.size());
  for (std::size_t place = ascending_.size(); place > 0; --place) {
    if (last_left_[place] == place) sequences.push_back(ascending_[place - 1]);
  }
  return sequences;
}

namespace {

/// A micro-batch that has room.
struct OpenPack {
  std::int64_t room;
  std::uint32_t id;
  double seconds;  ///< Seconds so far, including the fixed time.
};

/// The micro-batches of every rank that have room, while best fit fills them. Most ranks have few of them: these lie
/// side by side, so that a rank costs a look at one place in memory.
class OpenPacks {
 public:
  /// No sequence is shorter than `shortest`: micro-batches with less room are full.
  OpenPacks(std::size_t ranks, std::int64_t shortest) : shortest_(shortest), ranks_(ranks) {}

  /// Fetches what there is of a rank that comes soon.
  void prefetch(std::size_t rank) const {
    const auto* own = reinterpret_cast<const char*>(&ranks_[rank]);
    __builtin_prefetch(own);
    __builtin_prefetch(own + sizeof(Packs) / 2);
  }

  /// Takes out the rank's fullest pack that has room for `tokens`.
  std::optional<OpenPack> take(std::size_t rank, std::int64_t tokens) {
    Packs& own = ranks_[rank];
    OpenPack* const begin = packs(own, rank);
    OpenPack* const end = begin + own.count;
    OpenPack* const fit = from(begin, end, tokens);
    if (fit == end) return std::nullopt;
    const OpenPack pack = *fit;
    std::move(fit + 1, end, fit);
    --own.count;
    return pack;
  }

  void put(std::size_t rank, const OpenPack& pack) {
    if (pack.room < shortest_) return;
    Packs& own = ranks_[rank];
    OpenPack* const begin = with_room(own, rank);
    OpenPack* const end = begin + own.count;
    OpenPack* const place = from(begin, end, pack.room);
    std::move_backward(place, end, end + 1);
    *place = pack;
    ++own.count;
  }

 private:
  static constexpr std::uint32_t near = 5;  // two cache lines, with the count
  /// The packs of one rank by ascending room: here, or if they were more at a time, in `many_`.
  struct Packs {
    std::array<OpenPack, near> here;
    std::uint32_t count = 0;
    bool is_elsewhere = false;
  };

  [[nodiscard]] OpenPack* packs(Packs& own, std::size_t rank) {
    return own.is_elsewhere ? many_.at(rank).data() : own.here.data();
  }

  // The same with room for one more.
  [[nodiscard]] OpenPack* with_room(Packs& own, std::size_t rank) {
    if (!own.is_elsewhere) {
      if (own.count < near) return own.here.data();
      many_[rank].assign(own.here.begin(), own.here.end());
      own.is_elsewhere = true;
    }
    std::vector<OpenPack>& all = many_.at(rank);
    if (all.size() == own.count) all.resize(2 * all.size());
    return all.data();
  }

  static OpenPack* from(OpenPack* begin, OpenPack* end, std::int64_t room) {
    return std::find_if(begin, end, [&](const OpenPack& pack) { return pack.room >= room; });
  }

  std::int64_t shortest_;
  std::vector<Packs> ranks_;
  std::unordered_map<std::size_t, std::vector<OpenPack>> many_;
};

/// The indices of `keys` by key, those of one key in their order; `ends`: the end of each key's indices.
struct ByKey {
  std::vector<std::uint32_t> indices;
  std::vector<std::size_t> ends;
};

ByKey by_key(const std::vector<std::uint32_t>& keys, std::size_t count) {
  ByKey sorted{std::vector<std::uint32_t>(keys.size()), std::vector<std::size_t>(count + 1)};
  for (const std::uint32_t key : keys) ++sorted.ends[key + 1];
  std::partial_sum(sorted.ends.begin(), sorted.ends.end(), sorted.ends.begin());
  // Each entry is the begin of its key at first, and its end after this loop.
  for (std::uint32_t index = 0; index < keys.size(); ++index) sorted.indices[sorted.ends[keys[index]]++] = index;
  return sorted;
}

}  // namespace

void DealtSequences::add_to(PlanBuilder& builder) const {
  const PackList members(sequences, packs, ranks.size());
  const std::size_t pool = ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end()) + std::size_t{1};
  builder.reserve_more(ranks.size());
  for (const std::uint32_t pack : by_key(ranks, pool).indices) {
    builder.add_consecutive(ranks[pack], size, members[pack]);
  }
}

DealtSequences deal_short_sequences(const Batch& batch, SequenceList sequences, const RingSizing& sizing,
                                    std::vector<double>& loads, const std::vector<double>& speeds) {
  const PlanningContext& context = sizing.context();
  DealtSequences dealt{.sequences = std::move(sequences), .packs = {}, .ranks = {}, .size = sizing.pack_size()};
  dealt.packs.reserve(dealt.sequences.size());
  if (dealt.sequences.empty()) return dealt;
  LeastLoaded least_loaded(loads);
  OpenPacks open(loads.size(), batch.sequences[dealt.sequences.back()].tokens);
  for (std::size_t i = 0, last = dealt.sequences.size() - 1; i <= last; ++i) {
    constexpr std::size_t ahead = 16;  // lengths are scattered in memory
    __builtin_prefetch(&batch.sequences[dealt.sequences[std::min(i + ahead, last)]]);
    const std::int64_t tokens = batch.sequences[dealt.sequences[i]].tokens;
    const std::size_t rank = least_loaded.bin();
    open.prefetch(least_loaded.bin_ahead());
    const double pairs = causal_pairs(tokens);
    double seconds = context.work.compute_seconds(pairs, tokens) + sizing.offload_seconds(pairs, tokens, dealt.size);
    std::optional<OpenPack> pack = open.take(rank, tokens);
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
    open.put(rank, {pack->room - tokens, pack->id, pack->seconds});
    seconds += std::max(0.0, context.work.least - pack->seconds) - below_least;
    least_loaded.add(speeds.empty() ? seconds : seconds / speeds[rank]);
  }
  least_loaded.get(loads);
  return dealt;
}

}  // namespace hdpsim
