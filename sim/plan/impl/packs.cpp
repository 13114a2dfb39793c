#include "sim/plan/impl/packs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
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

namespace {

// An empty entry of a list: one that is free again, or a new one.
template <class Entry>
std::uint32_t new_entry(std::vector<Entry>& list, std::vector<std::uint32_t>& free) {
  if (free.empty()) {
    list.emplace_back();
    return static_cast<std::uint32_t>(list.size() - 1);
  }
  const std::uint32_t index = free.back();
  free.pop_back();
  return index;
}

}  // namespace

std::uint32_t BestFit::child(std::uint32_t node, unsigned at, unsigned level) {
  if (nodes_[node].children[at] == absent) {
    const std::uint32_t made = level == 0 ? new_entry(heaps_, free_heaps_) : new_entry(nodes_, free_nodes_);
    nodes_[node].children[at] = made;
  }
  return nodes_[node].children[at];
}

void BestFit::put(std::size_t pack, std::int64_t room) {
  if (room <= 0) return;
  for (; is_beyond(room); ++level_) {
    if (nodes_[root_].filled == 0) continue;  // an empty node is one of any level
    Node above;
    above.children[0] = root_;
    above.filled = 1;
    root_ = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(above);
  }
  std::uint32_t at = root_;
  for (unsigned level = level_ + 1; level-- > 0;) {
    const unsigned next = digit(room, level);
    nodes_[at].filled |= std::uint64_t{1} << next;
    at = child(at, next, level);
  }
  std::vector<std::uint32_t>& heap = heaps_[at];
  heap.push_back(static_cast<std::uint32_t>(pack));
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

std::optional<BestFit::Room> BestFit::take(std::int64_t tokens) {
  Room taken{0, 0};
  if (is_beyond(tokens) || !take_from(root_, level_, tokens, taken)) return std::nullopt;
  return taken;
}

// Takes the first pack of the least room in a node whose digits, from this level on, are at least those of `tokens`.
bool BestFit::take_from(std::uint32_t node, unsigned level, std::int64_t tokens, Room& taken) {
  const unsigned first = digit(tokens, level);
  for (std::uint64_t rest = nodes_[node].filled >> first << first; rest != 0; rest &= rest - 1) {
    const auto at = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t below = nodes_[node].children[at];
    if (level > 0 && !take_from(below, level - 1, at == first ? tokens : 0, taken)) continue;
    if (level == 0) {
      std::vector<std::uint32_t>& heap = heaps_[below];
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      taken.pack = heap.back();
      heap.pop_back();
    }
    taken.tokens |= static_cast<std::int64_t>(std::uint64_t{at} << (bits * level));
    const bool is_empty = level == 0 ? heaps_[below].empty() : nodes_[below].filled == 0;
    if (is_empty) {
      nodes_[node].filled &= ~(std::uint64_t{1} << at);
      nodes_[node].children[at] = absent;
      (level == 0 ? free_heaps_ : free_nodes_).push_back(below);
    }
    return true;
  }
  return false;
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

PackList::PackList(const SequenceList& sequences, const std::vector<std::uint32_t>& pack_of, std::size_t packs)
    : sequences_(sequences.size()), begins_(packs + 1) {
  for (const std::uint32_t pack : pack_of) ++begins_[pack];
  std::size_t end = 0;
  for (std::size_t& begin : begins_) begin = end += begin;
  // Each entry is the end of its pack at first, and its begin after this loop.
  for (std::size_t i = sequences.size(); i-- > 0;) sequences_[--begins_[pack_of[i]]] = sequences[i];
}

PackList best_fit_list(const Batch& batch, const SequenceList& sequences, std::int64_t room) {
  std::vector<std::uint32_t> pack_of;
  pack_of.reserve(sequences.size());
  std::size_t packs = 0;
  BestFit open;
  for (const std::size_t sequence : sequences) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const BestFit::Room chosen = open.take(tokens).value_or(BestFit::Room{packs, room});
    if (chosen.pack == packs) ++packs;
    pack_of.push_back(static_cast<std::uint32_t>(chosen.pack));
    open.put(chosen.pack, chosen.tokens - tokens);
  }
  return {sequences, pack_of, packs};
}

std::vector<SequencePack> best_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room) {
  const PackList list = best_fit_list(batch, sequences, room);
  std::vector<SequencePack> packs(list.size());
  for (std::size_t i = 0; i < packs.size(); ++i) {
    packs[i].sequences.assign(list[i].begin(), list[i].end());
    packs[i].tokens = tokens_of(batch, list[i]);
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

std::vector<std::uint32_t> in_order(const PackList& packs, DealOrder order, std::size_t sequences) {
  std::vector<std::uint32_t> numbers(packs.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  if (order == DealOrder::descending) return numbers;
  constexpr std::uint32_t none = UINT32_MAX;
  std::vector<std::uint32_t> opened(sequences, none);  // by sequence: the pack that it opened
  for (const std::uint32_t pack : numbers) opened[packs[pack].front()] = pack;
  std::copy_if(opened.begin(), opened.end(), numbers.begin(), [](std::uint32_t pack) { return pack != none; });
  return numbers;
}

}  // namespace hdpsim
