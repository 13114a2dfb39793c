#include "sim/compare/trace_course.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

namespace hdpsim {
namespace {

CourseActivity course_of_device_activity(DeviceActivity activity) {
  switch (activity) {
    case DeviceActivity::attention_forward:
    case DeviceActivity::attention_backward:
      return CourseActivity::attention;
    case DeviceActivity::product:
    case DeviceActivity::memory_bound:
    case DeviceActivity::unknown:
      return CourseActivity::computing;
    case DeviceActivity::send_recv:
    case DeviceActivity::all_reduce:
    case DeviceActivity::all_gather:
    case DeviceActivity::reduce_scatter:
    case DeviceActivity::all_to_all:
    case DeviceActivity::other_collective:
      return CourseActivity::messages;
    case DeviceActivity::copy:
      return CourseActivity::copies;
    case DeviceActivity::idle:
      break;
  }
  return CourseActivity::host;
}

CourseSeconds course_of_device_seconds(const std::array<double, device_activities>& traced) {
  CourseSeconds seconds{};
  for (std::size_t i = 0; i < device_activities; ++i) {
    seconds.at(static_cast<std::size_t>(course_of_device_activity(static_cast<DeviceActivity>(i)))) += traced.at(i);
  }
  return seconds;
}

// "traces/rank12-step1.json.gz" is of rank 12.
std::optional<std::int64_t> rank_in_name(const std::string& file) {
  constexpr std::string_view word = "rank";
  constexpr std::size_t most_digits = 9;
  const std::string name = std::filesystem::path(file).filename().string();
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    std::size_t begin = at + word.size();
    if (begin < name.size() && (name[begin] == '-' || name[begin] == '_')) ++begin;
    const std::size_t end = std::min(name.find_first_not_of("0123456789", begin), name.size());
    if (begin < end && end - begin <= most_digits)
      return std::strtoll(name.substr(begin, end - begin).c_str(), nullptr, 10);
  }
  return std::nullopt;
}

const StepOfTrace* last_step(const StepTrace& trace, std::int64_t step) {
  const auto found =
      std::find_if(trace.steps.rbegin(), trace.steps.rend(), [&](const StepOfTrace& own) { return own.step == step; });
  return found == trace.steps.rend() ? nullptr : &*found;
}

std::string steps_text(const StepTrace& trace) {
  if (trace.steps.empty()) return "none at all";
  std::string text;
  constexpr std::size_t shown = 8;
  for (std::size_t i = 0; i < std::min(shown, trace.steps.size()); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", trace.steps[i].step);
  }
  return text + (trace.steps.size() > shown ? ", ..." : "");
}

RankCourse rank_course(const StepTrace& trace, std::int64_t rank, const StepOfTrace& step) {
  RankCourse course{.rank = rank, .file = trace.file, .seconds = course_of_device_seconds(step.seconds), .passes = {}};
  for (const PassOfTrace& pass : step.passes) {
    course.passes.push_back(
        {pass.micro_batch, pass.is_forward, pass.begin_s, pass.end_s, course_of_device_seconds(pass.seconds)});
  }
  return course;
}

std::vector<MicroBatchCourse> micro_batches_of(const std::vector<RankCourse>& ranks) {
  std::map<std::int64_t, MicroBatchCourse> found;
  for (const RankCourse& rank : ranks) {
    for (const PassCourse& pass : rank.passes) {
      const auto [at, is_new] =
          found.try_emplace(pass.micro_batch, MicroBatchCourse{pass.micro_batch, pass.begin_s, pass.end_s});
      at->second.begin_s = std::min(at->second.begin_s, pass.begin_s);
      at->second.end_s = std::max(at->second.end_s, pass.end_s);
    }
  }
  std::vector<MicroBatchCourse> micro_batches;
  micro_batches.reserve(found.size());
  for (const auto& [id, each] : found) micro_batches.push_back(each);
  return micro_batches;
}

// What is said once, whichever traces it holds for.
struct Shortcomings {
  std::int64_t ranks_by_place = 0, without_optimizer = 0, again = 0, kernels_outside = 0;

  void add(const StepTrace& trace, const StepOfTrace& step) {
    without_optimizer += step.has_optimizer ? 0 : 1;
    again += std::count_if(trace.steps.begin(), trace.steps.end(),
                           [&](const StepOfTrace& other) { return other.step == step.step; }) > 1
                 ? 1
                 : 0;
    kernels_outside += trace.outside;
  }

  [[nodiscard]] std::vector<std::string> words(std::int64_t step) const {
    std::vector<std::string> words;
    if (ranks_by_place > 0) {
      words.push_back(fmt::format(
          "{} of the traces do not say their rank, in their ranges or their names: they count by their places.",
          ranks_by_place));
    }
    if (without_optimizer > 0) {
      words.push_back(fmt::format("{} of the traces have no optimizer behind the step: the simulated step has one.",
                                  without_optimizer));
    }
    if (again > 0) {
      words.push_back(fmt::format("{} of the traces have step {} more than once: the last one counts.", again, step));
    }
    if (kernels_outside > 0) {
      words.push_back(fmt::format("Of {} kernels nothing says when they were launched: they are in no micro-batch.",
                                  kernels_outside));
    }
    return words;
  }
};

}  // namespace

std::optional<std::int64_t> step_of_traces(const std::vector<StepTrace>& traces, std::optional<std::int64_t> wanted) {
  if (wanted || traces.empty()) return wanted;
  for (const StepOfTrace& step : traces.front().steps) {
    const bool all = std::all_of(traces.begin(), traces.end(),
                                 [&](const StepTrace& trace) { return last_step(trace, step.step) != nullptr; });
    if (all) return step.step;
  }
  return std::nullopt;
}

TracedCourse course_of(const std::vector<StepTrace>& traces, std::int64_t step, Diagnostics& diagnostics) {
  TracedCourse traced;
  traced.course.step = step;
  traced.course.has_passes = true;
  Shortcomings shortcomings;
  std::map<std::int64_t, std::string> files;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const StepTrace& trace = traces[i];
    traced.is_of_host = traced.is_of_host || trace.is_of_host;
    std::optional<std::int64_t> rank = trace.rank ? trace.rank : rank_in_name(trace.file);
    if (!rank) {
      ++shortcomings.ranks_by_place;
      rank = static_cast<std::int64_t>(i);
    }
    if (const auto [known, is_new] = files.emplace(*rank, trace.file); !is_new) {
      diagnostics.error({trace.file, 0, 0}, fmt::format("this trace is of rank {}, as {} is", *rank, known->second),
                        "give one trace of each rank");
      continue;
    }
    const StepOfTrace* own = last_step(trace, step);
    if (own == nullptr) {
      diagnostics.error({trace.file, 0, 0},
                        fmt::format("step {} is not in this trace, which has {}", step, steps_text(trace)),
                        "--step says which one to compare");
      continue;
    }
    shortcomings.add(trace, *own);
    traced.course.ranks.push_back(rank_course(trace, *rank, *own));
  }
  std::sort(traced.course.ranks.begin(), traced.course.ranks.end(),
            [](const RankCourse& a, const RankCourse& b) { return a.rank < b.rank; });
  traced.course.micro_batches = micro_batches_of(traced.course.ranks);
  traced.notes = shortcomings.words(step);
  return traced;
}

}  // namespace hdpsim
