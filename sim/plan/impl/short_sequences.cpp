#include "sim/plan/impl/short_sequences.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "sim/plan/impl/loads.h"

namespace hdpsim {

ShortSequences::ShortSequences(std::span<const SizedSequence> sequences) : sequences_(sequences) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::int64_t tokens = sequences[i].tokens;
    if (left_.empty() || left_.back().tokens != tokens) left_.push_back({tokens, i, i});
    left_.back().end = i + 1;
  }
  first_left_.resize(left_.size() + 1);
  std::iota(first_left_.begin(), first_left_.end(), std::size_t{0});
}

std::size_t ShortSequences::first_left(std::size_t length) {
  while (first_left_[length] != length) {
    first_left_[length] = first_left_[first_left_[length]];
    length = first_left_[length];
  }
  return length;
}

std::optional<SizedSequence> ShortSequences::take_longest_within(
    std::int64_t most, const std::function<bool(std::int64_t tokens)>& wanted) {
  const auto is_longer = [&](const SameLength& each) { return each.tokens > most; };
  const auto within = std::partition_point(left_.begin(), left_.end(), is_longer);
  const std::size_t length = first_left(static_cast<std::size_t>(within - left_.begin()));
  if (length == left_.size() || !wanted(left_[length].tokens)) return std::nullopt;
  const SizedSequence taken = sequences_[--left_[length].end];
  if (left_[length].begin == left_[length].end) first_left_[length] = length + 1;
  return taken;
}

std::size_t ShortSequences::count() const {
  std::size_t count = 0;
  for (const SameLength& each : left_) count += each.end - each.begin;
  return count;
}

std::int64_t ShortSequences::shortest() const {
  const auto some = [](const SameLength& each) { return each.begin < each.end; };
  return std::find_if(left_.rbegin(), left_.rend(), some)->tokens;
}

namespace {

/// A micro-batch that has room.
struct OpenPack {
  std::uint32_t room;
  std::uint32_t id;
  double seconds;  ///< Seconds so far, including the fixed time.
};

/// The micro-batches of every rank that have room, while best fit fills them. Most ranks have few of them: these lie
/// side by side, so that a rank costs a look at one place in memory.
class OpenPacks {
 public:
  /// No sequence is shorter than `shortest`: micro-batches with less room are full.
  OpenPacks(std::size_t ranks, std::int64_t shortest) : shortest_(shortest), ranks_(ranks) {}

  /// Fetches what there is of a rank that comes soon: a sixth of the time to plan for 65,536 ranks.
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
  static constexpr std::uint32_t near = 7;
  /// The packs of one rank by ascending room: here, or if they were more at a time, in `many_`. Two cache lines.
  struct alignas(64) Packs {
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

void DealtSequences::add_to(PlanBuilder& builder) {
  if (!sequences) return;
  const std::size_t pool = std::size_t{*std::max_element(ranks.begin(), ranks.end())} + 1;
  const std::vector<std::uint32_t> order = by_key(ranks, pool).indices;
  std::vector<std::uint32_t> places(order.size());
  for (std::uint32_t place = 0; place < order.size(); ++place) places[order[place]] = place;
  for (std::uint32_t& pack : packs) pack = places[pack];
  const PackList members(packs, ranks.size(), [&](auto place) {
    sequences->for_each_length(
        [&](std::int64_t, auto same) { std::for_each(same.rbegin(), same.rend(), std::ref(place)); });
  });
  builder.reserve_more(ranks.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    builder.add_consecutive(ranks[order[place]], size, members[place]);
  }
}

namespace {

/// One dealing of short sequences.
class Dealer {
 public:
  Dealer(const RingSizing& sizing, std::int64_t shortest, const std::vector<double>& loads,
         const std::vector<double>& speeds, DealtSequences& dealt)
      : context_(sizing.context()),
        sizing_(sizing),
        speeds_(speeds),
        dealt_(dealt),
        least_loaded_(loads),
        open_(loads.size(), shortest) {}

  /// Deals `count` sequences of one length.
  void deal(std::int64_t tokens, std::size_t count) {
    const double pairs = causal_pairs(tokens);
    const double seconds =
        context_.work.compute_seconds(pairs, tokens) + sizing_.offload_seconds(pairs, tokens, dealt_.size);
    for (; count > 0; --count) deal_one(tokens, seconds);
  }

  void get(std::vector<double>& loads) { least_loaded_.get(loads); }

 private:
  void deal_one(std::int64_t tokens, double seconds) {
    const std::size_t rank = least_loaded_.bin();
    open_.prefetch(least_loaded_.bin_ahead());
    std::optional<OpenPack> pack = open_.take(rank, tokens);
    double below_least = 0;  // is in the load already
    if (pack) {
      below_least = std::max(0.0, context_.work.least - pack->seconds);
    } else {
      pack = {static_cast<std::uint32_t>(context_.capacity), static_cast<std::uint32_t>(dealt_.ranks.size()), 0};
      dealt_.ranks.push_back(static_cast<std::uint32_t>(rank));
      seconds += context_.work.per_micro_batch;
    }
    dealt_.packs.push_back(pack->id);
    pack->seconds += seconds;
    pack->room -= static_cast<std::uint32_t>(tokens);
    open_.put(rank, *pack);
    seconds += std::max(0.0, context_.work.least - pack->seconds) - below_least;
    least_loaded_.add(speeds_.empty() ? seconds : seconds / speeds_[rank]);
  }

  const PlanningContext& context_;
  const RingSizing& sizing_;
  const std::vector<double>& speeds_;
  DealtSequences& dealt_;
  LeastLoaded least_loaded_;
  OpenPacks open_;
};

}  // namespace

DealtSequences deal_short_sequences(ShortSequences sequences, const RingSizing& sizing, std::vector<double>& loads,
                                    const std::vector<double>& speeds) {
  DealtSequences dealt{.sequences = {}, .packs = {}, .ranks = {}, .size = sizing.pack_size()};
  const std::size_t count = sequences.count();
  if (count == 0) return dealt;
  dealt.packs.reserve(count);
  Dealer dealer(sizing, sequences.shortest(), loads, speeds, dealt);
  sequences.for_each_length([&](std::int64_t tokens, auto same) { dealer.deal(tokens, same.size()); });
  dealer.get(loads);
  dealt.sequences = std::move(sequences);
  return dealt;
}

}  // namespace hdpsim
