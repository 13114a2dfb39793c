// How trainers pack: most rules were read in their sources, at the commits named.

#include "sim/plan/impl/packers.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/base/random.h"

namespace hdpsim {
namespace {

using Packs = std::vector<SequencePack>;

void add_all(Packs& packs, Packs more) {
  packs.insert(packs.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
}

// The sequences in the order of the data, so many at a time.
std::vector<SequenceList> groups_of(const Batch& batch, std::int64_t group) {
  std::vector<SequenceList> groups;
  for (const std::size_t sequence : in_data_order(batch)) {
    if (groups.empty() || std::ssize(groups.back()) == group) groups.emplace_back();
    groups.back().push_back(sequence);
  }
  return groups;
}

// The packs in the order of is_before(packs, a, b), which compares their places.
template <class IsBefore>
Packs permuted(Packs packs, const IsBefore& is_before) {
  SequenceList order(packs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return is_before(packs, a, b); });
  Packs sorted;
  for (const std::size_t pack : order) sorted.push_back(std::move(packs[pack]));
  return sorted;
}

Packs pack_next_fit(const Batch& batch, const PackRules& rules) {
  return next_fit(batch, in_data_order(batch), rules.room, rules.bounds.max_sequences);
}

/// huggingface/trl at f2cd5771, _pack_bfd. Its `bfd_split` first cuts what is longer than a pack, as data.overlong:
/// split does.
Packs pack_trl(const Batch& batch, const PackRules& rules) {
  return best_fit(batch, longest_first(batch), rules.room, BestFit::Equals::longest_since);
}

/// axolotl-ai-cloud/axolotl at 067b021c, MultipackBatchSampler.generate_batches: first fit in groups, which are not
/// sorted.
Packs pack_axolotl(const Batch& batch, const PackRules& rules) {
  Packs packs;
  for (const SequenceList& group : groups_of(batch, *rules.bounds.group)) {
    add_all(packs, first_fit(batch, group, rules.room, rules.bounds.max_sequences));
  }
  return packs;
}

/// hiyouga/LLaMA-Factory at ff6d4d12, greedy_knapsack: a pack takes again and again the longest sequence that fits, of
/// equals the last in the data.
Packs pack_llamafactory(const Batch& batch, const PackRules& rules) {
  std::set<std::pair<std::int64_t, std::size_t>> left;  // tokens, sequence
  for (const std::size_t sequence : in_data_order(batch)) left.emplace(batch.sequences[sequence].tokens, sequence);
  HDPSIM_CHECK(left.empty() || left.rbegin()->first <= rules.room, "{} tokens in a pack of {}", left.rbegin()->first,
               rules.room);
  Packs packs;
  while (!left.empty()) {
    SequencePack& pack = packs.emplace_back();
    while (true) {
      const auto above = left.upper_bound({rules.room - pack.tokens, std::numeric_limits<std::size_t>::max()});
      if (above == left.begin()) break;
      const auto longest = std::prev(above);
      pack.add(longest->second, longest->first);
      left.erase(longest);
    }
  }
  return packs;
}

/// modelscope/ms-swift at 3602360a, PackingDataset.create_packed_idx, with to_constant_volume of binpacking 0eadddd9:
/// the last pack of a group goes back, and its sequences precede the next group.
Packs pack_ms_swift(const Batch& batch, const PackRules& rules) {
  Packs packs;
  for (const SequenceList& group : groups_of(batch, *rules.bounds.group)) {
    SequenceList waiting;
    if (!packs.empty()) {
      waiting = std::move(packs.back().sequences);
      packs.pop_back();
    }
    waiting.insert(waiting.end(), group.begin(), group.end());
    add_all(packs, emptiest_fit(batch, longest_first(batch, std::move(waiting)), rules.room));
  }
  return packs;
}

/// NVIDIA-NeMo/Megatron-Bridge at 067f987d, create_packing_strategy, `first_fit_decreasing`. Which of several sequences
/// of one length goes where is drawn at random there; here they keep the order of the data.
Packs pack_bridge_decreasing(const Batch& batch, const PackRules& rules) {
  return first_fit(batch, longest_first(batch), rules.room);
}

/// The same, `first_fit_shuffle`, its default, with a shuffle of ours.
Packs pack_bridge_shuffled(const Batch& batch, const PackRules& rules) {
  SequenceList order = in_data_order(batch);
  RandomStream random(0, "megatron_bridge");
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return first_fit(batch, order, rules.room);
}

/// mosaicml/llm-foundry at 8c8dd48f, BinPackCollator: N packs a step from more sequences than they hold, by first fit,
/// longest first; a pack that got a sequence goes behind the others, and packs of one sequence are opened where just as
/// many are left as packs are missing. N is as many as the tokens fill, a multiple of the replicas. There the fullest N
/// are the step, and the others wait for the next one, in which they are the first packs; here all are the step, the
/// fullest first.
Packs pack_llm_foundry(const Batch& batch, const PackRules& rules) {
  const SequenceList order = longest_first(batch);
  const auto wanted = rules.bounds.window.value_or(rounded_up(divided(batch.tokens(), rules.room), rules.replicas));
  Packs packs;
  FirstFit places(order.size(), 0);     // which packs take: each time one behind all others
  SequenceList pack_at;                 // by place
  std::vector<std::size_t> last_place;  // by pack
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t tokens = batch.sequences[order[i]].tokens;
    const auto left = static_cast<std::int64_t>(order.size() - i);
    std::size_t pack = packs.size();
    if (left > wanted - std::ssize(packs) && places.has_room(tokens)) {
      const std::size_t place = places.place(tokens).bin;
      places.set_free(place, 0);
      pack = pack_at[place];
    } else {
      packs.emplace_back();
      last_place.emplace_back();
    }
    packs[pack].add(order[i], tokens);
    places.set_free(i, rules.room - packs[pack].tokens);
    pack_at.push_back(pack);
    last_place[pack] = i;
  }
  return permuted(std::move(packs), [&](const Packs& made, std::size_t a, std::size_t b) {
    return std::pair(-made[a].tokens, last_place[a]) < std::pair(-made[b].tokens, last_place[b]);
  });
}

/// allenai/open-instruct at e6c3044a, pack_sequences: every replica should get a pack.
Packs pack_open_instruct(const Batch& batch, const PackRules& rules) {
  const std::int64_t share = rules.replicas > 1 ? batch.tokens() / rules.replicas : rules.room;
  return next_fit(batch, in_data_order(batch), std::min(rules.room, share));
}

// Adds to a pack those of the last `most` waiting sequences that fit into it, the shortest first.
void top_up(SequencePack& pack, SequenceList& waiting, std::int64_t most, const Batch& batch, std::int64_t room) {
  const std::size_t first = waiting.size() - std::min(waiting.size(), static_cast<std::size_t>(most));
  SequenceList shortest_first(waiting.begin() + static_cast<std::ptrdiff_t>(first), waiting.end());
  const auto tokens_at = [&](std::size_t sequence) { return batch.sequences[sequence].tokens; };
  std::stable_sort(shortest_first.begin(), shortest_first.end(),
                   [&](std::size_t a, std::size_t b) { return tokens_at(a) < tokens_at(b); });
  std::set<std::size_t> taken;
  for (const std::size_t sequence : shortest_first) {
    if (pack.tokens + tokens_at(sequence) > room) break;
    pack.add(sequence, tokens_at(sequence));
    taken.insert(sequence);
  }
  std::erase_if(waiting, [&](std::size_t sequence) { return taken.contains(sequence); });
}

/// InternLM/xtuner at b934f462, get_pack_infos_by_expand_soft_split, its default: next fit from the end of a group; a
/// pack that has no room for the next sequence is topped up from the last `window` that wait.
Packs pack_xtuner(const Batch& batch, const PackRules& rules) {
  Packs packs;
  for (SequenceList& waiting : groups_of(batch, *rules.bounds.group)) {
    packs.emplace_back();
    while (!waiting.empty()) {
      const std::size_t sequence = waiting.back();
      const std::int64_t tokens = batch.sequences[sequence].tokens;
      waiting.pop_back();
      if (!packs.back().sequences.empty() && packs.back().tokens + tokens > rules.room) {
        top_up(packs.back(), waiting, *rules.bounds.window, batch, rules.room);
        packs.emplace_back();
      }
      packs.back().add(sequence, tokens);
    }
  }
  return packs;
}

// Takes out of a buffer its first sequence, and in their order those that still fit.
SequencePack taken_from(SequenceList& buffer, const Batch& batch, std::int64_t room) {
  SequencePack pack;
  SequenceList left;
  for (const std::size_t sequence : buffer) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    if (pack.sequences.empty() || pack.tokens + tokens <= room) {
      pack.add(sequence, tokens);
    } else {
      left.push_back(sequence);
    }
  }
  buffer = std::move(left);
  return pack;
}

