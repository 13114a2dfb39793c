#include "sim/report/page/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include "sim/analysis/memory_verdict.h"
#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/report/answer.h"
#include "sim/report/explanation_text.h"
#include "sim/report/page/busy_map.h"
#include "sim/report/page/page_data.h"
#include "sim/results/advice_text.h"
#include "sim/results/trace_notes.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_cells_a_run = 4096;
constexpr std::size_t fewest_cells_a_run = 64;
constexpr std::size_t histogram_bins = 40;
constexpr std::size_t most_links = 16;
constexpr std::size_t most_memory_ranks = 4;
constexpr std::size_t most_memory_samples = 600;  // samples per rank

double rounded_seconds(Duration time) {
  return rounded(seconds_of(time));
}
double rounded_seconds(Instant time) {
  return rounded_seconds(time.since_start());
}

Json names_of_evidence() {
  Json names = Json::array();
  for (std::size_t i = 0; i < evidence_kinds; ++i) names.push_back(evidence_name(static_cast<Evidence>(i)));
  return names;
}

// ---- Data of a point

Json lengths_json(const Description& lengths) {
  Json percentiles = Json::array();
  for (const auto& [percent, length] : lengths.percentiles) percentiles.push_back({percent, length});
  Json shares = Json::array();
  for (const auto& [above, sequences, tokens, squares] : lengths.shares) {
    shares.push_back({above, rounded(sequences), rounded(tokens), rounded(squares)});
  }
  return {{"count", lengths.count}, {"tokens", lengths.tokens}, {"mean", rounded(lengths.mean)},
          {"min", lengths.min},     {"max", lengths.max},       {"percentiles", percentiles},
          {"shares", shares}};
}

Json point_json(const RunInfo& info, const std::optional<Description>& lengths) {
  Json coordinates = Json::array();
  for (const auto& coordinate : info.coordinates) coordinates.push_back({coordinate.path, line_of(coordinate.value)});
  Json background = Json::array();
  for (const auto& other : info.background) {
    background.push_back(fmt::format("{}: {} on {} GPUs", other.name, other.what, other.gpus));
  }
  const std::vector<std::string> trace = info.trace ? trace_notes(*info.trace) : std::vector<std::string>{};
  return {{"trace", trace},
          {"coordinates", coordinates},
          {"setting", info.setting},
          {"profile", info.profile},
          {"background", background},
          {"not_modelled", info.not_modelled},
          {"lengths", lengths ? lengths_json(*lengths) : Json()}};
}

// ---- Data of a run

Json breakdown_row(const Breakdown& breakdown) {
  Json seconds = Json::array();
  for (const Activity activity : all_activities) {
    seconds.push_back(rounded_seconds(breakdown[activity]));
  }
  return seconds;
}

// The mean over the ranks of each stage; null without a pipeline.
Json stage_breakdowns_json(const Run& run) {
  Json stages = Json::array();
  const auto count = static_cast<std::size_t>(run.info.stages);
  for (std::size_t stage = 0; count > 1 && stage < count; ++stage) {
    BreakdownMean mean;
    for (std::size_t worker = stage; worker < run.result.ranks.size(); worker += count) {
      mean.add(run.result.ranks[worker]);
    }
    stages.push_back(breakdown_row(mean.mean()));
  }
  return stages;
}

Json links_json(const std::vector<LinkUse>& links) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(links.size(), most_links); ++i) {
    const LinkUse& link = links[i];
    rows.push_back({link.name, link.rate.gigabytes_per_second(), rounded(link.bytes.gigabytes()),
                    rounded(link.utilisation), rounded(link.other_utilisation)});
  }
  return rows;
}

Json map_json(const BusyMap& map) {
  Json cells = Json::array();
  for (const double cell : map.cells) cells.push_back(rounded(cell));
  return {{"ranks_per_cell", map.ranks_per_cell}, {"cells", cells}};
}

Json histogram_json(const BusyHistogram& histogram) {
  return {{"least", histogram.least}, {"most", histogram.most}, {"counts", histogram.counts}};
}

