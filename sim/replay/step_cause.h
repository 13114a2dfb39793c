#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/world.h"
#include "sim/plan/plan.h"
#include "sim/plan/work_model.h"
#include "sim/replay/step_row.h"
#include "sim/study/study.h"

namespace hdpsim {

/// The share of one sequence in the length of a step.
struct SequenceShare {
  std::int64_t sequence = 0;  ///< Index in the batch.
  std::int64_t document = 0;  ///< Sequence::document; for a trace the index of the document in the file, ...
  std::int64_t reading = 1;   ///< ... and how often it has been read, this time included.
  std::int64_t tokens = 0;
  double of_tokens = 0;     ///< Share of the step's tokens, ...
  double of_attention = 0;  ///< ... of its (query, key) pairs, ...
  double of_chain = 0;      ///< ... and of the chain's time.
  std::int64_t group = 1;   ///< Size of the largest group that computes a piece of it on the chain.
};

/// One link of the chain that determines the end of a step (critical_path()): the time that a micro-batch adds to it.
struct ChainLink {
  MicroBatchId micro_batch;
  Duration time;
};

/// Why a step took as long as it did.
struct StepCause {
  StepRow row;
  std::int64_t chain = 0;            ///< Micro-batches on the chain, ...
  std::int64_t chain_sequences = 0;  ///< ... and sequences in them.
  /// The sequences with the largest shares of the chain, at most 3. The sequences of a micro-batch share its time in
  /// proportion to the planner's estimate of their work.
  std::vector<SequenceShare> sequences;
  std::int64_t least_group = 1;  ///< Ranks in a group, over all micro-batches of the step.
  std::int64_t most_group = 1;
};

/// Simulates the step once more and explains it. `world` is one of point.make_world(). O(sum of group sizes).
[[nodiscard]] StepCause explain_step(const StudyPoint& point, const StepRow& row, World& world);

/// The same for a step whose chain is known.
[[nodiscard]] StepCause cause_of(const Plan& plan, const std::vector<ChainLink>& chain, const WorkModel& work,
                                 const Batch& batch, const StepRow& row);

/// Numbers the documents of a trace of `documents` documents, which begins again after the last one, by their index in
/// the file.
void count_readings(std::int64_t documents, StepCause& cause);

/// The cause in words, compared with the mean step time and the mean sum of squared lengths of all steps.
[[nodiscard]] std::string text_of(const StepCause& cause, double mean_s, double mean_squares);

}  // namespace hdpsim
