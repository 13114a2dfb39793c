#include "sim/plan/impl/packs.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <numeric>
#include <queue>

#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/model/mixing.h"
#include "sim/plan/impl/loads.h"

namespace hdpsim {
namespace {

// Longest first, those of one length in their order: a radix sort from the last digit on (Knuth, The Art of Computer
// Programming, 5.2.5). Reads and writes memory in few streams. O(n digits).
void sort_longest_first(SizedList& list) {
  constexpr unsigned bits = 11;
  constexpr std::uint32_t digits = std::uint32_t{1} << bits;
  std::uint32_t longest = 0;
  for (const SizedSequence& each : list) longest = std::max(longest, each.tokens);
  SizedList sorted(list.size());
  for (unsigned shift = 0; shift < 32 && longest >> shift > 0; shift += bits) {
    const auto digit = [&](const SizedSequence& each) { return ((longest - each.tokens) >> shift) % digits; };
    std::array<std::size_t, digits + 1> begins{};
    for (const SizedSequence& each : list) ++begins[digit(each) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const SizedSequence& each : list) sorted[begins[digit(each)]++] = each;
    std::swap(list, sorted);
  }
}

SizedSequence sized(const Batch& batch, std::size_t sequence) {
  const std::int64_t tokens = batch.sequences[sequence].tokens;
  HDPSIM_CHECK(tokens >= 0 && tokens <= UINT32_MAX && sequence <= UINT32_MAX, "sequence {} has {} tokens", sequence,
               tokens);
  return {static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(tokens)};
}

}  // namespace

std::int64_t tokens_of(const Batch& batch, std::span<const std::size_t> sequences) {
  return std::accumulate(sequences.begin(), sequences.end(), std::int64_t{0},
                         [&](std::int64_t sum, std::size_t i) { return sum + batch.sequences[i].tokens; });
}

Batch rounded(Batch batch, std::int64_t multiple) {
  for (Sequence& sequence : batch.sequences) sequence.tokens = rounded_up(sequence.tokens, multiple);
  return batch;
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
  const SizedList list = sized_longest_first(batch);
  SequenceList order(list.size());
  std::transform(list.begin(), list.end(), order.begin(), [](const SizedSequence& each) { return each.sequence; });
  return order;
}

SequenceList longest_first(const Batch& batch, SequenceList sequences) {
  std::stable_sort(sequences.begin(), sequences.end(),
                   [&](std::size_t a, std::size_t b) { return batch.sequences[a].tokens > batch.sequences[b].tokens; });
  return sequences;
}

SizedList sized_longest_first(const Batch& batch) {
  SizedList list;
  list.reserve(batch.sequences.size());
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) list.push_back(sized(batch, i));
  sort_longest_first(list);
  return list;
}

SizedList sized(const Batch& batch, std::span<const std::size_t> sequences) {
  SizedList list;
  list.reserve(sequences.size());
  for (const std::size_t sequence : sequences) list.push_back(sized(batch, sequence));
  return list;
}

std::int64_t tokens_of(std::span<const SizedSequence> sequences) {
  std::int64_t sum = 0;
  for (const SizedSequence& each : sequences) sum += each.tokens;
  return sum;
}

double pairs_of(std::span<const SizedSequence> sequences) {
  double sum = 0;
  for (const SizedSequence& each : sequences) sum += causal_pairs(each.tokens);
  return sum;
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
  set_free(place.bin, free_[node] - size);
  return place;
}

void FirstFit::set_free(std::size_t bin, std::int64_t free) {
  std::size_t node = leaves_ + bin;
  free_[node] = free;
  while (node > 1) {
    node /= 2;
    free_[node] = std::max(free_[2 * node], free_[2 * node + 1]);
  }
}

