#include "sim/compare/coarse_timelines.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/compare/timeline_file.h"
#include "sim/document/input_file.h"

namespace hdpsim {
namespace {

void require_comparable(const std::string& predicted_file, const TimelineFile& predicted, const std::string& file,
                        const TimelineFile& measured) {
  Diagnostics diagnostics;
  const auto require = [&](const auto& own, const auto& other, const char* what) {
    if (own != other) {
      diagnostics.error({file, 0, 0}, fmt::format("its {} is {}, that of {} {}", what, own, predicted_file, other));
    }
  };
  if (predicted.title.source != "predicted") {
    diagnostics.error({predicted_file, 0, 0}, "this timeline is not predicted",
                      "the prediction comes first, then what was measured");
  }
  if (measured.title.source == "predicted") diagnostics.error({file, 0, 0}, "this timeline is not measured");
  require(measured.title.plan, predicted.title.plan, "plan");
  require(measured.title.step, predicted.title.step, "step");
  require(measured.timeline.ranks.size(), predicted.timeline.ranks.size(), "number of ranks");
  require(measured.timeline.micro_batches.size(), predicted.timeline.micro_batches.size(), "number of micro-batches");
  for (const auto& [name, title] : {std::pair(predicted_file, predicted.title), std::pair(file, measured.title)}) {
    if (title.stages == 1) continue;
    diagnostics.error({name, 0, 0},
                      fmt::format("it has {} stages a rank: only instructions compare those", title.stages));
  }
  diagnostics.throw_if_any();
}

CourseComparison compared_coarsely(const std::string& predicted_file, const TimelineFile& predicted,
                                   const std::string& file) {
  const TimelineFile measured = load_timeline(file);
  require_comparable(predicted_file, predicted, file, measured);
  Diagnostics diagnostics;
  CourseComparison comparison =
      compare_courses(course_of(predicted_file, predicted), course_of(file, measured), diagnostics);
  diagnostics.throw_if_any();
  comparison.plan = predicted.title.plan;
  comparison.source = fmt::format("a timeline ({})", file);
  return comparison;
}

}  // namespace

bool any_is_coarse(const std::vector<TimelineSet>& sets) {
  for (const TimelineSet& set : sets) {
    for (const StepFiles& files : set.steps) {
      const auto has_none = [](const std::filesystem::path& path) {
        LineReader reader(path);
        return reader.next() && states_no_instructions(std::string(reader.text()));
      };
      if (std::any_of(files.measured.begin(), files.measured.end(), has_none)) return true;
    }
  }
  return false;
}

std::vector<CourseComparison> compare_coarsely(const std::vector<TimelineSet>& sets) {
  std::vector<CourseComparison> comparisons;
  for (const TimelineSet& set : sets) {
    for (const StepFiles& files : set.steps) {
      const TimelineFile predicted = load_timeline(files.predicted);
      for (const std::filesystem::path& measured : files.measured) {
        comparisons.push_back(compared_coarsely(files.predicted.string(), predicted, measured.string()));
      }
    }
  }
  return comparisons;
}

}  // namespace hdpsim
