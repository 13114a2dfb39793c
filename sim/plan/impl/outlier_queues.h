#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "sim/plan/planner.h"
#include "sim/plan/work_model.h"
#include "sim/trace/batch_source.h"

namespace hdpsim {

/// How WLB-LLM holds long sequences back.
struct OutlierRules {
  /// Sequences from `bounds[i]` tokens up to the next bound wait in queue i, in the order in which they came. Rising;
  /// empty: no sequence waits for being long.
  std::vector<std::int64_t> bounds;
  std::int64_t replicas = 1;  ///< Groups of ranks; each runs equally many micro-batches.
  std::int64_t context = 1;   ///< Tokens of the mean micro-batch: the longest sequence.
  std::int64_t room = 1;      ///< Tokens of a micro-batch at most.
  WorkModel work;

  /// As many micro-batches as so many tokens fill; at least one a replica.
  [[nodiscard]] std::size_t micro_batches(std::int64_t tokens) const;
};

/// What a step trains, in the order in which it is packed, and how even its micro-batches are.
struct ReleasedBatch {
  Batch batch;
  double most_work = 0;  ///< Compute seconds of the micro-batch that has most, ...
  double mean_work = 0;  ///< ... and of the mean one.
};

/// One step of WLB-LLM's delay (Wang et al. 2025, arXiv 2503.17924, algorithm 1). A queue with at least one sequence
/// for every micro-batch of the step's tokens releases so many, or a multiple of it. What the last step left comes
/// first, then what is new or released, by falling length; all of it is packed by work (pack_by_work), and what finds
/// no room is left for the next step. If nothing else would be trained, the lowest queue that is not empty releases
/// what it has.
[[nodiscard]] ReleasedBatch release(const Batch& arrived, const OutlierRules& rules, HeldSequences& held);

/// The bounds that let micro-batches come out most even on the first steps of the data: halves of the context, at most
/// two of them, of which the paper finds a third to be worth nothing. No queue may need more than eight steps, or a
/// quarter of the run, for a sequence a micro-batch, and the mean token waits half a step at most, as in the paper.
/// Empty if none of them helps, and for steps of more than 200,000 sequences, which would take minutes to try.
[[nodiscard]] std::vector<std::int64_t> tuned_bounds(const BatchSource& data, std::int64_t steps, OutlierRules rules);

/// What is trained of `data`, step by step, under such rules; their bounds are those that `bounds` says when the first
/// step is asked for, and without bounds every batch is trained as it comes. A run of `steps` steps goes round: it
/// begins with what such runs before it would hold back at their end, so that over many steps it trains what it reads,
/// and its first steps are no easier than the others. Asking for steps in their order costs as much as packing them;
/// what is held before up to 1,024 steps is kept, so that asking for another one packs those from the nearest kept one
/// on. `data` must outlive it.
class HeldBackBatches final : public BatchSource {
 public:
  HeldBackBatches(const BatchSource& data, OutlierRules rules, std::function<std::vector<std::int64_t>()> bounds,
                  std::int64_t steps);

  [[nodiscard]] Batch step(std::int64_t k) const override;
  [[nodiscard]] std::optional<std::int64_t> lap() const override { return data_.lap(); }
  [[nodiscard]] double sequences_per_step() const override { return data_.sequences_per_step(); }
  [[nodiscard]] std::optional<TraceUse> use(std::int64_t steps) const override { return data_.use(steps); }

 private:
  void begin() const;
  void keep(std::int64_t step, const HeldSequences& held) const;

  const BatchSource& data_;
  const std::function<std::vector<std::int64_t>()> bounds_;
  const std::int64_t steps_;
  mutable std::once_flag begun_;
  mutable OutlierRules rules_;                          ///< Constant from then on.
  mutable std::mutex mutex_;                            ///< Of the following.
  mutable std::map<std::int64_t, HeldSequences> held_;  ///< What is held before a step: the latest steps, and ...
  mutable std::int64_t apart_ = 1;                      ///< ... among those before, the multiples of this.
};

}  // namespace hdpsim