// Only a piece of a pipeline names the kind of its pass.
Json piece_json(const ShownStep::Piece& piece) {
  Json json = {rounded_seconds(piece.begin), rounded_seconds(piece.end), piece.ranks, piece.tokens,
               rounded(piece.offload)};
  if (piece.kind == PassKind::whole) return json;
  json.push_back(pass_kind_name(piece.kind));
  json.push_back(piece.micro_batch);
  json.push_back(piece.chunk);
  return json;
}

Json lane_json(const ShownStep::Lane& lane) {
  Json pieces = Json::array();
  for (const ShownStep::Piece& piece : lane.pieces) pieces.push_back(piece_json(piece));
  return {{"rank", lane.rank},
          {"stage", lane.stage},
          {"breakdown", breakdown_row(lane.breakdown)},
          {"pieces", pieces},
          {"left_out", lane.left_out}};
}

Json kinds_of_links_json(const std::vector<LinkKindUse>& links) {
  Json kinds = Json::array();
  for (const LinkKindUse& use : links) {
    kinds.push_back({{"kind", use.kind},
                     {"links", use.links},
                     {"rate", use.rate.gigabytes_per_second()},
                     {"mean", rounded(use.mean)},
                     {"others", rounded(use.others)},
                     {"most", rounded(use.most)},
                     {"busiest", use.busiest}});
  }
  return kinds;
}

Json step_json(const ShownStep& step) {
  Json sizes = Json::array();
  for (const auto& [ranks, micro_batches, tokens] : step.group_sizes) sizes.push_back({ranks, micro_batches, tokens});
  Json lanes = Json::array();
  for (const ShownStep::Lane& lane : step.lanes) lanes.push_back(lane_json(lane));
  return {{"step", step.step},
          {"time", rounded_seconds(step.time)},
          {"group_sizes", sizes},
          {"links", kinds_of_links_json(step.links)},
          {"lanes", lanes}};
}

// Lines as [depth, text], changes as [change, step time, whether it is a bound], advice as [change, step time, gain or
// null, GB of a device].
Json why_json(const Explanation& why) {
  Json lines = Json::array();
  for (const ExplanationLine& line : lines_of(why)) lines.push_back({line.depth, line.text});
  Json changes = Json::array();
  for (const WhatIf& change : why.changes) {
    changes.push_back({change.change, rounded_seconds(change.step_time), change.is_bound});
  }
  Json advice = Json::array();
  for (const Advice& each : why.advice.value_or(std::vector<Advice>{})) {
    advice.push_back({changes_text(each), rounded_seconds(each.step_time),
                      each.gain ? Json(rounded(*each.gain)) : Json(), rounded(each.device.gigabytes())});
  }
  return {{"step", why.step},   {"step_time", rounded_seconds(why.step_time)}, {"lines", lines},
          {"changes", changes}, {"advised", why.advice.has_value()},           {"advice", advice}};
}

Json speedup_json(const std::optional<Speedup>& speedup) {
  if (!speedup) return nullptr;
  return {{"versus", speedup->versus}, {"mean", speedup->mean}, {"p5", speedup->p5}, {"p95", speedup->p95}};
}

std::optional<Speedup> over_best_static(const Run& run) {
  return run.metrics.over_best_static ? std::optional(run.metrics.over_best_static->speedup) : std::nullopt;
}

Json percentiles_json(const Percentiles& values) {
  return {{"p5", values.p5}, {"p50", values.p50}, {"p95", values.p95}};
}

// Intervals around the mean of the simulated run; null if the study does not ask for them.
Json uncertainty_json(const std::optional<Uncertainty>& uncertainty) {
  if (!uncertainty) return nullptr;
  Json variance = Json::array();
  for (const VarianceShare& each : uncertainty->shares) variance.push_back({each.source, rounded(each.share)});
  return {{"samples", uncertainty->samples},
          {"step_time", percentiles_json(uncertainty->step_time_s)},
          {"speedup", uncertainty->speedup ? percentiles_json(*uncertainty->speedup) : Json()},
          {"variance", variance},
          {"unknown", uncertainty->unknown},
          {"advice", uncertainty->advice}};
}

Json names_of_memory_parts() {
  Json names = Json::array();
  for (std::size_t i = 0; i < memory_parts; ++i) names.push_back(memory_part_name(static_cast<MemoryPart>(i)));
  return names;
}

