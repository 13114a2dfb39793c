#include "sim/report/explanation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/results/confidence_text.h"
#include "sim/results/notes.h"
#include "sim/results/run_figures.h"
#include "sim/results/table.h"

namespace hdpsim {
namespace {

constexpr double worth_telling = 0.005;  // share of the step
constexpr std::size_t widest_change = 96;

double ratio(Duration of, Duration to) {
  return of.seconds() / to.seconds();
}

// ---- For people

std::string signed_duration(Duration time) {
  return time < Duration{} ? fmt::format("-{}", duration_text(Duration{} - time))
                           : fmt::format("+{}", duration_text(time));
}

std::string ranks_text(const ExplainedPass& pass) {
  const std::string ranks =
      pass.ranks == 1 ? fmt::format("rank {} alone", pass.first_rank) : fmt::format("{} ranks", pass.ranks);
  if (pass.last_is_outside) return fmt::format("{}, in a wave for which rank {} comes last", ranks, pass.last_rank);
  return pass.ranks == 1 ? ranks : fmt::format("{}, of which rank {} comes last", ranks, pass.last_rank);
}

// "sequence 41 (2Mi tokens) and 3 more"
std::string spans_text(const ExplainedPass& pass) {
  if (pass.spans == 0) return "padding";
  const std::string others = pass.spans > 1 ? fmt::format(" and {} more", pass.spans - 1) : "";
  return fmt::format("sequence {} ({} tokens){}", pass.sequence, count_text(pass.sequence_tokens), others);
}

std::string pass_text(const ExplainedPass& pass) {
  const std::string kind = pass.kind.empty() ? "" : fmt::format(", {}", pass.kind);
  const std::string ranks = ranks_text(pass);
  const std::string waits =
      pass.waiting > Duration{} ? fmt::format("; {} of it waiting", duration_text(pass.waiting)) : "";
  return fmt::format("micro-batch {}{} on {}: {}{}", pass.micro_batch, kind, ranks, spans_text(pass), waits);
}

std::string change_text(const WhatIf& change, Duration step) {
  return fmt::format("    {:<46}{:>10}{:>8.1f} %\n", change.change + (change.is_bound ? " (a bound)" : ""),
                     duration_text(change.step_time), 100 * (ratio(change.step_time, step) - 1));
}

// "+1.2 GB a device" tells nothing where the plan runs, and a gain nothing where it does not.
std::string advice_line(const Advice& advice, std::size_t width) {
  const std::string gives = advice.gain ? fmt::format("{:>+7.1f} %", -100 * *advice.gain)
                                        : fmt::format("{:>9} a device", bytes_text(advice.device));
  return fmt::format("    {:<{}}{:>10} {}\n", changes_text(advice), width, duration_text(advice.step_time), gives);
}

std::string advice_lines(const Explanation& plan) {
  if (!plan.advice) return "";
  const bool runs = plan.refusal.empty() && plan.excess.empty();
  if (plan.advice->empty()) {
    return runs ? "  No change of the study that was tried gains anything.\n"
                : "  No change of the study that was tried lets it run.\n";
  }
  std::string text = runs ? "  What you could change, planned anew; the gain is of the time of a token:\n"
                          : "  With what change it would run:\n";
  std::size_t width = 46;
  for (const Advice& advice : *plan.advice)
    width = std::max(width, std::min(widest_change, changes_text(advice).size()));
  for (const Advice& advice : *plan.advice) text += advice_line(advice, width);
  return text;
}

std::string text_of(const Explanation& plan) {
  if (!plan.refusal.empty()) {
    return fmt::format("{} is refused: {}\n{}", plan.plan, plan.refusal, advice_lines(plan));
  }
  std::string text = fmt::format("{}, step {}: {}\n", plan.plan, plan.step, duration_text(plan.step_time));
  for (const ExplanationLine& line : lines_of(plan))
    text += fmt::format("{:{}}{}\n", "", 2 + 2 * line.depth, line.text);
  text += plan.changes.empty() ? "  Nothing that was tried would make it faster.\n"
                               : "  What would help, the plan being the same:\n";
  for (const WhatIf& change : plan.changes) text += change_text(change, plan.step_time);
  return text + advice_lines(plan);
}

std::string bound_text(std::string_view reason) {
  if (reason == "longest") return "its longest sequence alone";
  if (reason == "capacity") return "its work, in as few micro-batches as hold its tokens";
  if (reason == "memory") return "its work, with long sequences on as few ranks as hold them";
  return "its work, spread evenly over the ranks";
}

/// A part of a step's distance to its bound.
struct DistancePart {
  const char* name;  ///< In JSON.
  Duration time;
  const char* text;
};

std::array<DistancePart, 4> parts_of(const DistanceToBound& distance) {
  return {{{"added_work_s", distance.added, "work that sharing, more micro-batches or offload add"},
           {"uneven_s", distance.uneven, "more work on the busiest rank than on the mean of all"},
           {"waiting_s", distance.waiting, "ranks that wait for others of their groups, stages for others"},
           {"unknown_to_plan_s", distance.unknown_to_plan, "what planners do not know: the rest of the machine"}}};
}

// "cp_comm -151 s, attention -88 s"
std::string differences_text(const Breakdown& from, const Breakdown& to, Duration step) {
  std::vector<std::string> texts;
  for (const auto& [activity, change] : differences(from, to, step)) {
    texts.push_back(fmt::format("{} {}", activity_name(activity), signed_duration(change)));
  }
  return texts.empty() ? "no activity by much" : joined(texts, ", ");
}

std::string side_by_side_text(std::vector<Explanation> plans) {
  std::erase_if(plans, [](const Explanation& plan) { return !plan.refusal.empty(); });
  std::string text;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    const Explanation& first = plans.front();
    const Explanation& other = plans[i];
    const std::string unfit = !first.excess.empty() ? first.plan : other.excess.empty() ? "" : other.plan;
    if (!unfit.empty()) text += fmt::format("{} does not fit, so that this compares with what cannot run: ", unfit);
    text += fmt::format("{} against {}: {} ({:.2f}x as fast). Time of a mean rank: {}.\n", other.plan, first.plan,
                        signed_duration(other.step_time - first.step_time), ratio(first.step_time, other.step_time),
                        differences_text(first.mean, other.mean, first.step_time));
  }
  return text;
}

// "Over the whole study: hdp-balance is 1.47 times as fast as static (a2a), the best static mesh of its tp and pp."
std::string over_best_static_text(const std::vector<const Run*>& runs) {
  std::vector<std::string> parts;
  for (const Run* run : runs) {
    if (run->is_refused() || !run->metrics.fits || !run->is_over_another_static()) continue;
    parts.push_back(fmt::format("{} {:.2f}x", run->info.plan, run->metrics.over_best_static->speedup.mean));
  }
  if (parts.empty()) return "";
  const Run& best = *runs.front()->best_static;
  return fmt::format("Against {}, the best static mesh of its tp and pp, {} a step over all steps: {} as fast.\n",
                     best.info.plan, seconds_text(best.metrics.step_time_s.mean), joined(parts, ", "));
}

// ---- For programs

Json pass_json(const ExplainedPass& pass) {
  return {{"micro_batch", pass.micro_batch},
          {"pass", pass.kind},
          {"ranks", pass.ranks},
          {"last_rank", pass.last_rank},
          {"spans", pass.spans},
          {"tokens", pass.tokens},
          {"sequence", pass.sequence},
          {"sequence_tokens", pass.sequence_tokens},
          {"time_s", seconds_of(pass.time)},
          {"waiting_s", seconds_of(pass.waiting)}};
}

// Null where nothing was tried.
Json advice_json(const Explanation& plan) {
  if (!plan.advice) return nullptr;
  Json all = Json::array();
  for (const Advice& advice : *plan.advice) {
    all.push_back({{"set", advice.changes},
                   {"remarks", advice.remarks},
                   {"step_time_s", seconds_of(advice.step_time)},
                   {"tokens", advice.tokens},
                   {"gain", advice.gain ? Json(*advice.gain) : Json()},
                   {"device_peak_gb", advice.device.gigabytes()}});
  }
  return all;
}

Json distance_json(const DistanceToBound& distance) {
  Json json = {{"bound_s", seconds_of(distance.bound)},
               {"reason", distance.reason},
               {"ending_s", seconds_of(distance.ending)},
               {"estimate_s", seconds_of(distance.estimate)}};
  for (const DistancePart& part : parts_of(distance)) json[part.name] = seconds_of(part.time);
  return json;
}

Json plan_json(const Explanation& plan) {
  if (!plan.refusal.empty()) {
    return {{"plan", plan.plan}, {"step", plan.step}, {"refusal", plan.refusal}, {"advice", advice_json(plan)}};
  }
  Json longest = Json::array();
  for (const ExplainedPass& pass : plan.longest) longest.push_back(pass_json(pass));
  Json changes = Json::array();
  for (const WhatIf& change : plan.changes) {
    changes.push_back(
        {{"change", change.change}, {"step_time_s", seconds_of(change.step_time)}, {"bound", change.is_bound}});
  }
  Json hop;
  if (plan.slow_hop) {
    hop = {{"from", plan.slow_hop->from.index()},
           {"to", plan.slow_hop->to.index()},
           {"link", plan.slow_hop->link},
           {"gb_per_s", plan.slow_hop->rate.gigabytes_per_second()}};
  }
  return {
      {"plan", plan.plan},
      {"step", plan.step},
      {"step_time_s", seconds_of(plan.step_time)},
      {"fits", plan.excess.empty()},
      {"at_risk", !plan.risk.empty()},
      {"how_sure", plan.sure},
      {"breakdown_s", breakdown_figures().json(plan.mean)},
      {"rank_busy_s",
       {{"min", seconds_of(plan.busy.min)}, {"mean", seconds_of(plan.busy.mean)}, {"max", seconds_of(plan.busy.max)}}},
      {"busiest_rank", plan.busiest_rank},
      {"critical_path",
       {{"passes", plan.path_passes},
        {"breakdown_s", breakdown_figures().json(plan.path)},
        {"ending_s", seconds_of(plan.ending)},
        {"longest", longest}}},
      {"distance_to_bound", distance_json(plan.distance)},
      {"slowest_hop", hop},
      {"busiest_link", {{"name", plan.busiest_link}, {"utilisation", plan.busiest_link_share}}},
      {"what_if", changes},
      {"advice", advice_json(plan)}};
}

// Empty where there is no bound: of a batch without sequences.
std::vector<ExplanationLine> distance_lines(const DistanceToBound& distance, Duration step) {
  if (distance.bound == Duration{}) return {};
  const bool is_more = step >= distance.bound;
  std::vector<ExplanationLine> lines = {
      {0, fmt::format("No plan of this batch takes less than {}, by the costs that planners know: {}, then {} for "
                      "gradients and the optimizer. This one takes {} {}; its planner expected {}.",
                      duration_text(distance.bound), bound_text(distance.reason), duration_text(distance.ending),
                      duration_text(is_more ? step - distance.bound : distance.bound - step), is_more ? "more" : "less",
                      duration_text(distance.estimate))}};
  for (const DistancePart& part : parts_of(distance)) {
    if (std::abs(ratio(part.time, step)) < worth_telling) continue;
    lines.push_back({1, fmt::format("{:>10}  {}", signed_duration(part.time), part.text)});
  }
  return lines;
}

}  // namespace