namespace {

// The place of each pack in the order of the data, by the sequences that opened them. O(sequences of the batch).
std::vector<std::uint32_t> places_in_data(const std::vector<std::uint32_t>& openers) {
  if (openers.empty()) return {};
  constexpr std::uint32_t none = UINT32_MAX;
  const std::uint32_t last = *std::max_element(openers.begin(), openers.end());
  std::vector<std::uint32_t> opened(std::size_t{last} + 1, none);  // by sequence: the pack that it opened
  for (std::uint32_t pack = 0; pack < openers.size(); ++pack) opened[openers[pack]] = pack;
  std::vector<std::uint32_t> places(openers.size());
  std::uint32_t place = 0;
  for (const std::uint32_t pack : opened) {
    if (pack != none) places[pack] = place++;
  }
  return places;
}

}  // namespace

PackList best_fit_list(const SizedList& sequences, std::int64_t room, DealOrder order, BestFit::Equals equals) {
  std::vector<std::uint32_t> pack_of;
  pack_of.reserve(sequences.size());
  std::vector<std::uint32_t> openers;  // by pack: the sequence that opened it
  BestFit open(equals);
  for (const SizedSequence& each : sequences) {
    const BestFit::Room chosen = open.take(each.tokens).value_or(BestFit::Room{openers.size(), room});
    if (chosen.pack == openers.size()) openers.push_back(each.sequence);
    pack_of.push_back(static_cast<std::uint32_t>(chosen.pack));
    open.put(chosen.pack, chosen.tokens - each.tokens);
  }
  if (order == DealOrder::data) {
    const std::vector<std::uint32_t> places = places_in_data(openers);
    for (std::uint32_t& pack : pack_of) pack = places[pack];
  }
  return {pack_of, openers.size(), [&](auto place) { std::for_each(sequences.begin(), sequences.end(), place); }};
}

std::vector<SequencePack> best_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room,
                                   BestFit::Equals equals) {
  const PackList list = best_fit_list(sized(batch, sequences), room, DealOrder::descending, equals);
  std::vector<SequencePack> packs(list.size());
  for (std::size_t i = 0; i < packs.size(); ++i) {
    for (const SizedSequence& each : list[i]) packs[i].add(each.sequence, each.tokens);
  }
  return packs;
}

std::vector<SequencePack> next_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room,
                                   std::optional<std::int64_t> most) {
  std::vector<SequencePack> packs;
  for (const std::size_t sequence : sequences) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const bool fits = !packs.empty() && packs.back().tokens + tokens <= room;
    if (!fits || std::ssize(packs.back().sequences) == most) packs.emplace_back();
    packs.back().add(sequence, tokens);
  }
  return packs;
}

std::vector<SequencePack> first_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room,
                                    std::optional<std::int64_t> most) {
  std::vector<SequencePack> packs;
  FirstFit rooms(sequences.size(), room);
  for (const std::size_t sequence : sequences) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const std::size_t pack = rooms.place(std::min(tokens, room)).bin;  // only an empty one has all the room
    if (pack == packs.size()) packs.emplace_back();
    packs[pack].add(sequence, tokens);
    if (std::ssize(packs[pack].sequences) == most) rooms.set_free(pack, 0);
  }
  return packs;
}

std::vector<SequencePack> emptiest_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room) {
  using Filled = std::pair<std::int64_t, std::size_t>;  // tokens, pack
  std::priority_queue<Filled, std::vector<Filled>, std::greater<>> emptiest;
  std::vector<SequencePack> packs;
  for (const std::size_t sequence : sequences) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    std::size_t pack = packs.size();
    if (!emptiest.empty() && emptiest.top().first + tokens <= room) {
      pack = emptiest.top().second;
      emptiest.pop();
    } else {
      packs.emplace_back();
    }
    packs[pack].add(sequence, tokens);
    emptiest.emplace(packs[pack].tokens, pack);
  }
  return packs;
}

WorkPacks pack_by_work(const Batch& batch, const SequenceList& order, std::size_t count, std::int64_t room,
                       const SequenceWork& work) {
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
    pack.add(sequence, tokens, work(tokens));
    loads.set(chosen, pack.work, static_cast<double>(pack.tokens));
  }
  return result;
}

