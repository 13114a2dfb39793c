#include "sim/tune/tune_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/results/table.h"
#include "sim/tune/tune_figures.h"

namespace hdpsim {
namespace {

using Fate = TunedCandidate::Fate;

constexpr std::size_t most_ranked = 10;
constexpr std::size_t most_reasons = 8;

std::string steps_text(const TuneResult& result, const TunedCandidate& candidate) {
  return candidate.steps == result.steps ? "all" : fmt::format("{}", candidate.steps);
}

// The time of a bounded candidate is at least its bound.
std::string ratio_text(const TunedCandidate& candidate) {
  if (candidate.steps == 0) return fmt::format(">= {:.2f}x", candidate.ratio);
  if (candidate.steps == 1) return fmt::format("{:.2f}x", candidate.ratio);
  return fmt::format("{:.2f}x ({:.2f}-{:.2f})", candidate.ratio, candidate.ratio_p5, candidate.ratio_p95);
}

TextRow titles(const std::optional<Price>& price) {
  TextRow row = {"step time", "to the best (p5-p95)", "MFU", "device GB", "GPUs", "GPU-h/Gtoken", "steps", "choices"};
  if (price) row.insert(row.end() - 2, fmt::format("{}/Gtoken", price->currency));
  return row;
}

TextRow row_of(const TuneResult& result, const TunedCandidate& candidate, const std::optional<Price>& price) {
  TextRow row = {seconds_text(candidate.time_s),
                 ratio_text(candidate),
                 fmt::format("{:.1f}%", 100 * candidate.mfu),
                 fmt::format("{:.1f}{}", candidate.device_gb, candidate.is_at_risk ? " at risk" : ""),
                 fmt::format("{}", candidate.gpus),
                 fmt::format("{:.1f}", candidate.gpu_hours_per_gigatoken),
                 steps_text(result, candidate),
                 candidate.text};
  if (price) row.insert(row.end() - 2, fmt::format("{:.2f}", price->amount * candidate.gpu_hours_per_gigatoken));
  return row;
}

template <class Belongs>
std::string table_of_those(const TuneResult& result, const std::optional<Price>& price, std::size_t most,
                           const Belongs& belongs) {
  std::vector<TextRow> rows = {titles(price)};
  for (const TunedCandidate& candidate : result.candidates) {
    if (rows.size() <= most && belongs(candidate)) rows.push_back(row_of(result, candidate, price));
  }
  return joined(aligned_lines(rows, FirstColumn::number), "");
}

std::string infeasible_text(const TuneResult& result) {
  std::map<std::string, std::pair<std::int64_t, std::string>> reasons;  // count, and an example
  for (const TunedCandidate& candidate : result.candidates) {
    if (candidate.fate != Fate::infeasible) continue;
    auto& [count, example] = reasons.try_emplace(candidate.reason, 0, candidate.text).first->second;
    ++count;
  }
  if (reasons.empty()) return "";
  std::vector<std::pair<std::string, std::pair<std::int64_t, std::string>>> sorted(reasons.begin(), reasons.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  std::string text = fmt::format("\n{} candidates cannot run:\n", std::ssize(result.candidates) - result.feasible);
  for (std::size_t i = 0; i < std::min(most_reasons, sorted.size()); ++i) {
    const auto& [reason, uses] = sorted[i];
    text += fmt::format("  {} x {} ({})\n", uses.first, reason, uses.second);
  }
  if (sorted.size() > most_reasons) {
    text += fmt::format("  and {} other reasons; --format csv names each\n", sorted.size() - most_reasons);
  }
  return text;
}

}  // namespace

std::string tune_effort(const TuneResult& result) {
  const std::int64_t exhaustive = result.feasible * result.steps;
  return fmt::format(
      "{} candidates, {} of which can run. Planned {} steps, simulated {} in closed form and {} in full: {:.1f}% of "
      "the "
      "{} of an exhaustive search.",
      result.candidates.size(), result.feasible, result.planned_steps, result.closed_form_steps, result.full_steps,
      100 * static_cast<double>(result.closed_form_steps + result.full_steps) / static_cast<double>(exhaustive),
      exhaustive);
}

std::string tune_risk(const TuneResult& result) {
  const TunedCandidate& best = result.candidates.front();
  if (!best.is_at_risk) return "";
  const std::string risk = fmt::format(
      "The memory of the best is at risk: {:.1f} of {:.1f} GB, {:.1f} GB where the allocator leaves the largest gaps "
      "that were measured.",
      best.device_gb, result.device_memory_gb, best.device_at_most_gb);
  const auto is_safe = [](const TunedCandidate& candidate) {
    return candidate.fate != Fate::infeasible && !candidate.is_at_risk;
  };
  const auto safe = std::find_if(result.candidates.begin(), result.candidates.end(), is_safe);
  if (safe == result.candidates.end()) return risk + " So is that of all others.";
  return fmt::format("{} The best without that risk takes {}, {} as long: {}.", risk, seconds_text(safe->time_s),
                     ratio_text(*safe), safe->text);
}

std::string tune_table(const TuneResult& result, const std::optional<Price>& price) {
  const auto may_run = [](const TunedCandidate& candidate) { return candidate.fate != Fate::infeasible; };
  const auto is_on_front = [](const TunedCandidate& candidate) { return candidate.on_front; };
  const auto is_best_of_plan = [](const TunedCandidate& candidate) { return candidate.best_of_plan; };
  const std::size_t all = result.candidates.size();
  const std::string risk = tune_risk(result);
  return fmt::format(
      "{}: {}\n{}\n\nThe best, by the time of all steps; others by that of the steps they were simulated on:\n{}{}\n"
      "The best of each plan, by the time of all steps:\n{}\n"
      "What no other candidate beats in time, memory (in twentieths of a device) and GPUs together:\n{}{}\ncosts: {}\n",
      result.study, result.setting, tune_effort(result), table_of_those(result, price, most_ranked, may_run),
      risk.empty() ? "" : risk + "\n", table_of_those(result, price, all, is_best_of_plan),
      table_of_those(result, price, all, is_on_front), infeasible_text(result), result.profile);
}

std::vector<RankedCandidate> ranked_candidates(const TuneResult& result, const std::optional<Price>& price) {
  std::vector<RankedCandidate> ranked;
  for (const TunedCandidate& candidate : result.candidates) ranked.push_back({ranked.size() + 1, &candidate, &price});
  return ranked;
}

std::string tune_csv(const TuneResult& result, const std::optional<Price>& price) {
  return candidate_figures().csv(ranked_candidates(result, price));
}

std::string tune_json(const TuneResult& result, const std::optional<Price>& price, const Value& study,
                      std::string_view version) {
  Json json = {{"schema", "hdpsim.tuning/1"},
               {"hdpsim", version},
               {"study", json_of(study)},
               {"steps", result.steps},
               {"probe_step", result.probe},
               {"planned_steps", result.planned_steps},
               {"closed_form_steps", result.closed_form_steps},
               {"full_steps", result.full_steps},
               {"feasible", result.feasible},
               {"price", price ? Json{{"amount", price->amount}, {"currency", price->currency}} : Json()},
               {"winner", json_of(result.winner)},
               {"candidates", candidate_figures().json_list(ranked_candidates(result, price))}};
  return json_page(json);
}

void write_tuning(OutputFolder& folder, const TuneResult& result, const Study& study, std::string_view version) {
  folder.write("study.yaml", to_yaml(study.resolved));
  folder.write("best.yaml", to_yaml(result.winner));
  folder.write("candidates.csv", tune_csv(result, study.tune.price));
  folder.write("tune.html", tune_page(result, study.tune.price));
  folder.write("tune.json", tune_json(result, study.tune.price, study.resolved, version));
}

std::vector<std::string> tuning_file_names() {
  return {"study.yaml", "best.yaml", "candidates.csv", "tune.html", "tune.json"};
}

}  // namespace hdpsim
