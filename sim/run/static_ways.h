#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/run/known_steps.h"
#include "sim/study/catalog.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/study.h"

namespace hdpsim {

/// A way for `static` to share a sequence.
struct StaticWay {
  SharingChoice sharing;
  std::int64_t cp = 0;  ///< 0: what the study's plan says.
  friend bool operator==(const StaticWay&, const StaticWay&) = default;
};

/// A way that is a run of the study already.
struct KnownWay {
  StaticWay way;
  const Run* run = nullptr;
};

struct JudgedWay {
  StaticWay way;
  std::int64_t degree = 1;  ///< The ranks of its groups.
  double step_s = 0;        ///< Mean over the judged steps.
  /// The judged steps, where they are those of a run of this way; kept of the fastest alone.
  std::shared_ptr<KnownSteps> steps{};
};

/// Which way is the fastest at a point.
struct WayQuestion {
  Value study;  ///< The point with the baseline as its only plan.
  SharingChoice own;
  std::vector<SharingChoice> allowed;  ///< As allowed_sharings() orders them.
  bool states_cp = false;
  std::vector<KnownWay> known{};  ///< Runs of the point, without their intervals, which must outlive the answer.
};

/// How it is judged. No answer depends on it.
struct JudgeOptions {
  Catalog& catalog;
  std::mutex& reading;  ///< Guards the catalog.
  std::size_t jobs = 1;
  std::size_t room = KnownSteps::most_entries;  ///< For JudgedWay::steps.
  std::function<bool()> stop = [] { return false; };
};

/// Whether a plan is a static mesh whose ways can be searched.
[[nodiscard]] bool is_static_mesh(const StudyPlan& plan);
[[nodiscard]] SharingChoice sharing_of(const PointSpec& spec);
/// `study` is that of the point, without a sweep.
[[nodiscard]] WayQuestion way_question(const StudyPoint& point, const StudyPlan& baseline, Value study);
/// A text that is the same for points which differ in sharing alone.
[[nodiscard]] std::string identity_of(const WayQuestion& question);
/// The complete study of one way.
[[nodiscard]] Value study_of(const WayQuestion& question, const StaticWay& way);
/// "static (a2a)"
[[nodiscard]] std::string way_name(const std::string& plan, const StaticWay& way);
/// The ways that fit the judged steps, fastest first; of several that are as fast, the study's own. The first four
/// steps are judged, of the job alone, and in place of the exact grain in the fluid one; those of known ways are taken
/// from their runs where that is the same. Empty if it was stopped.
[[nodiscard]] std::optional<std::vector<JudgedWay>> judged_ways(const WayQuestion& question,
                                                                const JudgeOptions& options);

}  // namespace hdpsim
