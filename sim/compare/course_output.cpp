#include "sim/compare/course_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "sim/base/quantity_text.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

constexpr std::size_t ranks_shown = 16;
constexpr std::size_t micro_batches_shown = 12;
constexpr std::size_t passes_in_words = 3;
constexpr double least_told = 0.01;  // of the step: what differs by less is not told

double apart(const Pair& pair) {
  return std::abs(pair.difference());
}

std::string ratio_text(const Pair& pair) {
  return pair.predicted > 0 ? fmt::format("{:.2f}", pair.measured / pair.predicted) : "-";
}

std::string course_time(double seconds) {
  return std::abs(seconds) < 5e-13 ? "-" : seconds_text(seconds);  // below what timelines count in
}

std::size_t most_different(const CoursePair& pair) {
  const auto& all = pair.activities;
  return static_cast<std::size_t>(
      std::max_element(all.begin(), all.end(), [](const Pair& a, const Pair& b) { return apart(a) < apart(b); }) -
      all.begin());
}

std::string_view name_of(std::size_t activity) {
  return course_activity_name(static_cast<CourseActivity>(activity));
}

std::string pass_name(const ComparedPass& pass) {
  return fmt::format("micro-batch {} {}", pass.micro_batch, pass.is_forward ? "forward" : "backward");
}

std::string more_or_less(const Pair& pair) {
  return fmt::format("{} {} than simulated ({} against {})", seconds_text(apart(pair)),
                     pair.measured > pair.predicted ? "more" : "less", seconds_text(pair.measured),
                     seconds_text(pair.predicted));
}

std::string course_row(const std::string& name, const Pair& pair) {
  return fmt::format("{:<32}{:>12}{:>12}{:>8}\n", name, course_time(pair.measured), course_time(pair.predicted),
                     ratio_text(pair));
}

std::string activities_text(const CourseComparison& comparison) {
  std::string text = fmt::format("{:<32}{:>12}{:>12}{:>8}\n", "mean of the ranks", "measured", "simulated", "ratio");
  for (std::size_t i = 0; i < course_activities; ++i) {
    text += course_row(std::string(name_of(i)), comparison.mean.activities.at(i));
  }
  return text + course_row("step", comparison.mean.total());
}

// The rows that differ most, in their own order.
template <class Row, class Difference>
std::vector<const Row*> worst_of(const std::vector<Row>& rows_of, std::size_t most, const Difference& difference) {
  std::vector<const Row*> shown;
  for (const Row& each : rows_of) shown.push_back(&each);
  if (shown.size() <= most) return shown;
  std::stable_sort(shown.begin(), shown.end(),
                   [&](const Row* a, const Row* b) { return difference(*a) > difference(*b); });
  shown.resize(most);
  std::sort(shown.begin(), shown.end());
  return shown;
}

std::string ranks_text(const CourseComparison& comparison) {
  std::string text = fmt::format("\n{:<6}{:>15}{:>12}{:>15}{:>12}{:>8}   {}\n", "rank", "step measured", "simulated",
                                 "kernels meas.", "simulated", "ratio", "differs most in");
  const auto shown =
      worst_of(comparison.ranks, ranks_shown, [](const ComparedRank& rank) { return apart(rank.seconds.computed()); });
  for (const ComparedRank* rank : shown) {
    const Pair step = rank->seconds.total();
    const Pair kernels = rank->seconds.computed();
    text += fmt::format("{:<6}{:>15}{:>12}{:>15}{:>12}{:>8}   {}\n", rank->rank, course_time(step.measured),
                        course_time(step.predicted), course_time(kernels.measured), course_time(kernels.predicted),
                        ratio_text(kernels), name_of(most_different(rank->seconds)));
  }
  if (shown.size() < comparison.ranks.size()) {
    text += fmt::format("and {} ranks whose kernels differ less\n", comparison.ranks.size() - shown.size());
  }
  return text;
}

