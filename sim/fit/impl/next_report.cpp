#include "sim/fit/impl/next_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/document/json.h"
#include "sim/fit/fit_figures.h"
#include "sim/fit/robust_fit.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_runs_told = 20;

std::string share_text(double share, int digits) {
  return fmt::format("{:.{}f} %", 100 * share, digits);
}

// The width as people read it: an interval to either side, or the share of what was believed before.
std::string width_text(const NextRuns& next, double width) {
  return next.study.empty() ? share_text(width, 1) : "+- " + share_text(std::expm1(width), 1);
}

std::string name_of(const CandidateRun& run) {
  const bool has_plan = run.quantity.find(' ') != std::string::npos;
  return has_plan ? fmt::format("{} ({})", run.name, run.quantity) : run.name;
}

std::string line(const std::string& name, std::size_t width, const std::string& interval, const std::string& share,
                 const std::string& rest) {
  std::string text = fmt::format("  {:<{}}  {:>14}  {:>12}  {}", name, width, interval, share, rest);
  while (text.ends_with(' ')) text.pop_back();
  return text + "\n";
}

std::string place_text(const CandidateRun& run) {
  if (!run.place) return {};
  return *run.place == 1 ? "; first" : "; second";
}

std::string run_lines(const NextRuns& next) {
  std::size_t width = std::string("as it is now").size();
  for (const CandidateRun& run : next.runs) width = std::max(width, name_of(run).size());
  std::string text =
      line("candidate", width, next.study.empty() ? "of believed" : "90 % interval", "of that now", "narrows most");
  text += line("as it is now", width, width_text(next, next.width), share_text(1, 0), "");
  std::size_t told = 0;
  for (const CandidateRun& run : next.runs) {
    if (told >= most_runs_told && !run.place) continue;
    ++told;
    text += line(name_of(run), width, width_text(next, run.width), share_text(run.share, 0),
                 fmt::format("{} to {}{}", run.parameter, share_text(run.parameter_share, 0), place_text(run)));
  }
  if (told < next.runs.size()) text += fmt::format("  and {} more\n", next.runs.size() - told);
  return text;
}

// What to do, in words. After less than a fifth of narrowing nothing is known that was not before.
std::string advice(const NextRuns& next) {
  const CandidateRun& first = *next.at_place(1);
  if (next.width_after.back() > undetermined_share * next.width) {
    return fmt::format("none of them tells much: after the best, {}, the width is {} of that now\n", name_of(first),
                       share_text(first.share, 0));
  }
  std::string text = fmt::format("measure {} first", name_of(first));
  const CandidateRun* second = next.at_place(2);
  if (second == nullptr) return text + "\n";
  const bool adds_little = next.width_after[1] > undetermined_share * next.width_after[0];
  return text + fmt::format("; {} {}: {} after both\n", adds_little ? "a second one adds little," : "then",
                            name_of(*second), width_text(next, next.width_after[1]));
}

std::string step_lines(const NextRuns& next, double scale) {
  std::string text;
  for (std::size_t i = 0; i < std::min(next.steps.size(), most_runs_told); ++i) {
    const StepKnowledge& step = next.steps[i];
    text += fmt::format("  {}: {:.4g} s, now {:.4g} to {:.4g}; after the first {:.4g} to {:.4g}", step.run,
                        step.step_time_s, step.low(step.now), step.high(step.now), step.low(step.after_first),
                        step.high(step.after_first));
    if (next.width_after.size() > 1) {
      text += fmt::format(", after both {:.4g} to {:.4g}", step.low(step.after_both), step.high(step.after_both));
    }
    text += "\n";
  }
  if (next.steps.size() > most_runs_told)
    text += fmt::format("  and {} more runs\n", next.steps.size() - most_runs_told);
  if (!next.steps.empty()) {
    text += fmt::format(
        "These intervals come from the parameters alone. What no parameter explains, {} of a step (one standard\n"
        "deviation of the fitted rows), comes on top and stays.\n",
        share_text(std::expm1(scale), 1));
  }
  return text;
}

}  // namespace

std::string next_table(const NextRuns& next, double scale) {
  std::string text = fmt::format("\nwhat each run of {} would tell of {}\n", next.candidates,
                                 next.study.empty() ? "the parameters" : "the step time of " + next.study);
  text += run_lines(next);
  if (next.study.empty()) {
    text += "of believed: width of the parameters' intervals, of what was believed before (geometric mean)\n";
  } else if (next.steps.size() > 1) {
    text += "90 % interval: the mean over the runs of the study\n";
  }
  text += advice(next) + step_lines(next, scale);
  for (const std::string& reason : next.left_out) text += fmt::format("left out of the candidates: {}\n", reason);
  return text;
}

Json next_json(const NextRuns& next) {
  Json document = {{"candidates", next.candidates}, {"study", next.study.empty() ? Json() : Json(next.study)},
                   {"width", next.width},           {"width_after", next.width_after},
                   {"runs", Json::array()},         {"steps", Json::array()},
                   {"left_out", next.left_out}};
  for (const CandidateRun& run : next.runs) document["runs"].push_back(candidate_run_figures().json(run));
  for (const StepKnowledge& step : next.steps) document["steps"].push_back(step_knowledge_figures().json(step));
  return document;
}

}  // namespace hdpsim
