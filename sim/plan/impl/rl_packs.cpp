// Trainers for reinforcement learning that pack the sequences of one optimizer step on a static mesh: areal, prime-rl,
// skyrl.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include "sim/base/division.h"
#include "sim/base/quantity_text.h"
#include "sim/plan/impl/bin_exchange.h"
#include "sim/plan/impl/packs.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

using Packs = std::vector<SequencePack>;

/// How a micro-batch is filled.
struct RoomOptions : PolicyOptions {
  std::optional<std::int64_t> cp;          ///< Ranks of a replica, which share each of its sequences.
  std::optional<std::int64_t> max_tokens;  ///< Of a micro-batch, for each rank.
};

template <class Options>
void add_room(KeyTable<Options>& keys) {
  add_cp(keys);
  keys.count("max_tokens", {1, limits::most_tokens_of_sequence}, at(&Options::max_tokens),
             "tokens of a micro-batch for each rank", {.unit = "tokens", .otherwise = "the capacity"});
}

/// A replica's sequences as a batch of their own, in which each has its place in the list.
Batch batch_of_list(const Batch& batch, const SequenceList& sequences) {
  Batch own;
  for (const std::size_t sequence : sequences) own.sequences.push_back(batch.sequences[sequence]);
  return own;
}

enum class SkyRlPacker : std::uint8_t { first_fit_decreasing, balanced };

/// `skyrl: {cp: auto | N, max_tokens: N, packer: first_fit_decreasing | balanced}`: SkyRL's SFT (NovaSky-AI/SkyRL at
/// a9564572, make_seq_packer): packs go to replicas in turn, and are split until replicas have as many.
struct SkyRlPolicy final : RoomOptions {
  SkyRlPacker packer = SkyRlPacker::first_fit_decreasing;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const std::int64_t degree = pool.degree_of(cp);
    const auto replicas = static_cast<std::size_t>(pool.context().ranks / degree);
    const auto pack = [room = pool.micro_batch_limit(degree, max_tokens), replicas, chosen = packer,
                       position = pool.position()](const Batch& batch) {
      Packs packs = chosen == SkyRlPacker::balanced ? emptiest_fit(batch, longest_first(batch), room)
                                                    : decreasing(batch, room, position);
      const std::size_t made = packs.size();
      split_off(packs, most_sequences_first(packs), replicas, batch);
      if (packs.size() % replicas == 0) return packs;
      throw InputError(position,
                       fmt::format("skyrl makes {} packs, which it cannot split into a multiple of {}", made, replicas),
                       "use larger batches, or fewer replicas (a larger 'cp')");
    };
    return make_mesh_of_packs("skyrl", pool.context(), degree, pack);
  }

 private:
  // Of equal lengths the last in the data comes first.
  static Packs decreasing(const Batch& batch, std::int64_t room, const Position& position) {
    SequenceList order = in_data_order(batch);
    std::reverse(order.begin(), order.end());
    order = longest_first(batch, std::move(order));
    if (!order.empty() && batch.sequences[order.front()].tokens > room) {
      throw InputError(position,
                       fmt::format("skyrl packs up to {} tokens, and a sequence has {}", count_text(room),
                                   count_text(batch.sequences[order.front()].tokens)),
                       "use a larger 'max_tokens', or packer: balanced");
    }
    return first_fit(batch, order, room);
  }
};

enum class ArealPacker : std::uint8_t { ffd, kk };