std::vector<ExplanationLine> lines_of(const Explanation& plan) {
  std::vector<ExplanationLine> lines;
  const auto say = [&](std::string text, int depth = 0) { lines.push_back({depth, std::move(text)}); };
  const auto share = [&](Duration time) { return 100 * ratio(time, plan.step_time); };
  if (!plan.excess.empty())
    say(fmt::format("It does not fit: {}. What follows is of a step that cannot run.", plan.excess));
  if (!plan.risk.empty()) say(fmt::format("Its memory is at risk: {}.", plan.risk));
  if (!plan.sure.empty()) say(fmt::format("How sure: {}", plan.sure));
  say(fmt::format("The time of a mean rank: {}.", largest_shares(plan.mean)));
  say(fmt::format("Ranks are busy {:.0f} to {:.0f} % of the step, {:.0f} % on the mean; rank {} most.",
                  share(plan.busy.min), share(plan.busy.max), share(plan.busy.mean), plan.busiest_rank));
  const bool passes = !plan.longest.empty() && !plan.longest.front().kind.empty();
  say(fmt::format("What decides: {} {} that wait for each other, {}; then the end of the step, {}.", plan.path_passes,
                  passes ? "passes" : "micro-batches", duration_text(plan.path.total()), duration_text(plan.ending)));
  say(fmt::format("Their time: {}.", largest_shares(plan.path)));
  if (!plan.longest.empty()) say("The longest of them:");
  for (const ExplainedPass& pass : plan.longest) {
    say(fmt::format("{:>9}  {}", duration_text(pass.time), pass_text(pass)), 1);
  }
  for (ExplanationLine& line : distance_lines(plan.distance, plan.step_time)) lines.push_back(std::move(line));
  if (plan.slow_hop) {
    say(fmt::format("The ring that waits longest is held back between ranks {} and {}: {}, {:.3g} GB/s.",
                    plan.slow_hop->from.index(), plan.slow_hop->to.index(), plan.slow_hop->link,
                    plan.slow_hop->rate.gigabytes_per_second()));
  }
  if (!plan.busiest_link.empty()) {
    say(fmt::format("The busiest link is {}, {:.0f} % of its rate over the step.", plan.busiest_link,
                    100 * plan.busiest_link_share));
  }
  return lines;
}