/// ByteDance-Seed/VeOmni at d9774494, DynamicBatchSizeDataLoader with TextBatchingStrategy, without the smaller packs
/// of its first steps: a pack is taken out of a buffer that holds at least `window` sequences and a pack's tokens. What
/// is in the buffer at the end begins the next step there.
Packs pack_veomni(const Batch& batch, const PackRules& rules) {
  Packs packs;
  SequenceList buffer;
  std::int64_t tokens = 0;
  const auto take = [&] {
    packs.push_back(taken_from(buffer, batch, rules.room));
    tokens -= packs.back().tokens;
  };
  for (const std::size_t sequence : in_data_order(batch)) {
    if (std::ssize(buffer) >= *rules.bounds.window && tokens >= rules.room) take();
    buffer.push_back(sequence);
    tokens += batch.sequences[sequence].tokens;
  }
  while (!buffer.empty()) take();
  return packs;
}

// The last `window` packs are open; if none of them takes a sequence, they all close, and it opens the next ones.
template <class Choose>
Packs pack_side_by_side(const Batch& batch, const PackRules& rules, const Choose& choose) {
  Packs packs;
  std::size_t first_open = 0;
  for (const std::size_t sequence : in_data_order(batch)) {
    const std::int64_t tokens = batch.sequences[sequence].tokens;
    const auto has_room = [&](const SequencePack& pack) {
      return pack.tokens + tokens <= rules.room && std::ssize(pack.sequences) != rules.bounds.max_sequences;
    };
    const std::span<SequencePack> open = std::span(packs).subspan(first_open);
    const auto chosen = choose(open, has_room);
    if (chosen != open.end()) {
      chosen->add(sequence, tokens);
      continue;
    }
    if (std::ssize(open) == *rules.bounds.window) first_open = packs.size();
    packs.emplace_back().add(sequence, tokens);
  }
  return packs;
}

