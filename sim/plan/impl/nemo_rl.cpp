#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/plan/impl/mini_batches.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

enum class NemoPacking : std::uint8_t { modified_first_fit_decreasing, first_fit_decreasing, concatenative };

struct NemoRules {
  NemoPacking packing = NemoPacking::modified_first_fit_decreasing;
  bool largest_first = false;   ///< A replica runs its packs by falling tokens.
  std::int64_t limit = 1;       ///< Tokens of a pack,
  std::int64_t rounded_to = 1;  ///< to which lengths are so padded.
  bool padded = false;          ///< Batches are padded to one length, and not packed.
};

using Packs = std::vector<SequencePack>;

/// Modified first-fit decreasing (Johnson and Garey 1985) as NeMo RL has it: sequences of more than a half of a pack, a
/// third, a sixth, and others.
class ModifiedFirstFit {
 public:
  ModifiedFirstFit(const Batch& batch, std::int64_t limit) : batch_(batch), limit_(limit) {}

  Packs packs_of(const SequenceList& sequences) {
    SequenceList large;
    SequenceList medium;
    SequenceList small;
    SequenceList tiny;
    for (const std::size_t sequence : sequences) {
      const std::int64_t length = tokens(sequence);
      (2 * length > limit_   ? large
       : 3 * length > limit_ ? medium
       : 6 * length > limit_ ? small
                             : tiny)
          .push_back(sequence);
    }
    large = longest_first(batch_, std::move(large));
    medium = longest_first(batch_, std::move(medium));
    for (SequenceList* rising : {&small, &tiny}) {
      std::stable_sort(rising->begin(), rising->end(),
                       [&](std::size_t a, std::size_t b) { return tokens(a) < tokens(b); });
    }
    for (const std::size_t sequence : large) packs_.emplace_back().add(sequence, tokens(sequence));
    add_medium(medium);
    add_small(small);
    SequenceList rest = std::move(medium);
    for (const SequenceList* more : {&small, &tiny}) rest.insert(rest.end(), more->begin(), more->end());
    rest = longest_first(batch_, std::move(rest));
    for (SequencePack& pack : packs_) fill(pack, rest);
    add_emptiest(rest);
    return std::move(packs_);
  }

 private:
  [[nodiscard]] std::int64_t tokens(std::size_t sequence) const { return batch_.sequences[sequence].tokens; }
  [[nodiscard]] bool fits(std::size_t sequence, const SequencePack& pack) const {
    return pack.tokens + tokens(sequence) <= limit_;
  }

  // What follows it in the list.
  SequenceList::iterator move(SequenceList& from, SequenceList::iterator sequence, SequencePack& pack) {
    pack.add(*sequence, tokens(*sequence));
    return from.erase(sequence);
  }

  // The longest medium sequence that fits joins each pack.
  void add_medium(SequenceList& medium) {
    for (SequencePack& pack : packs_) {
      const auto longest =
          std::find_if(medium.begin(), medium.end(), [&](std::size_t sequence) { return fits(sequence, pack); });
      if (longest != medium.end()) move(medium, longest, pack);
    }
  }

  // Packs of one large sequence, from the last one on, get the shortest small one and the longest that then fits,
  // if there is any.
  void add_small(SequenceList& small) {
    for (auto pack = packs_.rbegin(); pack != packs_.rend(); ++pack) {
      if (pack->sequences.size() > 1 || small.size() < 2) continue;
      if (pack->tokens + tokens(small[0]) + tokens(small[1]) > limit_) continue;
      move(small, small.begin(), *pack);
      const auto longest =
          std::find_if(small.rbegin(), small.rend(), [&](std::size_t sequence) { return fits(sequence, *pack); });
      move(small, std::prev(longest.base()), *pack);
    }
  }

