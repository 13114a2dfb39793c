#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/compare/comparison.h"
#include "sim/compare/step_course.h"

namespace hdpsim {

/// Predicted and measured seconds by activity, and of all of them.
struct CoursePair {
  std::array<Pair, course_activities> activities{};
  [[nodiscard]] Pair total() const;
  [[nodiscard]] Pair computed() const;  ///< Of kernels.
  void add(const CourseSeconds& predicted, const CourseSeconds& measured);
};

/// A pass of a micro-batch on one rank. One that runs twice counts with both times.
struct ComparedPass {
  std::int64_t rank = 0;
  std::int64_t micro_batch = 0;
  bool is_forward = true;
  Pair begin_s;  ///< Since the rank's step began.
  CoursePair seconds;
};

struct ComparedRank {
  std::int64_t rank = 0;
  CoursePair seconds;         ///< Of the step.
  CoursePair between_passes;  ///< The part of it outside of its passes; all zero where passes are not known.
};

struct ComparedMicroBatch {
  std::int64_t micro_batch = 0;
  Pair begin_s;  ///< Of its first rank.
  Pair end_s;    ///< Of its last rank.
};

/// The course of one step as predicted and as measured, by rank, micro-batch and activity.
struct CourseComparison {
  std::string plan;
  std::int64_t step = 0;
  std::string source;         ///< What was measured, in words: "4 traces of CPUs", "a timeline".
  std::int64_t traces = 0;    ///< 0: a timeline.
  bool knows_passes = false;  ///< Both sides tell the passes of ranks.
  CoursePair mean;            ///< Over the ranks: sums to the step.
  std::vector<ComparedRank> ranks;
  std::vector<ComparedPass> passes;  ///< By rank, then in the order of the prediction.
  std::vector<ComparedMicroBatch> micro_batches;
  std::vector<std::string> notes;  ///< Sentences on what it leaves open.
};

/// Compares the ranks that were measured. Reports, at the files of the measurement, all that contradicts the
/// prediction: ranks that it does not have, passes of micro-batches that the plan does not give a rank, and passes that
/// it gives one and that were not measured. Ranks that were not measured are a note.
[[nodiscard]] CourseComparison compare_courses(const StepCourse& predicted, const StepCourse& measured,
                                               Diagnostics& diagnostics);

}  // namespace hdpsim
