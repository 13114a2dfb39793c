#include <fmt/format.h>

#include <numeric>

#include "calib/measure/sample_file.h"
#include "calib/measure/sample_fit.h"
#include "calib/traces/trace_fit.h"
#include "sim/compare/course_output.h"
#include "sim/compare/trace_course.h"
#include "sim/document/document.h"
#include "sim/profile/profile_file.h"
#include "sim/profiler/recording.h"
#include "sim/profiler/step_trace.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/sane.h"
#include "tests/fuzz/scratch_files.h"

namespace hdpsim::fuzz {
namespace {

constexpr char kineto[] = ".json";
constexpr char compressed[] = ".json.gz";
constexpr char nsight[] = ".csv";

const DeviceProfile& shipped_profile() {
  static const std::shared_ptr<const DeviceProfile> profile = [] {
    Catalog catalog = shipped_catalog();
    Diagnostics diagnostics;
    auto read = catalog.profile(Value::scalar("h100-published", {"--like", 0, 0}), diagnostics);
    diagnostics.throw_if_any();
    return read;
  }();
  return *profile;
}

void require_sane(const RankRecording& rank) {
  require_number(rank.span_s, 0, "traced span");
  for (const double seconds : rank.seconds) require_number(seconds, 0, "traced activity");
  const double sum = std::accumulate(rank.seconds.begin(), rank.seconds.end(), 0.0);
  require(std::abs(sum - rank.span_s) <= 1e-6 * rank.span_s + 1e-9, "traced activities",
          fmt::format("{} of {} s", sum, rank.span_s));
  for (const double step : rank.steps_s) require_number(step, 0, "traced step");
}

// The trace is read, a profile is fitted to it and read back.
template <const char* extension>
Outcome fit(std::string_view input) {
  const Recording recording = read_recording({file_with(std::string("trace") + extension, input)});
  for (const RankRecording& rank : recording.ranks) require_sane(rank);
  const DeviceProfile profile = calib::fit_to_traces(recording, shipped_profile(), {.source = "a trace"});
  const std::string text = profile_text(profile);
  Diagnostics diagnostics;
  const Value document = parse_document("traced.yaml", text, diagnostics);
  const auto again = read_profile(document, profile.name, diagnostics);
  require(again.has_value() && diagnostics.empty(), "traced profile", diagnostics.text());
  require(profile_text(*again) == text, "traced profile", "read back it is another one");
  return Outcome::accepted;
}

template <class Part>
void require_parts(const Part& seconds, double whole, const char* what) {
  for (const double each : seconds) require_number(each, 0, what);
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  require(std::abs(sum - whole) <= 1e-6 * whole + 1e-6, what, fmt::format("{} of {} s", sum, whole));
}

// The passes of a rank are read by the ranges of its trace, and become a course.
Outcome follow(std::string_view input) {
  const StepTrace trace = read_step_trace(file_with("rank0.json", input));
  for (const StepOfTrace& step : trace.steps) {
    require_parts(step.seconds, step.seconds_in_all, "traced step");
    double free = 0;
    for (const PassOfTrace& pass : step.passes) {
      require(pass.begin_s >= free - 1e-6, "traced pass", "it begins before the one before it has ended");
      require(pass.end_s <= step.seconds_in_all * (1 + 1e-9) + 1e-6, "traced pass", "it ends after the step");
      require_parts(pass.seconds, pass.end_s - pass.begin_s, "traced pass");
      free = pass.end_s;
    }
  }
  Diagnostics diagnostics;
  if (const auto step = step_of_traces({trace}, std::nullopt)) {
    const TracedCourse course = course_of({trace}, *step, diagnostics);
    static_cast<void>(formatted(compare_courses(course.course, course.course, diagnostics), Format::json));
  }
  diagnostics.throw_if_any();
  return Outcome::accepted;
}

// Samples of another program are read, and a profile is fitted to them, which is read back.
Outcome fit_to_samples(std::string_view input) {
  Diagnostics diagnostics;
  const auto samples = calib::parse_samples("input.jsonl", std::string(input), diagnostics);
  diagnostics.throw_if_any();
  const calib::SampleFit fit =
      calib::fit_samples(*samples, {.source = "samples", .like = &shipped_profile()}, diagnostics);
  diagnostics.throw_if_any();
  const std::string text = profile_text(fit.profile);
  const auto again = read_profile(parse_document("fitted.yaml", text, diagnostics), fit.profile.name, diagnostics);
  require(again.has_value() && diagnostics.empty(), "profile of samples", diagnostics.text());
  require(profile_text(*again) == text, "profile of samples", "read back it is another one");
  return Outcome::accepted;
}

}  // namespace

std::vector<Target> trace_targets() {
  constexpr double longest = 2 * longest_reading;
  return {
      {"trace_kineto", kineto, 6, longest, {}, fit<kineto>},
      {"trace_compressed", ".gz", 3, longest, {"calib/traces"}, fit<compressed>},
      {"trace_ranges", kineto, 6, longest, {}, follow},
      {"trace_nsight", nsight, 4, longest, {}, fit<nsight>},
      {"samples", ".jsonl", 4, longest, {"calib/traces"}, fit_to_samples},
  };
}

}  // namespace hdpsim::fuzz
