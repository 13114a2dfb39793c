#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/model/experts.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// The extent of an expert group, and what its ranks do if it spans several HDP ranks. Such ranks meet in the
/// all-to-alls of every layer with experts, forward and backward, so all must take part the same number of times. HDP
/// plans give ranks different numbers of micro-batches, and the others would wait for ever for a rank that has none
/// left.
enum class ExpertSpan : std::uint8_t {
  inside,   ///< Within the devices of one rank: ranks do not depend on each other.
  waves,    ///< Over several ranks, which run waves of micro-batches together. A rank without one in a wave has no
            ///< tokens; its devices compute their experts for the tokens of the others.
  padding,  ///< The same, but a rank without one runs a micro-batch of padding: its capacity in tokens, which are
            ///< not in the loss. For frameworks whose ranks must all run the same program on the same shapes.
};
/// `inside`, `waves`, `padding`, in the order of the enumeration.
[[nodiscard]] const std::vector<std::string>& expert_span_names();

/// The plan in which every rank of an expert group takes part in all waves of the group: micro-batches of `padding`
/// tokens, or of none, are added on the ranks that have no other to run. A micro-batch's wave is one later than the
/// latest wave of the micro-batches before it, of its update, on any of its ranks; so a ring is in one wave on all its
/// ranks, and no two waves wait for each other. Waves in which an expert group has no micro-batch do not exist for it.
/// The plan must be sound (plan_check.h) and have no waves yet; `expert_ranks` must divide its ranks (checked).
/// O(n log n) in the micro-batches of all ranks, old and new.
[[nodiscard]] Plan in_expert_waves(Plan plan, std::int64_t expert_ranks, std::int64_t padding);

/// Which micro-batches run together: those of a wave, and those of all waves that share a ring. Without expert groups
/// over several ranks, each runs by itself.
class WaveTable {
 public:
  /// The ranks of an expert group must have the same number of micro-batches (checked). O(micro-batches of all ranks).
  explicit WaveTable(const Plan& plan);

  [[nodiscard]] std::size_t count() const { return first_.size() - 1; }
  [[nodiscard]] std::size_t wave(MicroBatchId id) const { return wave_of_[id.index()]; }
  /// The micro-batches of a wave, in the order of their ids.
  [[nodiscard]] std::span<const MicroBatchId> members(std::size_t wave) const {
    return std::span(members_).subspan(first_[wave], first_[wave + 1] - first_[wave]);
  }

 private:
  std::vector<std::size_t> wave_of_;  // by micro-batch
  std::vector<std::size_t> first_;    // by wave: into members_
  std::vector<MicroBatchId> members_;
};

/// An order of all micro-batches that agrees with every rank's schedule: a micro-batch that is ready earlier (all its
/// ranks have come to it) is earlier in it, and micro-batches that run together (WaveTable) are adjacent. Micro-batches
/// that wait for each other in a cycle, and those behind them, are missing. Ids out of range are skipped. O(sum of
/// schedule lengths).
[[nodiscard]] std::vector<MicroBatchId> order_of_execution(const Plan& plan);

/// For every micro-batch, the tokens of the fullest expert group that contains one of its ranks. O(micro-batches of all
/// ranks + spans).
[[nodiscard]] std::vector<ExpertTokens> expert_tokens(const Plan& plan, std::int64_t tp, std::int64_t ep);

}  // namespace hdpsim
