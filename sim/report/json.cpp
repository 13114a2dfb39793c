#include "sim/report/json.h"

#include <nlohmann/json.hpp>

#include "sim/document/values.h"
#include "sim/report/trace_notes.h"

namespace hdpsim {
namespace {

using Json = nlohmann::ordered_json;

Json breakdown_json(const Breakdown& breakdown) {
  Json json = Json::object();
  for (const Activity activity : all_activities) {
    json[std::string(activity_name(activity))] = seconds_of(breakdown[activity]);
  }
  return json;
}

Json evidence_json(const std::array<double, evidence_kinds>& shares) {
  Json json = Json::object();
  for (std::size_t i = 0; i < evidence_kinds; ++i) {
    json[std::string(evidence_name(static_cast<Evidence>(i)))] = shares[i];
  }
  return json;
}

// Null if it is not known.
Json connection_memory_json(const MemoryUse& memory) {
  return memory.connections ? Json(memory.connections->gigabytes()) : Json();
}

// Memory by use; and on which rank and when in its step the fullest device is fullest.
Json parts_json(const MemoryParts& parts) {
  Json json = Json::object();
  for (std::size_t i = 0; i < memory_parts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    json[std::string(memory_part_name(part))] = parts[part].gigabytes();
  }
  return json;
}

Json memory_json(const Run& run) {
  const MemoryUse& memory = run.metrics.memory;
  return {{"device_peak", memory.device.gigabytes()},
          {"host_peak", memory.host.gigabytes()},
          {"connections", connection_memory_json(memory)},
          {"parts", parts_json(memory.parts)},
          {"rank", memory.rank.index()},
          {"stage", memory.stage},
          {"step", run.result.memory.step},
          {"at_s", seconds_of(memory.at)},
          {"fits", run.metrics.fits}};
}

Json goodput_json(const Goodput& goodput) {
  return {{"mtbf_s", goodput.mtbf_s},
          {"young_s", goodput.young_s},
          {"daly_s", goodput.daly_s},
          {"checkpoint_every_steps", goodput.every_steps},
          {"share", goodput.share},
          {"simulated", goodput.simulated},
          {"simulated_error", goodput.simulated_error}};
}

Json percentiles_json(const Percentiles& values) {
  return {{"mean", values.mean}, {"p5", values.p5}, {"p50", values.p50}, {"p95", values.p95}};
}

Json uncertainty_json(const Uncertainty& uncertainty) {
  Json shares = Json::array();
  for (const VarianceShare& each : uncertainty.shares) {
    shares.push_back({{"source", each.source}, {"share", each.share}, {"deviation", each.deviation}});
  }
  return {{"samples", uncertainty.samples},
          {"step_time_s", percentiles_json(uncertainty.step_time_s)},
          {"tokens_per_s", percentiles_json(uncertainty.tokens_per_s)},
          {"tokens_per_s_per_gpu", percentiles_json(uncertainty.tokens_per_s_per_gpu)},
          {"mfu", percentiles_json(uncertainty.mfu)},
          {"speedup", uncertainty.speedup ? percentiles_json(*uncertainty.speedup) : Json()},
          {"variance", shares},
          {"unknown", uncertainty.unknown},
          {"advice", uncertainty.advice}};
}

Json run_json(const Run& run) {
  const RunMetrics& metrics = run.metrics;
  Json point = Json::object();
  for (const auto& coordinate : run.info.coordinates) point[coordinate.path] = json_of(coordinate.value);
  Json background = Json::array();
  for (const auto& other : run.info.background) {
    background.push_back({{"name", other.name}, {"what", other.what}, {"gpus", other.gpus}});
  }
  Json speedup;
  if (metrics.speedup) {
    const Speedup& ratio = *metrics.speedup;
    speedup = Json{{"versus", ratio.versus}, {"mean", ratio.mean}, {"p5", ratio.p5}, {"p95", ratio.p95}};
  }
  const Percentiles& time = metrics.step_time_s;
  const BusyTimes& busy = metrics.busy;
  Json json{{"point", point},
            {"plan", run.info.plan},
            {"profile", run.info.profile},
            {"gpus", run.info.gpus},
            {"background", background},
            {"steps", metrics.steps},
            {"step_time_s", percentiles_json(time)},
            {"tokens_per_s", metrics.tokens_per_s},
            {"tokens_per_s_per_gpu", metrics.tokens_per_s_per_gpu},
            {"mfu", metrics.mfu},
            {"speedup", speedup},
            {"breakdown_s", breakdown_json(metrics.breakdown)},
            {"rank_busy_s",
             {{"min", seconds_of(busy.min)},
              {"mean", seconds_of(busy.mean)},
              {"max", seconds_of(busy.max)},
              {"std", seconds_of(busy.deviation)}}},
            {"capacity", run.info.capacity},
            {"memory_gb", memory_json(run)},
            {"connections", {{"peers", metrics.connections.peers}, {"groups", metrics.connections.groups}}},
            {"not_modelled", run.info.not_modelled},
            {"evidence", evidence_json(metrics.evidence)},
            {"events", metrics.events}};
  if (run.info.trace) json["trace"] = trace_json(*run.info.trace);
  if (metrics.goodput) json["goodput"] = goodput_json(*metrics.goodput);
  if (metrics.uncertainty) json["uncertainty"] = uncertainty_json(*metrics.uncertainty);
  return json;
}

}  // namespace

std::string result_json(const Value& study, std::string_view version, const std::vector<Run>& runs) {
  Json result = {
      {"schema", "hdpsim.result/1"}, {"hdpsim", version}, {"study", json_of(study)}, {"runs", Json::array()}};
  for (const Run& run : runs) result["runs"].push_back(run_json(run));
  return result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hdpsim
