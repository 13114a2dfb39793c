#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/impl/packs.h"

namespace hdpsim {

/// Bounds that some packers have. Empty: none, or what follows from the batch.
struct PackBounds {
  std::optional<std::int64_t> max_sequences = {};  ///< Of a pack.
  std::optional<std::int64_t> group = {};          ///< Sequences that are packed before a later one is looked at.
  std::optional<std::int64_t> window = {};         ///< Packs or waiting sequences that are looked at side by side.
};

/// An option of static packers.
struct PackBound {
  std::string name;
  std::string meaning;  ///< For the reference page.
  std::string unit;
  std::string without;  ///< What holds where a packer that has it states no default.
  std::optional<std::int64_t> PackBounds::*bound;
};
[[nodiscard]] const std::vector<PackBound>& pack_bounds();

/// What a packer goes by.
struct PackRules {
  std::int64_t room = 1;      ///< Tokens of a pack.
  std::int64_t replicas = 1;  ///< To which packs go in turn.
  std::int64_t cp = 1;        ///< Ranks of a replica.
  PackBounds bounds = {};
};

/// How a trainer packs the sequences of a step.
///
/// Trainers pack a whole data set, or what a loader has read, and put the packs into steps; here each step packs its
/// own sequences. Nothing is dropped: what the original leaves for a later step, or out of the last one, is packed in
/// the step itself, behind the rest. A sequence longer than a pack reaches no packer: the data cut it to the context.
struct Packer {
  std::string name;                       ///< The word of a study.
  std::string meaning;                    ///< For the reference page: whose it is, and what it does.
  std::vector<std::string_view> options;  ///< Those of pack_bounds() that it has,
  PackBounds defaults;                    ///< and what they are in the original.
  /// The packs in the order in which they go to replicas in turn; an empty one leaves its replica out. Null: by
  /// best_fit_list(), which large batches need.
  std::vector<SequencePack> (*pack)(const Batch& batch, const PackRules& rules) = nullptr;

  [[nodiscard]] bool has(std::string_view option) const;
};

/// All packers, first the one of a study that states none.
[[nodiscard]] const std::vector<Packer>& packers();

}  // namespace hdpsim