/// `areal: {cp: auto | N, max_tokens: N, packer: ffd | kk, group: N, min_micro_batches: N, micro_batches_divided_by:
/// N}`: AReaL (inclusionAI/AReaL at 4aef98d8, balanced_greedy_partition, get_allocate_fn,
/// allocate_balanced_mbs_synced): groups of sequences go to the replica of fewest tokens, in equal numbers; each
/// replica packs its own, and again until all have as many packs. Sequences of equal length, whose order numpy's sort
/// leaves open there, keep that of their replica.
struct ArealPolicy final : RoomOptions {
  ArealPacker packer = ArealPacker::ffd;
  std::int64_t group = 1;     ///< Consecutive sequences that stay together.
  std::int64_t least = 1;     ///< Micro-batches of a replica.
  std::int64_t multiple = 1;  ///< The number of micro-batches of a replica is a multiple of this.

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const std::int64_t degree = pool.degree_of(cp);
    const auto pack = [rules = *this, room = pool.micro_batch_limit(degree, max_tokens),
                       replicas = pool.context().ranks / degree, position = pool.position()](const Batch& batch) {
      return rules.packs_of(batch, room, replicas, position);
    };
    return make_mesh_of_packs("areal", pool.context(), degree, pack);
  }

 private:
  [[nodiscard]] Packs packs_of(const Batch& batch, std::int64_t room, std::int64_t replicas,
                               const Position& position) const {
    if (batch.sequences.empty()) return {};
    const std::vector<SequenceList> lists = dealt(batch, replicas);
    std::vector<Packs> packed(lists.size());
    std::int64_t count = least;
    for (bool all_equal = false; !all_equal;) {
      for (std::size_t i = 0; i < lists.size(); ++i) {
        packed[i] = micro_batches(batch_of_list(batch, lists[i]), room, count, position);
      }
      const auto [fewest, most] = std::minmax_element(
          packed.begin(), packed.end(), [](const Packs& a, const Packs& b) { return a.size() < b.size(); });
      all_equal = fewest->size() == most->size();
      count = std::ssize(*most);
    }
    for (std::size_t i = 0; i < lists.size(); ++i) {
      for (SequencePack& pack : packed[i]) {
        for (std::size_t& place : pack.sequences) place = lists[i][place];
      }
    }
    return packs_in_turn(std::move(packed));
  }

  // The groups, those of most tokens first, each to the replica of fewest tokens that has not its share. Where they
  // cannot be dealt out in equal numbers, which AReaL refuses, some replicas have less.
  [[nodiscard]] std::vector<SequenceList> dealt(const Batch& batch, std::int64_t replicas) const {
    const auto sequences = std::ssize(batch.sequences);
    Batch groups;
    for (std::int64_t i = 0; i < sequences; ++i) {
      if (i % group == 0) groups.sequences.push_back({0, std::ssize(groups.sequences)});
      groups.sequences.back().tokens += batch.sequences[static_cast<std::size_t>(i)].tokens;
    }
    const auto share = static_cast<std::size_t>(divided(std::ssize(groups.sequences), replicas) * group);
    using Load = std::pair<std::int64_t, std::size_t>;  // tokens, replica
    std::priority_queue<Load, std::vector<Load>, std::greater<>> emptiest;
    for (std::size_t i = 0; i < static_cast<std::size_t>(replicas); ++i) emptiest.emplace(0, i);
    std::vector<SequenceList> lists(static_cast<std::size_t>(replicas));
    for (const std::size_t each : longest_first(groups, in_data_order(groups))) {
      const auto [tokens, replica] = emptiest.top();
      emptiest.pop();
      const auto first = static_cast<std::int64_t>(each) * group;
      for (std::int64_t i = first; i < std::min<std::int64_t>(first + group, sequences); ++i) {
        lists[replica].push_back(static_cast<std::size_t>(i));
      }
      if (lists[replica].size() < share) emptiest.emplace(tokens + groups.sequences[each].tokens, replica);
    }
    return lists;
  }

  // Of one replica, at least so many.
  [[nodiscard]] Packs micro_batches(const Batch& own, std::int64_t room, std::int64_t count,
                                    const Position& position) const {
    const std::int64_t sequences = std::ssize(own.sequences);
    std::int64_t wanted = std::max(count, multiple);
    std::optional<Packs> packs;
    if (packer == ArealPacker::kk && wanted <= sequences) packs = differenced(own, room, wanted);
    while (!packs) {
      if (wanted > sequences) {
        throw InputError(position,
                         fmt::format("areal makes {} micro-batches of {} sequences of a replica", wanted, sequences),
                         "use larger batches, or ask for fewer micro-batches");
      }
      Packs made = filled(own, room, static_cast<std::size_t>(wanted));
      if (std::ssize(made) % multiple == 0) packs = std::move(made);
      wanted = rounded_up(wanted + 1, multiple);
    }
    for (SequencePack& pack : *packs) std::sort(pack.sequences.begin(), pack.sequences.end());
    std::sort(packs->begin(), packs->end(),
              [](const SequencePack& a, const SequencePack& b) { return a.sequences < b.sequences; });
    return std::move(*packs);
  }

  // Longest first, each to the pack of fewest sequences that has room, of equals the emptiest; at least `count` packs.
  [[nodiscard]] static Packs filled(const Batch& own, std::int64_t room, std::size_t count) {
    Packs packs;
    std::set<std::pair<std::int64_t, std::size_t>> by_tokens;  // tokens, pack
    for (const std::size_t sequence : longest_first(own)) {
      const std::int64_t tokens = own.sequences[sequence].tokens;
      std::size_t chosen = packs.size();
      if (packs.size() < count || by_tokens.begin()->first + tokens > room) {
        packs.emplace_back();
      } else {
        chosen = by_tokens.begin()->second;
        for (const auto& [held, pack] : by_tokens) {
          if (held + tokens > room) break;
          if (packs[pack].sequences.size() < packs[chosen].sequences.size()) chosen = pack;
        }
        by_tokens.erase({packs[chosen].tokens, chosen});
      }
      packs[chosen].add(sequence, tokens);
      by_tokens.emplace(packs[chosen].tokens, chosen);
    }
    return packs;
  }

  // By largest differencing; empty if a pack is too large then.
  [[nodiscard]] std::optional<Packs> differenced(const Batch& own, std::int64_t room, std::int64_t count) const {
    const std::int64_t asked = rounded_up(std::max(count, divided(own.tokens(), room)), multiple);
    const auto parts = static_cast<std::size_t>(std::min<std::int64_t>(asked, std::ssize(own.sequences)));
    std::vector<ExactWork> lengths;
    for (const Sequence& sequence : own.sequences) lengths.push_back(static_cast<ExactWork>(sequence.tokens));
    Packs packs;
    for (SequenceList& part : largest_differencing(lengths, parts, false)) {
      const std::int64_t tokens = tokens_of(own, part);
      if (tokens > room) return std::nullopt;
      packs.push_back({std::move(part), tokens, 0});
    }
    return packs;
  }
};