// Of a micro-batch and direction the rank that differs most.
std::vector<ComparedPass> worst_ranks_of(const std::vector<ComparedPass>& passes) {
  std::vector<ComparedPass> worst;
  for (const ComparedPass& pass : passes) {
    const auto known = std::find_if(worst.begin(), worst.end(), [&](const ComparedPass& other) {
      return other.micro_batch == pass.micro_batch && other.is_forward == pass.is_forward;
    });
    if (known == worst.end()) {
      worst.push_back(pass);
    } else if (apart(pass.seconds.total()) > apart(known->seconds.total())) {
      *known = pass;
    }
  }
  std::stable_sort(worst.begin(), worst.end(), [](const ComparedPass& a, const ComparedPass& b) {
    return std::pair(a.micro_batch, !a.is_forward) < std::pair(b.micro_batch, !b.is_forward);
  });
  return worst;
}

std::string passes_text(const CourseComparison& comparison) {
  std::string text = fmt::format("\n{:<26}{:>11}{:>12}{:>12}{:>8}   {}\n", "pass", "worst rank", "measured",
                                 "simulated", "ratio", "differs most in");
  const std::vector<ComparedPass> worst = worst_ranks_of(comparison.passes);
  const auto shown =
      worst_of(worst, micro_batches_shown, [](const ComparedPass& pass) { return apart(pass.seconds.total()); });
  for (const ComparedPass* pass : shown) {
    const std::size_t activity = most_different(pass->seconds);
    const Pair seconds = pass->seconds.total();
    const Pair& most = pass->seconds.activities.at(activity);
    text += fmt::format("{:<26}{:>11}{:>12}{:>12}{:>8}   {}: {} against {}\n", pass_name(*pass), pass->rank,
                        course_time(seconds.measured), course_time(seconds.predicted), ratio_text(seconds),
                        name_of(activity), course_time(most.measured), course_time(most.predicted));
  }
  if (shown.size() < worst.size()) text += fmt::format("and {} passes that differ less\n", worst.size() - shown.size());
  return text;
}

std::string intervals_text(const CourseComparison& comparison) {
  std::string text = fmt::format("\n{:<26}{:>15}{:>12}{:>15}{:>12}\n", "micro-batch", "begin measured", "simulated",
                                 "end measured", "simulated");
  const auto shown = worst_of(comparison.micro_batches, micro_batches_shown,
                              [](const ComparedMicroBatch& each) { return apart(each.end_s); });
  for (const ComparedMicroBatch* each : shown) {
    text += fmt::format("{:<26}{:>15}{:>12}{:>15}{:>12}\n", each->micro_batch, course_time(each->begin_s.measured),
                        course_time(each->begin_s.predicted), course_time(each->end_s.measured),
                        course_time(each->end_s.predicted));
  }
  if (shown.size() < comparison.micro_batches.size()) {
    text += fmt::format("and {} micro-batches that end more as simulated\n",
                        comparison.micro_batches.size() - shown.size());
  }
  return text;
}

std::string course_table(const CourseComparison& comparison) {
  std::string text = fmt::format("plan {}, step {}, {}\n", comparison.plan, comparison.step, comparison.source);
  text += activities_text(comparison) + ranks_text(comparison);
  if (comparison.knows_passes) {
    text += passes_text(comparison);
  } else if (!comparison.micro_batches.empty()) {
    text += intervals_text(comparison);
  }
  text += "\n";
  for (const std::string& words : differences_in_words(comparison)) text += words + "\n";
  for (const std::string& note : comparison.notes) text += note + "\n";
  return text;
}

void add_rows(const CoursePair& pair, const std::string& begin, std::string& text) {
  for (std::size_t i = 0; i < course_activities; ++i) {
    text += fmt::format("{},{},{:.9g},{:.9g}\n", begin, name_of(i), pair.activities.at(i).measured,
                        pair.activities.at(i).predicted);
  }
}

std::string course_csv(const CourseComparison& comparison) {
  std::string text = "rank,micro_batch,pass,activity,measured_s,simulated_s\n";
  for (const ComparedRank& rank : comparison.ranks) {
    add_rows(rank.seconds, fmt::format("{},,step", rank.rank), text);
    if (!comparison.knows_passes) continue;
    for (const ComparedPass& pass : comparison.passes) {
      if (pass.rank != rank.rank) continue;
      add_rows(pass.seconds,
               fmt::format("{},{},{}", pass.rank, pass.micro_batch, pass.is_forward ? "forward" : "backward"), text);
    }
    add_rows(rank.between_passes, fmt::format("{},,between passes", rank.rank), text);
  }
  return text;
}