std::vector<std::pair<Activity, Duration>> differences(const Breakdown& from, const Breakdown& to, Duration step) {
  std::vector<std::pair<Activity, Duration>> parts;
  for (const Activity activity : all_activities) {
    const Duration change = to[activity] - from[activity];
    if (std::abs(ratio(change, step)) >= worth_telling) parts.emplace_back(activity, change);
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second.seconds()) > std::abs(b.second.seconds());
  });
  return parts;
}

std::string formatted(const std::string& title, const std::vector<Explanation>& plans, Format format) {
  if (format == Format::json) {
    Json json = {{"schema", "hdpsim.explanation/1"}, {"title", title}, {"plans", Json::array()}};
    for (const Explanation& plan : plans) json["plans"].push_back(plan_json(plan));
    return json_page(json);
  }
  std::string text = title + "\n";
  for (const Explanation& plan : plans) text += fmt::format("\n{}", text_of(plan));
  return text + (plans.size() > 1 ? "\n" : "") + side_by_side_text(plans);
}

std::string explained(const Study& study, const std::vector<Run>& runs, const ExplainChoice& choice,
                      std::vector<Explanation> plans, Format format) {
  const std::size_t first = static_cast<std::size_t>(choice.point) * study.plans.size();
  const std::vector<std::size_t> numbers = chosen_plans(study, choice);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Run& run = runs.at(first + numbers[i]);
    plans[i].excess = memory_excess(run);
    if (run.is_refused()) continue;
    plans[i].risk = risk_text(run);
    plans[i].sure = confidence_sentence(run);
  }
  const RunInfo& info = runs.at(first).info;
  std::string title = fmt::format("{}: {}", study.name, info.setting);
  if (!info.coordinates.empty()) title += ", " + point_text(info);
  std::string text = formatted(title, plans, format);
  // The runs were simulated without tuned baselines.
  if (format == Format::json || study.tunes_baseline) return text;
  std::vector<const Run*> chosen;
  for (const std::size_t number : numbers) chosen.push_back(&runs.at(first + number));
  text += over_best_static_text(chosen);
  for (const std::string& note : baseline_notes(runs)) text += fmt::format("\n{}\n", note);
  return text;
}

}  // namespace hdpsim
