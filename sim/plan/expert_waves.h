#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/model/experts.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// Where an expert group lies, and what its ranks do where it reaches over several HDP ranks. Such ranks meet in the
/// all-to-alls of every layer with experts, forward and backward, so each must come as often as the others. Plans of
/// HDP give them unlike numbers of micro-batches, and a rank that has none left would let the others wait for ever.
enum class ExpertSpan : std::uint8_t {
  inside,   ///< Within the devices of one rank: ranks owe each other nothing.
  waves,    ///< Over ranks, which go through waves of micro-batches together. A rank without one in a wave has no
            ///< tokens; its devices compute their experts for the others' tokens.
  padding,  ///< The same, but a rank without one runs a micro-batch of padding: as many tokens as its capacity, which
            ///< no loss counts. For frameworks whose ranks must all run the same program on the same shapes.
};
/// `inside`, `waves`, `padding`, in the order of the enumeration.
[[nodiscard]] const std::vector<std::string>& expert_span_names();

/// The plan with every rank of an expert group in all of its waves: micro-batches of `padding` tokens, or of none, are
/// added on the ranks that have nothing else to run. A micro-batch is in the wave that is one later than the latest of
/// those before it on any of its ranks, so that a ring is in one wave on all its ranks, and no two waves wait for each
/// other. Waves in which an expert group has no micro-batch do not exist for it.
/// The plan must be sound (plan_check.h) and have no waves yet; `expert_ranks` must divide its ranks (checked).
/// O(n log n) in the micro-batches of all ranks, old and new.
[[nodiscard]] Plan in_expert_waves(Plan plan, std::int64_t expert_ranks, std::int64_t padding);

/// Which micro-batches run together: those of a wave, and those of all waves that a ring is part of. Without expert
/// groups over several ranks each runs by itself.
class WaveTable {
 public:
  /// Ranks of an expert group must have equally many micro-batches (checked). O(micro-batches of all ranks).
  explicit WaveTable(const Plan& plan);

  [[nodiscard]] std::size_t count() const { return first_.size() - 1; }
  [[nodiscard]] std::size_t wave(MicroBatchId id) const { return wave_of_[id.index()]; }
  /// Of a wave, in the order of their ids.
  [[nodiscard]] std::span<const MicroBatchId> members(std::size_t wave) const {
    return std::span(members_).subspan(first_[wave], first_[wave + 1] - first_[wave]);
  }

 private:
  std::vector<std::size_t> wave_of_;  // by micro-batch
  std::vector<std::size_t> first_;    // by wave: into members_
  std::vector<MicroBatchId> members_;
};

/// For every micro-batch the tokens of the fullest expert group that one of its ranks is in. O(micro-batches of all
/// ranks + spans).
[[nodiscard]] std::vector<ExpertTokens> expert_tokens(const Plan& plan, std::int64_t tp, std::int64_t ep);

}  // namespace hdpsim