Json course_pair_json(const Pair& pair) {
  return {{"measured", pair.measured}, {"simulated", pair.predicted}};
}

Json activities_json(const CoursePair& pair, bool has_kinds = false) {
  Json activities = Json::array();
  for (std::size_t i = 0; i < course_activities; ++i) {
    Json activity = {{"activity", name_of(i)},
                     {"measured_s", pair.activities.at(i).measured},
                     {"simulated_s", pair.activities.at(i).predicted}};
    if (has_kinds) activity["measured_kinds_s"] = Json::object();
    activities.push_back(std::move(activity));
  }
  return activities;
}

Json ranks_json(const CourseComparison& comparison) {
  Json ranks = Json::array();
  for (const ComparedRank& rank : comparison.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"step_time_s", course_pair_json(rank.seconds.total())},
                     {"kernels_s", course_pair_json(rank.seconds.computed())},
                     {"activities", activities_json(rank.seconds)}});
    if (comparison.knows_passes) ranks.back()["between_passes"] = activities_json(rank.between_passes);
  }
  return ranks;
}

std::string course_json(const CourseComparison& comparison) {
  Json passes = Json::array();
  for (const ComparedPass& pass : comparison.passes) {
    passes.push_back({{"rank", pass.rank},
                      {"micro_batch", pass.micro_batch},
                      {"pass", pass.is_forward ? "forward" : "backward"},
                      {"begin_s", course_pair_json(pass.begin_s)},
                      {"seconds", course_pair_json(pass.seconds.total())},
                      {"activities", activities_json(pass.seconds)}});
  }
  Json micro_batches = Json::array();
  for (const ComparedMicroBatch& each : comparison.micro_batches) {
    micro_batches.push_back({{"micro_batch", each.micro_batch},
                             {"begin_s", course_pair_json(each.begin_s)},
                             {"end_s", course_pair_json(each.end_s)}});
  }
  const Json all = {{"schema", "hdpsim.trace_comparison/2"},
                    {"plan", comparison.plan},
                    {"step", comparison.step},
                    {"traces", comparison.traces},
                    {"marked_steps", 1},
                    {"step_time_s", course_pair_json(comparison.mean.total())},
                    {"activities", activities_json(comparison.mean, true)},
                    {"ranks", ranks_json(comparison)},
                    {"passes", std::move(passes)},
                    {"micro_batches", std::move(micro_batches)},
                    {"words", differences_in_words(comparison)},
                    {"notes", comparison.notes}};
  return json_page(all);
}

}  // namespace

std::vector<std::string> differences_in_words(const CourseComparison& comparison) {
  const Pair step = comparison.mean.total();
  std::vector<std::string> words = {fmt::format("The measured step takes {}, {} times the simulated one of {}.",
                                                seconds_text(step.measured), ratio_text(step),
                                                seconds_text(step.predicted))};
  const double least = least_told * step.measured;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < course_activities; ++i) order.push_back(i);
  const auto& mean = comparison.mean.activities;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return apart(mean.at(a)) > apart(mean.at(b)); });
  for (const std::size_t i : order) {
    if (apart(mean.at(i)) >= least) words.push_back(fmt::format("{}: {}", name_of(i), more_or_less(mean.at(i))));
  }
  if (words.size() == 1) words.emplace_back("No activity differs by a hundredth of the step.");
  std::vector<ComparedPass> passes = comparison.passes;
  std::stable_sort(passes.begin(), passes.end(), [](const ComparedPass& a, const ComparedPass& b) {
    return apart(a.seconds.total()) > apart(b.seconds.total());
  });
  for (const ComparedPass& pass : std::span(passes).first(std::min(passes.size(), passes_in_words))) {
    if (apart(pass.seconds.total()) < least) break;
    words.push_back(fmt::format("rank {}, {}: {}, most of it in: {}", pass.rank, pass_name(pass),
                                more_or_less(pass.seconds.total()), name_of(most_different(pass.seconds))));
  }
  return words;
}

std::string formatted(const CourseComparison& comparison, Format format) {
  switch (format) {
    case Format::table:
      break;
    case Format::csv:
      return course_csv(comparison);
    case Format::json:
      return course_json(comparison);
  }
  return course_table(comparison);
}

}  // namespace hdpsim