/// google/grain at f5dd0d8a, FirstFitPackedBatch. In torchtitan (b5bcd76c) the packs are shuffled then.
Packs pack_grain(const Batch& batch, const PackRules& rules) {
  return pack_side_by_side(batch, rules, [](std::span<SequencePack> open, const auto& has_room) {
    return std::find_if(open.begin(), open.end(), has_room);
  });
}

/// The same, BestFitPackedBatch: the fullest, the first of equals.
Packs pack_grain_best_fit(const Batch& batch, const PackRules& rules) {
  return pack_side_by_side(batch, rules, [](std::span<SequencePack> open, const auto& has_room) {
    auto fullest = open.end();
    for (auto pack = open.begin(); pack != open.end(); ++pack) {
      if (has_room(*pack) && (fullest == open.end() || pack->tokens > fullest->tokens)) fullest = pack;
    }
    return fullest;
  });
}

/// deepspeedai/DeepSpeed at edaa7221, batch_by_seqlens: `window` packs at a time are dealt equal numbers of sequences
/// in turn, as many as all have room for. The original never trains the last sequences; here next fit packs them.
Packs pack_deepspeed(const Batch& batch, const PackRules& rules) {
  const SequenceList all = in_data_order(batch);
  const auto width = static_cast<std::size_t>(*rules.bounds.window);
  Packs packs;
  std::size_t next = 0;
  for (bool filled = true; filled;) {
    Packs row(width);
    filled = false;
    for (; next + width < all.size(); next += width, filled = true) {
      const auto fits = [&](std::size_t i) {
        return row[i].tokens + batch.sequences[all[next + i]].tokens <= rules.room &&
               std::ssize(row[i].sequences) != rules.bounds.max_sequences;
      };
      bool all_fit = true;
      for (std::size_t i = 0; i < width; ++i) all_fit = all_fit && fits(i);
      if (!all_fit) break;
      for (std::size_t i = 0; i < width; ++i) row[i].add(all[next + i], batch.sequences[all[next + i]].tokens);
    }
    if (filled) add_all(packs, std::move(row));
  }
  add_all(packs, next_fit(batch, {all.begin() + static_cast<std::ptrdiff_t>(next), all.end()}, rules.room,
                          rules.bounds.max_sequences));
  return packs;
}

/// NVIDIA/Megatron-LM at d98e8a64, SequencePacker of megatron/rl/sequence_packing_utils.py, dealt `round-robin`: next
/// fit, longest first, of lengths padded to a multiple of twice the ranks that share them.
Packs pack_megatron_rl_in_turn(const Batch& batch, const PackRules& rules) {
  const Batch padded = rounded(batch, rules.cp > 1 ? 2 * rules.cp : 1);
  return next_fit(padded, longest_first(batch), rules.room, rules.bounds.max_sequences);
}

