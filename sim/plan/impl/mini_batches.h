#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/key_table.h"
#include "sim/plan/impl/bin_exchange.h"
#include "sim/plan/impl/packs.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {

// What trainers for reinforcement learning have in common: several optimizer steps a batch, and batches that are padded
// to one length.

/// Into which optimizer steps a batch is divided.
struct MiniBatchOptions : PolicyOptions {
  std::optional<std::int64_t> mini_batch;
  std::optional<std::int64_t> updates;
};

/// `items`: what a mini-batch has a number of; `otherwise`: what becomes of batches that do not divide.
template <class Options>
void add_mini_batches(KeyTable<Options>& keys, const std::string& items = "sequences",
                      const std::string& otherwise = "a batch that does not divide as the framework asks is refused") {
  keys.count("mini_batch", {1, limits::most_tokens_of_sequence}, at(&Options::mini_batch),
             items + " that each optimizer step takes; " + otherwise, {.unit = items, .otherwise = "all"});
  keys.count("updates", {1, 65536}, at(&Options::updates),
             "optimizer steps that one batch is divided into, of " + items +
                 " in numbers as even as they can be, in place of 'mini_batch', for batches of any number",
             {.unit = "steps", .otherwise = "1"});
}

/// Whether batches are padded to one length.
template <class Options, class Member>
void add_padded_choice(KeyTable<Options>& keys, Member member) {
  keys.word("batches", "form of batches", {{"packed", false}, {"padded", true}}, member,
            "sequences of a micro-batch are packed, or sequences of like lengths are rows that are padded to one");
}

/// The rule that options state: both at once are reported.
class UpdateRule {
 public:
  /// `items`: what a mini-batch has a number of.
  UpdateRule(std::string policy, PoolFit& pool, const MiniBatchOptions& options, std::string items = "sequences");

  /// Whether mini-batches have a stated size: batches that the framework refuses are then refused.
  [[nodiscard]] bool is_strict() const { return mini_batch_.has_value(); }
  /// Runs of a list, one for each update, some of which may be empty: of `mini_batch` / `parts` items, or in even
  /// numbers. `parts`: replicas that divide each mini-batch. InputError if the mini-batch or the list does not divide.
  [[nodiscard]] std::vector<SequenceList> runs(const SequenceList& items, std::size_t parts = 1) const;
  /// InputError at the option of the mini-batches, or else at the policy, whose name the message begins with.
  [[noreturn]] void refuse(const std::string& message, const std::string& help) const;

 private:
  std::string policy_;
  std::string items_;
  Position position_;
  std::optional<std::int64_t> mini_batch_;
  std::size_t updates_;
};

/// Consecutive parts of a list, whose sizes differ by at most one, larger ones first.
[[nodiscard]] std::vector<SequenceList> even_runs(const SequenceList& items, std::size_t runs);

/// Divides sequences by largest_differencing() on `cost`, each part in the order of `sequences`: in equal numbers where
/// `equal`. `Cost`: ExactWork of a sequence.
template <class Cost>
[[nodiscard]] std::vector<SequenceList> differencing(const SequenceList& sequences, std::size_t parts, bool equal,
                                                     const Cost& cost) {
  std::vector<ExactWork> costs;
  costs.reserve(sequences.size());
  for (const std::size_t sequence : sequences) costs.push_back(cost(sequence));
  std::vector<SequenceList> sets = largest_differencing(costs, parts, equal);
  for (SequenceList& set : sets) {
    for (std::size_t& place : set) place = sequences[place];
  }
  return sets;
}

/// Rows of a batch padded to one length: the places [first, first + count) of every replica.
struct PaddedRows {
  std::size_t first = 0;
  std::size_t count = 0;
  std::int64_t width = 0;
};

/// Sequences dealt to replicas by rising length, and cut into padded micro-batches of the same numbers on all of them
/// (BatchedDataDict.shard_by_batch_size of NeMo RL, dynamic_batching_shard of ROLL).
struct PaddedBatch {
  std::vector<SequenceList> replicas;
  std::vector<PaddedRows> micro_batches;
};

/// How lengths are padded.
struct PaddingRule {
  std::int64_t rounded_to = 1;
  std::int64_t widest = 0;  ///< Not beyond this; 0: there is no such bound.
  std::int64_t room = 1;    ///< Tokens of a micro-batch, padding included.
};

/// Every place has the width of the longest sequence that a replica has there, as the rule rounds it; places join a
/// micro-batch as long as it has room for all of them at the width of the widest. Empty where one place has more tokens
/// than the room: `too_wide` is then its width.
[[nodiscard]] std::optional<PaddedBatch> padded_batch(const Batch& batch, SequenceList sequences, std::size_t replicas,
                                                      const PaddingRule& rule, std::int64_t& too_wide);

/// Cuts the micro-batches of most tokens in half, the first half rounded down, until there are `count`; false if too
/// few have several places (dynamic_batching_shard of ROLL).
[[nodiscard]] bool halve_padded(std::vector<PaddedRows>& micro_batches, std::size_t count);

/// Adds one of a replica's micro-batches. It may have fewer rows than others, or none.
void add_padded_rows(PlanBuilder& builder, const PaddedBatch& batch, const PaddedRows& rows, std::size_t replica,
                     std::int64_t cp);

}  // namespace hdpsim
