#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/compare/timeline_file.h"

namespace hdpsim {

/// What a rank does, as far as predictions and measurements of any kind can both tell it.
enum class CourseActivity : std::uint8_t {
  attention,
  computing,  ///< Products and memory-bound kernels, the optimizer's too.
  /// Messages that no kernel hides, with all waiting for other ranks: a trace does not show which part of a message is
  /// waiting.
  messages,
  copies,  ///< To and from the host, as far as nothing hides them.
  host,    ///< Nothing of these: overheads, waiting for the host or for data.
};
inline constexpr std::size_t course_activities = 5;
[[nodiscard]] std::string_view course_activity_name(CourseActivity activity);
/// Seconds by CourseActivity.
using CourseSeconds = std::array<double, course_activities>;
[[nodiscard]] double sum_of(const CourseSeconds& seconds);
/// The seconds of kernels.
[[nodiscard]] double computed_in(const CourseSeconds& seconds);
[[nodiscard]] CourseSeconds course_seconds(const Breakdown& breakdown);

/// A forward or backward pass of a micro-batch on one rank. Times are seconds since the rank's step began. A pass that
/// ran twice is in the list twice.
struct PassCourse {
  std::int64_t micro_batch = 0;
  bool is_forward = true;
  double begin_s = 0;
  double end_s = 0;
  CourseSeconds seconds{};  ///< Sums to the time from begin to end.
};

struct RankCourse {
  std::int64_t rank = 0;
  std::string file;                ///< That says it.
  CourseSeconds seconds{};         ///< Of the step: sums to it.
  std::vector<PassCourse> passes;  ///< In the order of time.
};

/// When a micro-batch ran: from the begin of its first rank to the end of its last.
struct MicroBatchCourse {
  std::int64_t micro_batch = 0;
  double begin_s = 0;
  double end_s = 0;
};

/// The course of a step: what some ranks did, and, where that is known, in which passes.
struct StepCourse {
  std::int64_t step = 0;
  bool has_passes = false;
  std::vector<RankCourse> ranks;                ///< By rank.
  std::vector<MicroBatchCourse> micro_batches;  ///< By micro-batch.
};

/// The course of a timeline of one stage a rank: with passes if it has instructions. Of a pass, exchanges under way
/// that no kernel hides count as messages, whichever rank they wait for.
[[nodiscard]] StepCourse course_of(const std::string& file, const TimelineFile& timeline);

}  // namespace hdpsim
