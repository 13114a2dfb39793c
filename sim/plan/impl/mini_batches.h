#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/key_table.h"
#include "sim/plan/impl/bin_exchange.h"
#include "sim/plan/impl/packs.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {

// What trainers for reinforcement learning have in common: several optimizer steps a batch, and packs that are halved
// until their number suits the replicas.

/// Into which optimizer steps a batch is divided.
struct MiniBatchOptions : PolicyOptions {
  std::optional<std::int64_t> mini_batch;
  std::optional<std::int64_t> updates;
};

/// `items`: what a mini-batch has a number of, "sequences".
template <class Options>
void add_mini_batches(KeyTable<Options>& keys, const std::string& items = "sequences") {
  keys.count("mini_batch", {1, limits::most_tokens_of_sequence}, at(&Options::mini_batch),
             items + " that each optimizer step takes; a batch that does not divide as the framework asks is refused",
             {.unit = items, .otherwise = "all"});
  keys.count("updates", {1, 65536}, at(&Options::updates),
             "optimizer steps that one batch is divided into, of " + items +
                 " in numbers as even as they can be, in place of 'mini_batch', for batches of any number",
             {.unit = "steps", .otherwise = "1"});
}

/// The rule that options state: both at once are reported.
class UpdateRule {
 public:
  UpdateRule(std::string policy, PoolFit& pool, const MiniBatchOptions& options);

  /// Whether mini-batches have a stated size: batches that the framework refuses are then refused.
  [[nodiscard]] bool is_strict() const { return mini_batch_.has_value(); }
  /// Runs of a list, one for each update, some of which may be empty: of `mini_batch` / `parts` items, or in even
  /// numbers. `parts`: replicas that divide each mini-batch. InputError if the mini-batch or the list does not divide.
  [[nodiscard]] std::vector<SequenceList> runs(const SequenceList& items, std::size_t parts = 1) const;
  /// InputError at the option of the mini-batches, or else at the policy, whose name the message begins with.
  [[noreturn]] void refuse(const std::string& message, const std::string& help) const;

 private:
  std::string policy_;
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

/// Halves packs until there are `count`: each time the one of most tokens among those of several sequences, of equal
/// ones the last; the second half goes to the end. Its sequences go, longest first, each to the half of fewer tokens,
/// the first of equal ones (slime and miles, build_dp_schedule). False: packs of single sequences are too few.
[[nodiscard]] bool grow_packs(std::vector<SequenceList>& packs, std::size_t count, const Batch& batch);

/// Packs of at most `room` tokens: each sequence, in this order, goes to the first with room, behind what is there. A
/// longer one has a pack of its own. `tokens(sequence)`. O(n log n).
template <class Tokens>
[[nodiscard]] std::vector<SequenceList> first_fit_packs(const SequenceList& sequences, std::int64_t room,
                                                        const Tokens& tokens) {
  std::vector<SequenceList> packs;
  std::vector<std::size_t> pack_of_bin;
  FirstFit bins(std::max<std::size_t>(1, sequences.size()), room);
  for (const std::size_t sequence : sequences) {
    if (tokens(sequence) > room) {
      packs.push_back({sequence});
      continue;
    }
    const std::size_t bin = bins.place(tokens(sequence)).bin;
    if (bin == pack_of_bin.size()) {
      pack_of_bin.push_back(packs.size());
      packs.emplace_back();
    }
    packs[pack_of_bin[bin]].push_back(sequence);
  }
  return packs;
}

}  // namespace hdpsim