Bytes peak_of(const RankMemory& memory) {
  Bytes peak;
  for (const MemorySample& sample : memory.samples) peak = std::max(peak, sample.device);
  return peak;
}

// [seconds, GB of the device, GB of the host]
Json samples_json(const RankMemory& memory) {
  Json samples = Json::array();
  for (std::size_t i = 0; i < std::min(memory.samples.size(), most_memory_samples); ++i) {
    const MemorySample& sample = memory.samples[i];
    samples.push_back(
        {rounded_seconds(sample.at), rounded(sample.device.gigabytes()), rounded(sample.host.gigabytes())});
  }
  return samples;
}

// Sorts the fullest ranks first.
Json memory_ranks_json(const StepMemory& memory) {
  std::vector<const RankMemory*> order;
  for (const RankMemory& rank : memory.ranks) order.push_back(&rank);
  std::stable_sort(order.begin(), order.end(),
                   [](const RankMemory* a, const RankMemory* b) { return peak_of(*a) > peak_of(*b); });
  if (order.size() > most_memory_ranks) order.resize(most_memory_ranks);
  Json ranks = Json::array();
  for (const RankMemory* rank : order) {
    ranks.push_back({{"rank", rank->rank.index()},
                     {"samples", samples_json(*rank)},
                     {"left_out", rank->samples.size() - std::min(rank->samples.size(), most_memory_samples)}});
  }
  return ranks;
}

Json memory_json(const Run& run) {
  const MemoryUse& memory = run.metrics.memory;
  Json parts = Json::array();
  for (std::size_t i = 0; i < memory_parts; ++i) {
    parts.push_back(rounded(memory.parts[static_cast<MemoryPart>(i)].gigabytes()));
  }
  return {{"device", memory.device.gigabytes()},
          {"device_limit", run.info.device_memory.gigabytes()},
          {"host", memory.host.gigabytes()},
          {"host_limit", run.info.host_memory.gigabytes()},
          {"fits", run.metrics.fits},
          {"verdict", memory_fit_text(fit_of(run))},
          {"device_at_most", with_largest_gaps(memory).gigabytes()},
          {"parts", parts},
          {"rank", memory.rank.index()},
          {"stage", memory.stage},
          {"step", run.result.memory.step},
          {"at", rounded_seconds(memory.at)},
          {"ranks", memory_ranks_json(run.result.memory)}};
}

Json run_json(const Run& run, std::size_t cells) {
  const RunMetrics& metrics = run.metrics;
  const Percentiles& time = metrics.step_time_s;
  const BusyTimes& busy = metrics.busy;
  return {{"point", run.info.point},
          {"plan", run.info.plan},
          {"gpus", run.info.gpus},
          {"steps", metrics.steps},
          {"step_time", {{"mean", time.mean}, {"p5", time.p5}, {"p50", time.p50}, {"p95", time.p95}}},
          {"uncertainty", uncertainty_json(metrics.uncertainty)},
          {"tokens_per_s", metrics.tokens_per_s},
          {"mfu", metrics.mfu},
          {"speedup", speedup_json(metrics.speedup)},
          {"over_best", speedup_json(over_best_static(run))},
          {"breakdown", breakdown_row(metrics.breakdown)},
          {"busy", {seconds_of(busy.min), seconds_of(busy.mean), seconds_of(busy.max), seconds_of(busy.deviation)}},
          {"stage_breakdowns", stage_breakdowns_json(run)},
          {"evidence", metrics.evidence},
          {"memory", memory_json(run)},
          {"stages", run.info.stages},
          {"ranks", run.result.ranks.size() / static_cast<std::size_t>(run.info.stages)},
          {"busy_map", map_json(busy_map(run.result.ranks, cells))},
          {"busy_histogram", histogram_json(busy_histogram(run.result.ranks, histogram_bins))},
          {"links", links_json(run.result.links)},
          {"shown_step", nullptr},
          {"timeline", nullptr},
          {"why", nullptr}};
}