/// The same, dealt `fifo`: replicas get consecutive packs, the first ones one more.
Packs pack_megatron_rl(const Batch& batch, const PackRules& rules) {
  Packs made = pack_megatron_rl_in_turn(batch, rules);
  const std::size_t replicas = static_cast<std::size_t>(rules.replicas);
  std::vector<Packs> by_replica(replicas);
  for (std::size_t replica = 0, next = 0; replica < replicas; ++replica) {
    const std::size_t count = made.size() / replicas + (replica < made.size() % replicas ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) by_replica[replica].push_back(std::move(made[next++]));
  }
  return packs_in_turn(std::move(by_replica));
}

}  // namespace

bool Packer::has(std::string_view option) const {
  return std::find(options.begin(), options.end(), option) != options.end();
}

const std::vector<PackBound>& pack_bounds() {
  static const std::vector<PackBound> all = {
      {"max_sequences", "the most sequences of a pack", "sequences", "any number", &PackBounds::max_sequences},
      {"group", "sequences that are packed before a later one is looked at", "sequences", "all", &PackBounds::group},
      {"window",
       "what is looked at side by side: packs that are open (grain), of a step (llm_foundry) or of equal numbers of "
       "sequences (deepspeed), or sequences that wait (veomni) or may top up a pack (xtuner)",
       "", "as many as the tokens fill", &PackBounds::window},
  };
  return all;
}

const std::vector<Packer>& packers() {
  static const std::vector<Packer> all = {
      {"best_fit", "longest sequence first, each where the least room is left", {}, {}, nullptr},
      {"next_fit", "in the order of the data, as data loaders do", {"max_sequences"}, {}, pack_next_fit},
      {"trl", "TRL's bfd: best fit, but of packs with equal room the one that has had it longest", {}, {}, pack_trl},
      {"axolotl", "first fit in the order of the data", {"max_sequences", "group"}, {200, 100'000, {}}, pack_axolotl},
      {"axolotl_sequential", "next fit", {}, {}, pack_next_fit},
      {"llamafactory",
       "again and again the longest sequence that fits, also in NeMo Automodel",
       {},
       {},
       pack_llamafactory},
      {"ms_swift", "longest first, each into the emptiest pack", {"group"}, {{}, 1000, {}}, pack_ms_swift},
      {"ms_swift_sequential", "next fit", {}, {}, pack_next_fit},
      {"megatron_bridge", "first fit in an order drawn at random, also in NeMo", {}, {}, pack_bridge_shuffled},
      {"megatron_bridge_decreasing", "first fit, longest first", {}, {}, pack_bridge_decreasing},
      {"megatron_rl",
       "Megatron-LM's reinforcement learning: next fit, longest first, consecutive packs to a replica",
       {"max_sequences"},
       {16, {}, {}},
       pack_megatron_rl},
      {"megatron_rl_in_turn",
       "the same packs to replicas in turn",
       {"max_sequences"},
       {16, {}, {}},
       pack_megatron_rl_in_turn},
      {"llm_foundry",
       "first fit, longest first, among packs that take turns, the fullest pack first",
       {"window"},
       {},
       pack_llm_foundry},
      {"open_instruct", "next fit up to the tokens of a replica", {}, {}, pack_open_instruct},
      {"xtuner",
       "next fit from the end of the data, topped up with short sequences",
       {"group", "window"},
       {{}, 10'000, 1000},
       pack_xtuner},
      {"xtuner_soft", "next fit", {}, {}, pack_next_fit},
      {"veomni", "in the order of a buffer, what still fits", {"window"}, {{}, {}, 200}, pack_veomni},
      {"torchtune", "next fit", {}, {}, pack_next_fit},
      {"grain",
       "first fit among the packs that are open, as in torchtitan",
       {"max_sequences", "window"},
       {{}, {}, 8},
       pack_grain},
      {"grain_best_fit", "best fit among them", {"max_sequences", "window"}, {{}, {}, 8}, pack_grain_best_fit},
      {"deepspeed",
       "DeepSpeed's variable batch size: next fit, or rows of packs",
       {"max_sequences", "window"},
       {{}, {}, 1},
       pack_deepspeed},
  };
  return all;
}

}  // namespace hdpsim
