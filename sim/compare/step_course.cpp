#include "sim/compare/step_course.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/layered_times.h"
#include "sim/compare/instruction_records.h"

namespace hdpsim {
namespace {

CourseActivity course_activity(Activity activity) {
  switch (activity) {
    case Activity::attention:
      return CourseActivity::attention;
    case Activity::linear:
    case Activity::optimizer:
      return CourseActivity::computing;
    case Activity::cp_comm:
    case Activity::tp_comm:
    case Activity::grad_sync:
    case Activity::group_wait:
    case Activity::bubble:
      return CourseActivity::messages;
    case Activity::offload_stall:
      return CourseActivity::copies;
    case Activity::data_wait:
    case Activity::overhead:
      break;
  }
  return CourseActivity::host;
}

std::size_t place_of(CourseActivity activity) {
  return static_cast<std::size_t>(activity);
}

// The compute stream hides all others, also where it only waits for the host.
constexpr std::size_t layers = course_activities + 1;
constexpr std::size_t busy_host = 2;
std::size_t layer_of(CourseActivity activity) {
  if (activity == CourseActivity::host) return busy_host;
  return place_of(activity) + (activity > CourseActivity::computing ? 1 : 0);
}

double seconds_at(Instant moment) {
  return moment.since_start().seconds();
}

// Copies and collectives of parameters begin early on purpose, in the time of other passes.
bool bounds_its_pass(const InstructionRecord& record) {
  const Activity activity = activity_of(record.opcode);
  return record.stream == Stream::compute || (activity != Activity::offload_stall && activity != Activity::grad_sync);
}

/// One worker's records.
class WorkerCourse {
 public:
  void add(const InstructionRecord& record, std::size_t family) {
    const LayeredStretch stretch{seconds_at(record.begin), seconds_at(record.end),
                                 layer_of(course_activity(activity_of(record.opcode)))};
    stretches_.push_back(stretch);
    if (!bounds_its_pass(record)) return;
    const bool is_forward = family < 2 * opcode_count && record.kind != PassKind::backward;
    const auto key = std::pair(record.micro_batch.index(), is_forward);
    auto [at, is_new] = windows_.try_emplace(key, stretch);
    at->second.begin = std::min(at->second.begin, stretch.begin);
    at->second.end = std::max(at->second.end, stretch.end);
  }

  [[nodiscard]] std::vector<PassCourse> passes() const {
    std::vector<PassCourse> passes;
    for (const auto& [key, window] : windows_) {
      passes.push_back({static_cast<std::int64_t>(key.first), key.second, window.begin, window.end});
    }
    std::sort(passes.begin(), passes.end(), [](const PassCourse& a, const PassCourse& b) {
      return std::tuple(a.begin_s, a.end_s) < std::tuple(b.begin_s, b.end_s);
    });
    const LayeredTimes<layers> times(stretches_);
    double free = 0;
    for (PassCourse& pass : passes) {
      pass.begin_s = std::max(pass.begin_s, free);
      pass.end_s = free = std::max(pass.end_s, pass.begin_s);
      pass.seconds = seconds_in(times, pass);
    }
    return passes;
  }

 private:
  static CourseSeconds seconds_in(const LayeredTimes<layers>& times, const PassCourse& pass) {
    const auto seen = times.between(pass.begin_s, pass.end_s);
    CourseSeconds seconds{};
    for (const CourseActivity activity :
         {CourseActivity::attention, CourseActivity::computing, CourseActivity::messages, CourseActivity::copies}) {
      seconds.at(place_of(activity)) = seen.at(layer_of(activity));
    }
    seconds.back() = std::max(0.0, pass.end_s - pass.begin_s - sum_of(seconds));
    return seconds;
  }

  std::vector<LayeredStretch> stretches_;
  std::map<std::pair<std::size_t, bool>, LayeredStretch> windows_;  ///< By micro-batch and direction.
};

}  // namespace

std::string_view course_activity_name(CourseActivity activity) {
  constexpr std::array<std::string_view, course_activities> names = {
      "attention", "products and memory-bound", "messages and waiting for ranks", "copies", "the host"};
  return names.at(place_of(activity));
}

double sum_of(const CourseSeconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double computed_in(const CourseSeconds& seconds) {
  return seconds.at(place_of(CourseActivity::attention)) + seconds.at(place_of(CourseActivity::computing));
}

CourseSeconds course_seconds(const Breakdown& breakdown) {
  CourseSeconds seconds{};
  for (const Activity activity : all_activities) {
    seconds.at(place_of(course_activity(activity))) += breakdown[activity].seconds();
  }
  return seconds;
}

StepCourse course_of(const std::string& file, const TimelineFile& timeline) {
  HDPSIM_CHECK(timeline.title.stages == 1, "a course of {} stages", timeline.title.stages);
  const Timeline& times = timeline.timeline;
  StepCourse course;
  course.step = timeline.title.step;
  course.has_passes = !times.instructions.empty();
  std::vector<WorkerCourse> workers(times.ranks.size());
  std::vector<InstructionRecord> records = times.instructions;
  sort_by_id(records);
  for_each_family(records, [&](const InstructionRecord& record, std::size_t family) {
    workers.at(record.rank.index()).add(record, family);
  });
  for (std::size_t rank = 0; rank < times.ranks.size(); ++rank) {
    course.ranks.push_back(
        {static_cast<std::int64_t>(rank), file, course_seconds(times.ranks[rank]), workers[rank].passes()});
  }
  for (std::size_t i = 0; i < times.micro_batches.size(); ++i) {
    const MicroBatchInterval& interval = times.micro_batches[i];
    course.micro_batches.push_back(
        {static_cast<std::int64_t>(i), seconds_at(interval.begin), seconds_at(interval.end)});
  }
  return course;
}

}  // namespace hdpsim
