#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan_document.h"
#include "sim/study/study.h"

namespace hdpsim {

/// A plan of a live run, and the step's seconds by the planners' work model (plan_time()).
struct LivePlan {
  PlanDocument document;
  double estimate_s = 0;
};

/// One plan of a study that plans whatever batches come, with the ranks, the capacity and the prices of the study. The
/// study is read once. Sequences have the lengths that they are given: none is cut, and no batch is filled up. Safe to
/// call from several threads at once; each call is one step.
class LivePlanner {
 public:
  /// `waves`: plans run in waves (runs_in_waves()); a rank with nothing to run in one has a micro-batch of so many
  /// tokens of padding. Empty: as the policy plans. InputError if the plan is one of files, or the pool runs waves of
  /// expert groups already.
  LivePlanner(Study study, std::int64_t point, const std::string& plan, std::optional<std::int64_t> waves,
              std::string version);

  /// The plan of a batch that arrives. `names` is by sequence, or empty: then sequences are known by their places, or
  /// by name_of_sequence() if the policy holds some back. `step` is the number of the step; empty: one more than that
  /// of the call before, from 0. InputError for sequences that the study's context does not hold, names that are there
  /// twice or wait already, and where the policy refuses; nothing has arrived then.
  [[nodiscard]] LivePlan plan(const std::vector<std::int64_t>& lengths, const std::vector<SequenceName>& names,
                              std::optional<std::int64_t> step);

  /// Whether the policy may hold sequences back.
  [[nodiscard]] bool holds_back() const { return rule_ != nullptr; }
  [[nodiscard]] const std::string& policy() const { return study_.plans[plan_].name; }
  [[nodiscard]] const StudyPoint& point() const { return point_; }
  /// The names of sequences that wait for a later step. A batch of no sequences trains some of them.
  [[nodiscard]] std::vector<SequenceName> held() const;

  /// What plan() depends on besides its arguments, as JSON (schema hdpsim.planner/1), for checkpoints of a run.
  [[nodiscard]] std::string state() const;
  /// InputError if the text is no state, or that of another plan or study.
  void set_state(const std::string& text);

 private:
  struct Arrived;

  [[nodiscard]] Arrived take(const std::vector<std::int64_t>& lengths, const std::vector<SequenceName>& names,
                             std::optional<std::int64_t> step);
  void check(const std::vector<std::int64_t>& lengths, const std::vector<SequenceName>& names) const;
  [[nodiscard]] Plan in_waves(Plan plan) const;
  [[nodiscard]] std::string hash() const;

  Study study_;
  const StudyPoint& point_;
  std::size_t plan_;
  std::optional<std::int64_t> waves_;
  std::string version_;
  HoldingRule rule_;  ///< Null: nothing waits.

  mutable std::mutex mutex_;                    ///< Of the following.
  std::int64_t step_ = 0;                       ///< The next one.
  HeldSequences held_;                          ///< The document of a sequence is its number here.
  std::int64_t arrived_ = 0;                    ///< Sequences so far: the next number.
  std::map<std::int64_t, SequenceName> names_;  ///< Of those that wait, by number.
};

}  // namespace hdpsim