  // The longest that fits, again and again.
  void fill(SequencePack& pack, SequenceList& rest) {
    for (auto sequence = rest.begin(); sequence != rest.end();) {
      sequence = fits(*sequence, pack) ? move(rest, sequence, pack) : std::next(sequence);
    }
  }

  // What is left goes to the emptiest of new packs if it fits there.
  void add_emptiest(const SequenceList& rest) {
    std::multimap<std::int64_t, SequencePack> others;  // by fill; of equal ones, the last to change comes last
    for (const std::size_t sequence : rest) {
      SequencePack pack;
      if (!others.empty() && fits(sequence, others.begin()->second)) {
        pack = std::move(others.extract(others.begin()).mapped());
      }
      pack.add(sequence, tokens(sequence));
      const std::int64_t fill = pack.tokens;
      others.emplace(fill, std::move(pack));
    }
    for (auto& [fill, pack] : others) packs_.push_back(std::move(pack));
  }

  const Batch& batch_;
  std::int64_t limit_;
  Packs packs_;
};

/// A step of NeMo RL (NVIDIA-NeMo/RL 7ea279ab, BatchedDataDict.shard_by_batch_size). With sequence packing each
/// optimizer step packs its sequences; packs are divided until their number is a multiple of the replicas', and go to
/// these in turn. With dynamic batching sequences of like lengths are padded to one.
class NemoRl final : public BuildingPlanner {
 public:
  NemoRl(const PlanningContext& context, std::int64_t cp, const NemoRules& rules, UpdateRule updates)
      : BuildingPlanner("nemo-rl", context, true), cp_(cp), rules_(rules), updates_(std::move(updates)) {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    const auto replicas = static_cast<std::size_t>(context_.ranks / cp_);
    const Batch in_multiples = rounded(batch, rules_.rounded_to);
    for (const SequenceList& run : updates_.runs(in_data_order(batch))) {
      if (run.empty()) continue;
      require_divided(run, replicas);
      builder.begin_update();
      rules_.padded ? add_padded(builder, batch, run, replicas) : add_packed(builder, in_multiples, run, replicas);
    }
  }

  void add_packed(PlanBuilder& builder, const Batch& batch, const SequenceList& run, std::size_t replicas) const {
    for (const std::size_t sequence : run) {
      const std::int64_t tokens = batch.sequences[sequence].tokens;
      if (tokens > rules_.limit) refuse_length(tokens);
    }
    Packs packs = packs_of(batch, run);
    split_off(packs, most_sequences_first(packs), replicas, batch);
    if (packs.size() % replicas != 0) {
      updates_.refuse(fmt::format("{} sequences make no multiple of {} packs", run.size(), replicas),
                      "use larger batches");
    }
    for (std::size_t replica = 0; replica < replicas; ++replica) add_replica(builder, batch, packs, replica);
  }

