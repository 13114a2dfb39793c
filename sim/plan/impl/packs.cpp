#include "sim/plan/impl/packs.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "sim/base/check.h"
#include "sim/model/mixing.h"
#include "sim/plan/impl/loads.h"

namespace hdpsim {
namespace {

/// A sequence with the key by which it is sorted.
struct Keyed {
  std::uint64_t key;
  std::size_t sequence;
};

// By rising key, those of one key in their order: a radix sort from the last digit on (Knuth, The Art of Computer
// Programming, 5.2.5). Reads and writes memory in few streams. O(n digits).
void sort_by_key(std::vector<Keyed>& list) {
  constexpr unsigned bits = 11;
  constexpr std::uint64_t digits = std::uint64_t{1} << bits;
  std::uint64_t largest = 0;
  for (const Keyed& each : list) largest = std::max(largest, each.key);
  std::vector<Keyed> sorted(list.size());
  for (unsigned shift = 0; shift < 64 && largest >> shift > 0; shift += bits) {
    const auto digit = [&](const Keyed& each) { return (each.key >> shift) % digits; };
    std::array<std::size_t, digits + 1> begins{};
    for (const Keyed& each : list) ++begins[digit(each) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const Keyed& each : list) sorted[begins[digit(each)]++] = each;
    std::swap(list, sorted);
  }
}

}  // namespace

std::int64_t tokens_of(const Batch& batch, std::span<const std::size_t> sequences) {
  return std::accumulate(sequences.begin(), sequences.end(), std::int64_t{0},
                         [&](std::int64_t sum, std::size_t i) { return sum + batch.sequences[i].tokens; });
}

double work_of(const WorkModel& work, std::int64_t tokens) {
  return work.compute_seconds(causal_pairs(tokens), tokens);
}

SequenceList in_data_order(const Batch& batch) {
  SequenceList order(batch.sequences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

SequenceList longest_first(const Batch& batch) {
  std::int64_t longest = 0;
  for (const Sequence& sequence : batch.sequences) longest = std::max(longest, sequence.tokens);
  std::vector<Keyed> list;
  list.reserve(batch.sequences.size());
  for (const Sequence& sequence : batch.sequences) {
    list.push_back({static_cast<std::uint64_t>(longest - sequence.tokens), list.size()});
  }
  sort_by_key(list);
  SequenceList order(list.size());
  std::transform(list.begin(), list.end(), order.begin(), [](const Keyed& each) { return each.sequence; });
  return order;
}

std::optional<BestFit::Room> BestFit::take(std::int64_t tokens) {
  const auto found = by_room_.lower_bound({tokens, 0});
  if (found == by_room_.end()) return std::nullopt;
  const Room room{found->second, found->first};
  by_room_.erase(found);
  return room;
}

FirstFit::FirstFit(std::size_t items, std::int64_t room) : room_(room) {
  while (leaves_ < items) leaves_ *= 2;
  free_.assign(2 * leaves_, room);
}

FirstFit::Place FirstFit::place(std::int64_t size) {
  HDPSIM_CHECK(size >= 1 && size <= free_[1], "{} of a room of {}", size, room_);
  std::size_t node = 1;
  while (node < leaves_) node = free_[2 * node] >= size ? 2 * node : 2 * node + 1;
  const Place place{node - leaves_, room_ - free_[node]};
  free_[node] -= size;
  while (node > 1) {
    node /= 2;
    free_[node] = std::max(free_[2 * node], free_[2 * node + 1]);
  }
  return place;
}

std::vector<SequencePack> best_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room) {
  std::vector<SequencePack> packs;
  BestFit open;
  for (const std::size_t sequence : sequences) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const BestFit::Room chosen = open.take(tokens).value_or(BestFit::Room{packs.size(), room});
    if (chosen.pack == packs.size()) packs.emplace_back();
    packs[chosen.pack].add(sequence, tokens);
    open.put(chosen.pack, chosen.tokens - tokens);
  }
  return packs;
}

std::vector<SequencePack> next_fit(const Batch& batch, std::int64_t room, std::optional<std::int64_t> most) {
  std::vector<SequencePack> packs;
  for (std::size_t sequence = 0; sequence < batch.sequences.size(); ++sequence) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const bool fits = !packs.empty() && packs.back().tokens + tokens <= room;
    if (!fits || std::ssize(packs.back().sequences) == most) packs.emplace_back();
    packs.back().add(sequence, tokens);
  }
  return packs;
}

WorkPacks pack_by_work(const Batch& batch, const SequenceList& order, std::size_t count, std::int64_t room,
                       const WorkModel& work) {
  HDPSIM_CHECK(count >= 1, "{} packs", count);
  WorkPacks result{std::vector<SequencePack>(count), {}};
  LoadTree loads(count);
  for (std::size_t i = 0; i < count; ++i) loads.set(i, 0, 0);
  for (const std::size_t sequence : order) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const auto fits = [&](std::size_t pack) { return result.packs[pack].tokens + tokens <= room; };
    std::size_t chosen = loads.least();
    if (!fits(chosen)) chosen = loads.emptiest();
    if (!fits(chosen)) {
      result.left.push_back(sequence);
      continue;
    }
    SequencePack& pack = result.packs[chosen];
    pack.add(sequence, tokens, work_of(work, tokens));
    loads.set(chosen, pack.work, static_cast<double>(pack.tokens));
  }
  return result;
}

void put_in_order(std::vector<SequencePack>& packs, DealOrder order) {
  if (order == DealOrder::descending) return;
  std::sort(packs.begin(), packs.end(),
            [](const SequencePack& a, const SequencePack& b) { return a.sequences.front() < b.sequences.front(); });
}

}  // namespace hdpsim