std::vector<SequencePack> pack_all_by_work(const Batch& batch, std::size_t count, std::int64_t room,
                                           const SequenceWork& work) {
  const SequenceList order = count == 1 ? in_data_order(batch) : longest_first(batch);
  WorkPacks packed = pack_by_work(batch, order, count, room, work);
  std::vector<double> loads;
  for (const SequencePack& pack : packed.packs) loads.push_back(pack.work);
  const auto cost = [&](std::size_t sequence) { return work(batch.sequences[sequence].tokens); };
  const auto dealt = deal_to_least_loaded(packed.left, loads, cost);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::size_t sequence : dealt[i])
      packed.packs[i].add(sequence, batch.sequences[sequence].tokens, cost(sequence));
  }
  return std::move(packed.packs);
}

namespace {

// The second half; the first one stays.
SequencePack halve(SequencePack& pack, const Batch& batch, const SequenceWork& work) {
  const auto work_at = [&](std::size_t sequence) { return work(batch.sequences[sequence].tokens); };
  std::stable_sort(pack.sequences.begin(), pack.sequences.end(),
                   [&](std::size_t a, std::size_t b) { return work_at(a) > work_at(b); });
  SequencePack first;
  SequencePack second;
  for (const std::size_t sequence : pack.sequences) {
    (first.work <= second.work ? first : second).add(sequence, batch.sequences[sequence].tokens, work_at(sequence));
  }
  pack = std::move(first);
  return second;
}

}  // namespace

void halve_heaviest(std::vector<SequencePack>& packs, std::size_t multiple, const Batch& batch,
                    const SequenceWork& work) {
  for (SequencePack& pack : packs) {
    pack.work = 0;
    for (const std::size_t sequence : pack.sequences) pack.work += work(batch.sequences[sequence].tokens);
  }
  std::priority_queue<std::pair<double, std::size_t>> heaviest;  // work, pack
  const auto put = [&](std::size_t pack) {
    if (packs[pack].sequences.size() > 1) heaviest.emplace(packs[pack].work, pack);
  };
  for (std::size_t pack = 0; pack < packs.size(); ++pack) put(pack);
  while (packs.size() % multiple != 0 && !heaviest.empty()) {
    const std::size_t pack = heaviest.top().second;
    heaviest.pop();
    SequencePack second = halve(packs[pack], batch, work);
    packs.push_back(std::move(second));
    put(pack);
    put(packs.size() - 1);
  }
}

void split_off(std::vector<SequencePack>& packs, std::span<const std::size_t> givers, std::size_t multiple,
               const Batch& batch, Given given) {
  for (const std::size_t giver : givers) {
    while (packs.size() % multiple != 0 && packs[giver].sequences.size() > 1) {
      SequencePack& from = packs[giver];
      const auto sequence = given == Given::first ? from.sequences.begin() : std::prev(from.sequences.end());
      SequencePack own;
      own.add(*sequence, batch.sequences[*sequence].tokens);
      from.tokens -= own.tokens;
      from.sequences.erase(sequence);
      packs.push_back(std::move(own));  // which may move `from`
    }
  }
}

std::vector<std::size_t> most_sequences_first(const std::vector<SequencePack>& packs) {
  std::vector<std::size_t> order(packs.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return packs[a].sequences.size() > packs[b].sequences.size(); });
  return order;
}

std::vector<SequencePack> packs_in_turn(std::vector<std::vector<SequencePack>> by_replica) {
  std::vector<SequencePack> packs;
  std::size_t rows = 0;
  for (const std::vector<SequencePack>& own : by_replica) rows = std::max(rows, own.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::vector<SequencePack>& own : by_replica) {
      packs.push_back(row < own.size() ? std::move(own[row]) : SequencePack{});
    }
  }
  return packs;
}

}  // namespace hdpsim