// The best static mesh of a point, where it is none of the runs.
Json best_static_json(const Run& best) {
  const RunMetrics& metrics = best.metrics;
  const Percentiles& time = metrics.step_time_s;
  return {{"plan", best.info.plan},
          {"step_time", {{"mean", time.mean}, {"p5", time.p5}, {"p50", time.p50}, {"p95", time.p95}}},
          {"tokens_per_s", metrics.tokens_per_s},
          {"mfu", metrics.mfu},
          {"speedup", speedup_json(metrics.speedup)},
          {"over_best", speedup_json(over_best_static(best))},
          {"breakdown", breakdown_row(metrics.breakdown)},
          {"memory", {{"device", metrics.memory.device.gigabytes()}, {"fits", metrics.fits}}}};
}

Json points_json(const ReportData& data) {
  Json points = Json::array();
  for (const Run& run : data.runs) {
    if (run.info.point >= points.size()) {
      const bool known = run.info.point < data.lengths.size();
      points.push_back(point_json(run.info, known ? data.lengths[run.info.point] : std::nullopt));
      points.back()["best_static"] = nullptr;
    }
    if (run.is_over_another_static()) points.back()["best_static"] = best_static_json(*run.best_static);
  }
  return points;
}

Json runs_json(const ReportData& data) {
  const std::size_t share = map_cells / std::max<std::size_t>(1, data.runs.size());
  const std::size_t cells = std::clamp(share, fewest_cells_a_run, most_cells_a_run);
  Json runs = Json::array();
  for (std::size_t i = 0; i < data.runs.size(); ++i) {
    if (data.runs[i].is_refused()) continue;
    Json run = run_json(data.runs[i], cells);
    if (i < data.steps.size() && data.steps[i]) run["shown_step"] = step_json(*data.steps[i]);
    if (i < data.timelines.size() && !data.timelines[i].empty()) run["timeline"] = data.timelines[i];
    if (i < data.why.size() && data.why[i]) run["why"] = why_json(*data.why[i]);
    runs.push_back(std::move(run));
  }
  return runs;
}

// Runs that have no figures, and why.
Json refused_json(const std::vector<Run>& runs) {
  Json refused = Json::array();
  for (const Run& run : runs) {
    if (!run.is_refused()) continue;
    refused.push_back({{"point", run.info.point}, {"plan", run.info.plan}, {"why", refusal_text(run)}});
  }
  return refused;
}

// [tokens of a step, [tokens a second of each plan, or null]]
Json tokens_json(const std::vector<TokensRow>& rows) {
  Json json = Json::array();
  for (const TokensRow& row : rows) {
    Json rates = Json::array();
    for (const auto& rate : row.tokens_per_s) rates.push_back(rate ? Json(rounded(*rate)) : Json());
    json.push_back({row.tokens_per_step, std::move(rates)});
  }
  return json;
}

std::string study_name(const Value& study) {
  const Value* name = study.find("name");
  return name == nullptr ? "study" : name->text;
}

std::vector<std::string> plans_of(const std::vector<Run>& runs) {
  std::vector<std::string> plans;
  for (const Run& run : runs) {
    if (std::find(plans.begin(), plans.end(), run.info.plan) == plans.end()) plans.push_back(run.info.plan);
  }
  return plans;
}

Json answer_json(const ReportData& data) {
  const Answer answer = answer_of(data.runs, data.advice);
  return {{"lead", answer.lead}, {"notes", answer.notes}};
}

Json page_json(const ReportData& data) {
  const std::vector<std::string> plans = plans_of(data.runs);
  return {{"version", data.version},
          {"name", study_name(data.study)},
          {"study", to_yaml(data.study)},
          {"plans", plans},
          {"colors", plan_colors(plans)},
          {"activities", activity_names()},
          {"evidence", names_of_evidence()},
          {"definitions", definitions(plans)},
          {"memory_parts", names_of_memory_parts()},
          {"answer", answer_json(data)},
          {"points", points_json(data)},
          {"runs", runs_json(data)},
          {"tokens", tokens_json(data.tokens)},
          {"refused", refused_json(data.runs)}};
}

}  // namespace

std::string report_page(const ReportData& data) {
  return html_page(study_name(data.study), page_files::report_js, json_line(page_json(data)));
}

}  // namespace hdpsim