/// Exchanges packs between replicas, one pair at a time, the one after which the largest load is least and then the
/// difference to the smallest, the first of equals, as long as that helps.
class PackSwaps {
 public:
  /// `loads` of the packs; `lists`: those of each replica, in order.
  PackSwaps(const std::vector<ExactWork>& loads, std::vector<SequenceList>& lists) : of_pack_(loads), lists_(lists) {
    for (const SequenceList& list : lists) {
      ExactWork sum = 0;
      for (const std::size_t pack : list) sum += loads[pack];
      loads_.push_back(sum);
    }
  }

  void run() {
    while (swap_best()) {
    }
  }

 private:
  using Score = std::pair<ExactWork, ExactWork>;                 // the largest load, the difference to the smallest
  using Loads = std::vector<std::pair<ExactWork, std::size_t>>;  // with the replicas

  bool swap_best() {
    find_extremes();
    best_ = {largest_[0].first, largest_[0].first - smallest_[0].first};
    chosen_ = {};
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      const bool tries_all = is_extreme(i);
      for (std::size_t j = tries_all ? i + 1 : next_extreme(i); j < lists_.size();
           j = tries_all ? j + 1 : next_extreme(j)) {
        look_at(i, j);
      }
    }
    if (chosen_[0] == nullptr) return false;
    std::swap(*chosen_[0], *chosen_[1]);
    for (const auto& [replica, load] : changed_) loads_[replica] = load;
    return true;
  }

  // All exchanges of two replicas.
  void look_at(std::size_t i, std::size_t j) {
    const std::optional<ExactWork> most = of_others(largest_, i, j);
    const std::optional<ExactWork> least = of_others(smallest_, i, j);
    for (std::size_t& a : lists_[i]) {
      for (std::size_t& b : lists_[j]) {
        const ExactWork first = loads_[i] - of_pack_[a] + of_pack_[b];
        const ExactWork second = loads_[j] - of_pack_[b] + of_pack_[a];
        const ExactWork largest = std::max({first, second, most.value_or(first)});
        const Score score{largest, largest - std::min({first, second, least.value_or(first)})};
        if (score >= best_) continue;
        best_ = score;
        chosen_ = {&a, &b};
        changed_ = {{{i, first}, {j, second}}};
      }
    }
  }

  // The three largest and smallest loads.
  void find_extremes() {
    Loads all;
    for (std::size_t i = 0; i < loads_.size(); ++i) all.emplace_back(loads_[i], i);
    const auto kept = static_cast<std::ptrdiff_t>(std::min<std::size_t>(3, all.size()));
    std::partial_sort(all.begin(), all.begin() + kept, all.end());
    smallest_.assign(all.begin(), all.begin() + kept);
    std::partial_sort(all.begin(), all.begin() + kept, all.end(), std::greater<>());
    largest_.assign(all.begin(), all.begin() + kept);
  }
  // Whether it alone has the largest load, or the smallest: no exchange of others is for the better.
  [[nodiscard]] bool is_extreme(std::size_t replica) const {
    return replica == alone_in(largest_) || replica == alone_in(smallest_);
  }
  [[nodiscard]] std::size_t next_extreme(std::size_t replica) const {
    std::size_t next = lists_.size();
    for (const std::size_t each : {alone_in(largest_), alone_in(smallest_)}) {
      if (each > replica) next = std::min(next, each);
    }
    return next;
  }
  // The replica of the first load, or as many as there are if others have the same.
  [[nodiscard]] std::size_t alone_in(const Loads& loads) const {
    const bool is_alone = loads.size() == 1 || loads[0].first != loads[1].first;
    return is_alone ? loads[0].second : lists_.size();
  }
  // The first of the loads that is of neither of two replicas.
  static std::optional<ExactWork> of_others(const Loads& loads, std::size_t i, std::size_t j) {
    const auto found = std::find_if(loads.begin(), loads.end(),
                                    [&](const auto& load) { return load.second != i && load.second != j; });
    return found == loads.end() ? std::nullopt : std::optional(found->first);
  }

  const std::vector<ExactWork>& of_pack_;
  std::vector<SequenceList>& lists_;
  std::vector<ExactWork> loads_;  // by replica
  Loads largest_;
  Loads smallest_;
  Score best_;
  std::array<std::size_t*, 2> chosen_{};                      // packs, in their lists
  std::array<std::pair<std::size_t, ExactWork>, 2> changed_;  // loads after this exchange
};

