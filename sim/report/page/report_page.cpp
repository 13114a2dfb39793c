#include "sim/report/page/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/report/answer.h"
#include "sim/report/explanation_text.h"
#include "sim/report/page/busy_map.h"
#include "sim/report/page/page_data.h"
#include "sim/results/notes.h"
#include "sim/results/run_figures.h"

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

// The mean over the ranks of each stage; null without a pipeline.
Json stage_breakdowns_json(const Run& run) {
  Json stages = Json::array();
  const auto count = static_cast<std::size_t>(run.info.stages);
  for (std::size_t stage = 0; count > 1 && stage < count; ++stage) {
    BreakdownMean mean;
    for (std::size_t worker = stage; worker < run.result.ranks.size(); worker += count) {
      mean.add(run.result.ranks[worker]);
    }
    stages.push_back(breakdown_figures().json(mean.mean()));
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
          {"breakdown_s", breakdown_figures().json(lane.breakdown)},
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

// What result.json says of a run, and the memory that it has.
Json figures_of(const Run& run) {
  Json figures = run_figures().json(run);
  figures["memory_gb"]["device_limit"] = run.info.device_memory.gigabytes();
  figures["memory_gb"]["host_limit"] = run.info.host_memory.gigabytes();
  return figures;
}

// A point is given by its number, and `samples` are the memory of a few ranks over the fullest step.
Json run_json(const Run& run, std::size_t cells) {
  Json json = figures_of(run);
  json.update({{"point", run.info.point},
               {"stage_breakdowns", stage_breakdowns_json(run)},
               {"samples", memory_ranks_json(run.result.memory)},
               {"stages", run.info.stages},
               {"ranks", run.result.ranks.size() / static_cast<std::size_t>(run.info.stages)},
               {"busy_map", map_json(busy_map(run.result.ranks, cells))},
               {"busy_histogram", histogram_json(busy_histogram(run.result.ranks, histogram_bins))},
               {"links", links_json(run.result.links)},
               {"shown_step", nullptr},
               {"timeline", nullptr},
               {"why", nullptr}});
  return json;
}

Json points_json(const ReportData& data) {
  Json points = Json::array();
  for (const Run& run : data.runs) {
    if (run.info.point >= points.size()) {
      const bool known = run.info.point < data.lengths.size();
      points.push_back(point_json(run.info, known ? data.lengths[run.info.point] : std::nullopt));
      points.back()["best_static"] = nullptr;
    }
    if (run.is_over_another_static()) points.back()["best_static"] = figures_of(*run.best_static);
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
  return {{"version", data.version},           {"name", study_name(data.study)},
          {"study", to_yaml(data.study)},      {"plans", plans},
          {"colors", plan_colors(plans)},      {"definitions", definitions(plans)},
          {"answer", answer_json(data)},       {"points", points_json(data)},
          {"runs", runs_json(data)},           {"tokens", tokens_json(data.tokens)},
          {"refused", refused_json(data.runs)}};
}

}  // namespace

std::string report_page(const ReportData& data) {
  return html_page(study_name(data.study), page_files::report_js, json_line(page_json(data)));
}

}  // namespace hdpsim