  void add_padded(PlanBuilder& builder, const Batch& batch, const SequenceList& run, std::size_t replicas) const {
    std::int64_t longest = 0;
    for (const Sequence& sequence : batch.sequences) longest = std::max(longest, sequence.tokens);
    std::int64_t too_wide = 0;
    const auto made = padded_batch(batch, run, replicas, {rules_.rounded_to, longest, rules_.limit}, too_wide);
    if (!made) refuse_length(too_wide);
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      for (const PaddedRows& rows : made->micro_batches) add_padded_rows(builder, *made, rows, replica, cp_);
    }
  }

  [[noreturn]] void refuse_length(std::int64_t tokens) const {
    updates_.refuse(fmt::format("a sequence of {} tokens is longer than a micro-batch, which has {}",
                                count_text(tokens), count_text(rules_.limit)),
                    "use a larger 'max_tokens', or more ranks for a sequence");
  }

  void require_divided(const SequenceList& run, std::size_t replicas) const {
    const bool divides = run.size() % replicas == 0;
    if (run.size() >= replicas && (divides || !updates_.is_strict())) return;
    updates_.refuse(fmt::format("an optimizer step of {} sequences for {} replicas", run.size(), replicas),
                    updates_.is_strict() ? "make 'mini_batch' a multiple of the replicas, or state 'updates'"
                                         : "use larger batches, or fewer 'updates'");
  }

  [[nodiscard]] Packs packs_of(const Batch& batch, const SequenceList& run) const {
    switch (rules_.packing) {
      case NemoPacking::modified_first_fit_decreasing:
        return ModifiedFirstFit(batch, rules_.limit).packs_of(run);
      case NemoPacking::first_fit_decreasing:  // of equal lengths the last in the data comes first
        return first_fit(batch, longest_first(batch, {run.rbegin(), run.rend()}), rules_.limit);
      case NemoPacking::concatenative:
        break;
    }
    return next_fit(batch, run, rules_.limit);
  }

  void add_replica(PlanBuilder& builder, const Batch& batch, const Packs& packs, std::size_t replica) const {
    const auto replicas = static_cast<std::size_t>(context_.ranks / cp_);
    SequenceList own;
    for (std::size_t pack = replica; pack < packs.size(); pack += replicas) own.push_back(pack);
    if (rules_.largest_first) {
      std::stable_sort(own.begin(), own.end(),
                       [&](std::size_t a, std::size_t b) { return packs[a].tokens > packs[b].tokens; });
    }
    for (const std::size_t pack : own) {
      builder.add_padded(replica * static_cast<std::size_t>(cp_), {cp_}, sized(batch, packs[pack].sequences));
    }
  }

  std::int64_t cp_;
  NemoRules rules_;
  UpdateRule updates_;
};

/// `nemo-rl: {cp: auto | N, max_tokens: N, packing: WORD, largest_first: false, round_to: N, batches: packed | padded,
/// mini_batch: N, updates: N}`.
struct NemoRlPolicy final : MiniBatchOptions {
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> max_tokens;
  NemoRules rules;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const std::int64_t degree = pool.degree_of(cp);
    if (rules.padded && (rules.packing != NemoRules{}.packing || rules.largest_first)) {
      pool.error(pool.where("batches"),
                 "padded batches are not packed: 'packing' and 'largest_first' are of packed ones",
                 "leave them out, or write batches: packed");
    }
    NemoRules own = rules;
    own.limit = pool.micro_batch_limit(degree, max_tokens);
    return std::make_unique<NemoRl>(pool.context(), degree, own, UpdateRule("nemo-rl", pool, *this));
  }
};

}  // namespace

PolicyKind nemo_rl_policy() {
  KeyTable<NemoRlPolicy> keys("nemo-rl");
  add_cp(keys);
  add_max_tokens(keys);
  keys.word("packing", "way to pack",
            {{"modified_first_fit_decreasing", NemoPacking::modified_first_fit_decreasing},
             {"first_fit_decreasing", NemoPacking::first_fit_decreasing},
             {"concatenative", NemoPacking::concatenative}},
            at(&NemoRlPolicy::rules, &NemoRules::packing),
            "how sequences are packed: the long ones first, and the gaps filled by size; longest first, each into the "
            "first pack with room; or in the order of the data");
  keys.flag("largest_first", at(&NemoRlPolicy::rules, &NemoRules::largest_first),
            "a replica runs its packs by falling tokens; false: in the order in which they were made");
  keys.count("round_to", {1, 65536}, at(&NemoRlPolicy::rules, &NemoRules::rounded_to),
             "lengths are padded to a multiple of this", {.unit = "tokens"});
  add_padded_choice(keys, at(&NemoRlPolicy::rules, &NemoRules::padded));
  add_mini_batches(keys);
  return policy_kind(
      "nemo-rl",
      "NeMo RL's batches: each optimizer step packs its sequences up to the tokens of a micro-batch, and "
      "replicas get the packs in turn; or replicas get sequences by length, padded to one in each "
      "micro-batch",
      std::move(keys));
}

}  // namespace hdpsim