/// `prime-rl: {cp: auto | N}`: prime-rl (PrimeIntellect-ai/prime-rl at 559b4477, prepare_batch): first fit up to the
/// context, longest first; the packs of most work are halved until there is a multiple of the replicas; largest
/// differencing, and exchanges of packs after it. Work is compute seconds of the pool, where the original has FLOPs of
/// its own of the same form, a s + b s^2.
///
/// Where there are fewer sequences than replicas have packs, the original runs copies of the first pack without a loss
/// on those that lack one. Here these have no micro-batch: they wait as long for the one that is copied. Nor are packs
/// lengthened to a multiple of tokens (pad_to_multiple_of).
struct PrimeRlPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const PlanningContext& context = pool.context();
    const std::int64_t degree = pool.degree_of(cp);
    const auto pack = [room = context.context, replicas = static_cast<std::size_t>(context.ranks / degree),
                       work = context.work](const Batch& batch) {
      const auto cost = [&](std::int64_t tokens) { return work_of(work, tokens); };
      Packs packs = first_fit(batch, longest_first(batch), room);
      halve_heaviest(packs, replicas, batch, cost);
      return dealt(packs, replicas);
    };
    return make_mesh_of_packs("prime-rl", context, degree, pack);
  }

 private:
  // Work in whole numbers, for sums that depend on no order.
  static ExactWork exact(double work) { return static_cast<ExactWork>(std::ldexp(work, 50)); }

  static Packs dealt(const Packs& packs, std::size_t replicas) {
    if (packs.empty()) return {};
    std::vector<ExactWork> loads;
    for (const SequencePack& pack : packs) loads.push_back(exact(pack.work));
    while (loads.size() % replicas != 0) loads.push_back(loads.front());
    std::vector<SequenceList> lists = largest_differencing(loads, replicas, true);
    PackSwaps(loads, lists).run();
    std::vector<Packs> by_replica(replicas);
    for (std::size_t i = 0; i < replicas; ++i) {
      for (const std::size_t pack : lists[i]) {
        if (pack < packs.size()) by_replica[i].push_back(packs[pack]);
      }
    }
    return packs_in_turn(std::move(by_replica));
  }
};

}  // namespace

PolicyKind skyrl_policy() {
  KeyTable<SkyRlPolicy> keys("skyrl");
  add_room(keys);
  keys.word("packer", "packer",
            {{"first_fit_decreasing", SkyRlPacker::first_fit_decreasing}, {"balanced", SkyRlPacker::balanced}},
            at(&SkyRlPolicy::packer),
            "each sequence, longest first, goes to the first pack with room, or to the emptiest");
  return policy_kind("skyrl",
                     "SkyRL's packing: the static mesh with packs filled longest sequence first, split until replicas "
                     "have as many",
                     std::move(keys));
}

PolicyKind areal_policy() {
  KeyTable<ArealPolicy> keys("areal");
  add_room(keys);
  keys.word("packer", "packer", {{"ffd", ArealPacker::ffd}, {"kk", ArealPacker::kk}}, at(&ArealPolicy::packer),
            "micro-batches of a replica: longest first, each where fewest sequences are, or by largest differencing on "
            "their lengths, as far as that fits");
  keys.count("group", {1, 65536}, at(&ArealPolicy::group), "consecutive sequences that stay on one replica",
             {.unit = "sequences"});
  keys.count("min_micro_batches", {1, 65536}, at(&ArealPolicy::least), "micro-batches of a replica at least",
             {.unit = "micro-batches"});
  add_micro_batch_multiple(keys);
  return policy_kind(
      "areal",
      "AReaL's allocation: groups of sequences go to the replica of fewest tokens, in equal numbers, and "
      "each replica packs its own, all as many packs",
      std::move(keys));
}

PolicyKind prime_rl_policy() {
  KeyTable<PrimeRlPolicy> keys("prime-rl");
  add_cp(keys);
  return policy_kind("prime-rl",
                     "prime-rl's packing: first fit up to the context, longest first, packs halved until they are a "
                     "multiple of the replicas, which get equal numbers of them of even work",
                     std::move(keys));
}

}  // namespace hdpsim
