#include "sim/run/run_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/atomic_file.h"
#include "sim/base/seal.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

constexpr std::int64_t picoseconds_per_second = 1'000'000'000'000;
constexpr std::string_view schema = "hdpsim.run/10";

template <std::size_t count>
Json durations_json(const std::array<Duration, count>& times) {
  Json json = Json::array();
  for (const Duration time : times) json.push_back(time.picoseconds());
  return json;
}

template <std::size_t count>
std::array<Duration, count> durations_of(const Json& json) {
  std::array<Duration, count> times{};
  for (std::size_t i = 0; i < count; ++i) times[i] = Duration::picoseconds(json.at(i).get<std::int64_t>());
  return times;
}

Json changes_json(const std::vector<Duration>& changes) {
  Json json = Json::array();
  for (const Duration change : changes) json.push_back(change.picoseconds());
  return json;
}

std::vector<Duration> changes_of(const Json& json) {
  std::vector<Duration> changes;
  for (const Json& change : json) changes.push_back(Duration::picoseconds(change.get<std::int64_t>()));
  return changes;
}

Json breakdown_json(const Breakdown& breakdown) {
  Json json = Json::array();
  for (const Activity activity : all_activities) json.push_back(breakdown[activity].picoseconds());
  return json;
}

Breakdown breakdown_of(const Json& json) {
  Breakdown breakdown;
  const auto times = durations_of<activity_count>(json);
  for (const Activity activity : all_activities) breakdown[activity] = times[index_of(activity)];
  return breakdown;
}

// Pairs of whole seconds and remaining picoseconds, because JSON has no numbers of 128 bits.
Json evidence_json(const EvidenceSums& sums) {
  Json json = Json::array();
  for (const DurationSum& sum : sums) {
    json.push_back({static_cast<std::int64_t>(sum.picoseconds() / picoseconds_per_second),
                    static_cast<std::int64_t>(sum.picoseconds() % picoseconds_per_second)});
  }
  return json;
}

EvidenceSums evidence_of(const Json& json) {
  EvidenceSums sums;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Int128 whole = json.at(i).at(0).get<std::int64_t>();
    sums[i] = DurationSum::picoseconds(whole * picoseconds_per_second + json.at(i).at(1).get<std::int64_t>());
  }
  return sums;
}

Bytes bytes_of(const Json& json) {
  return Bytes(json.get<std::int64_t>());
}

Json memory_json(const MemoryUse& memory) {
  Json parts = Json::array();
  for (std::size_t i = 0; i < memory_parts; ++i) parts.push_back(memory.parts[static_cast<MemoryPart>(i)].count());
  return {{"device", memory.device.count()},
          {"host", memory.host.count()},
          {"connections", memory.connections ? Json(memory.connections->count()) : Json()},
          {"parts", parts},
          {"rank", memory.rank.index()},
          {"stage", memory.stage},
          {"at_ps", memory.at.picoseconds()}};
}

MemoryUse memory_of(const Json& json) {
  MemoryUse memory{bytes_of(json.at("device")), bytes_of(json.at("host"))};
  if (!json.at("connections").is_null()) memory.connections = bytes_of(json.at("connections"));
  for (std::size_t i = 0; i < memory_parts; ++i)
    memory.parts[static_cast<MemoryPart>(i)] = bytes_of(json.at("parts").at(i));
  memory.rank = HdpRank(json.at("rank").get<std::size_t>());
  memory.stage = json.at("stage");
  memory.at = Duration::picoseconds(json.at("at_ps"));
  return memory;
}

Json step_memory_json(const StepMemory& memory) {
  Json ranks = Json::array();
  for (const RankMemory& rank : memory.ranks) {
    Json samples = Json::array();
    for (const MemorySample& sample : rank.samples) {
      samples.push_back({sample.at.picoseconds(), sample.device.count(), sample.host.count()});
    }
    ranks.push_back({{"rank", rank.rank.index()}, {"samples", samples}});
  }
  return {{"step", memory.step}, {"ranks", ranks}};
}

StepMemory step_memory_of(const Json& json) {
  StepMemory memory{json.at("step"), {}};
  for (const Json& rank : json.at("ranks")) {
    RankMemory& kept = memory.ranks.emplace_back();
    kept.rank = HdpRank(rank.at("rank").get<std::size_t>());
    for (const Json& sample : rank.at("samples")) {
      kept.samples.push_back({Duration::picoseconds(sample.at(0)), bytes_of(sample.at(1)), bytes_of(sample.at(2))});
    }
  }
  return memory;
}

Json step_json(const StepResult& step) {
  const BusyTimes& busy = step.busy;
  return {{"step", step.step},
          {"sequences", step.sequences},
          {"tokens", step.tokens},
          {"micro_batches", step.micro_batches},
          {"tokens_held", step.tokens_held},
          {"model_flops", step.model_flops},
          {"time_ps", step.time.picoseconds()},
          {"bound_ps", step.bound.picoseconds()},
          {"mean_ps", breakdown_json(step.mean)},
          {"busy_ps", durations_json(std::array{busy.min, busy.mean, busy.max, busy.deviation})},
          {"evidence", evidence_json(step.evidence)},
          {"connections", {step.connections.peers, step.connections.groups}},
          {"memory", memory_json(step.memory)},
          {"events", step.events},
          {"slopes_ps", changes_json(step.slopes)},
          {"slow_nodes_ps", changes_json(step.slow_nodes)},
          {"routes_ps", changes_json(step.routes)},
          {"fitted_ps", changes_json(step.fitted)},
          {"phases_s",
           {step.phases.batch_s, step.phases.planner_s, step.phases.check_s, step.phases.simulation_s,
            step.phases.summary_s}}};
}

StepResult step_of(const Json& json) {
  StepResult step;
  step.step = json.at("step");
  step.sequences = json.at("sequences");
  step.tokens = json.at("tokens");
  step.micro_batches = json.at("micro_batches");
  step.tokens_held = json.at("tokens_held");
  step.model_flops = json.at("model_flops");
  step.time = Duration::picoseconds(json.at("time_ps").get<std::int64_t>());
  step.bound = Duration::picoseconds(json.at("bound_ps").get<std::int64_t>());
  step.mean = breakdown_of(json.at("mean_ps"));
  const auto busy = durations_of<4>(json.at("busy_ps"));
  step.busy = {busy[0], busy[1], busy[2], busy[3]};
  step.evidence = evidence_of(json.at("evidence"));
  step.connections = {json.at("connections").at(0), json.at("connections").at(1)};
  step.memory = memory_of(json.at("memory"));
  step.events = json.at("events");
  step.slopes = changes_of(json.at("slopes_ps"));
  step.slow_nodes = changes_of(json.at("slow_nodes_ps"));
  step.routes = changes_of(json.at("routes_ps"));
  step.fitted = changes_of(json.at("fitted_ps"));
  const Json& phases = json.at("phases_s");
  step.phases = {phases.at(0), phases.at(1), phases.at(2), phases.at(3), phases.at(4)};
  return step;
}

Json refusal_json(const std::optional<Refusal>& refusal) {
  if (!refusal) return {};
  return {{"step", refusal->step}, {"message", refusal->message}, {"help", refusal->help}};
}

std::optional<Refusal> refusal_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return Refusal{json.at("step"), json.at("message"), json.at("help")};
}

Json link_json(const LinkUse& link) {
  return {{"name", link.name},
          {"rate", link.rate.bytes_per_second()},
          {"bytes", link.bytes.count()},
          {"utilisation", link.utilisation},
          {"other_bytes", link.other_bytes.count()},
          {"other_utilisation", link.other_utilisation}};
}

LinkUse link_of(const Json& json) {
  return {json.at("name"),
          Bandwidth::bytes_per_second(json.at("rate").get<std::int64_t>()),
          Bytes(json.at("bytes").get<std::int64_t>()),
          json.at("utilisation"),
          Bytes(json.at("other_bytes").get<std::int64_t>()),
          json.at("other_utilisation")};
}

// The owner is empty because a run itself says what it depends on.
Seal run_seal() {
  return Seal("");
}

// The object of a text; empty if the text was changed since it was made.
std::optional<std::string> object_of(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  return run_seal().opened(text.substr(0, text.size() - 1));
}

}  // namespace

std::string run_identity(const Study& study, std::size_t run, std::string_view version) {
  const StudyPoint& point = study.points.at(run / study.plans.size());
  return fmt::format("hdpsim: {}\n{}memory_ranks: {}\nplan:\n{}", version, point.identity, study.output.memory_ranks,
                     study.plans[run % study.plans.size()].identity());
}

std::string run_text(std::string_view identity, const RunResult& result) {
  Json json = {{"schema", schema},
               {"identity", identity},
               {"steps", Json::array()},
               {"ranks_ps", Json::array()},
               {"links", Json::array()},
               {"memory", step_memory_json(result.memory)},
               {"refusal", refusal_json(result.refusal)}};
  for (const StepResult& step : result.steps) json["steps"].push_back(step_json(step));
  for (const Breakdown& rank : result.ranks) json["ranks_ps"].push_back(breakdown_json(rank));
  for (const LinkUse& link : result.links) json["links"].push_back(link_json(link));
  return run_seal().closed(json_line(json));
}

std::optional<RunResult> run_of_text(std::string_view identity, std::string_view text) {
  const std::optional<std::string> object = object_of(text);
  if (!object) return std::nullopt;
  const Json json = parsed_json(*object);
  RunResult result;
  try {
    if (json.at("schema") != schema || json.at("identity") != identity) return std::nullopt;
    for (const Json& step : json.at("steps")) result.steps.push_back(step_of(step));
    for (const Json& rank : json.at("ranks_ps")) result.ranks.push_back(breakdown_of(rank));
    for (const Json& link : json.at("links")) result.links.push_back(link_of(link));
    result.memory = step_memory_of(json.at("memory"));
    result.refusal = refusal_of(json.at("refusal"));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return result;
}

std::filesystem::path RunStore::file_of(std::string_view identity) const {
  const std::uint64_t first = fingerprint(identity);
  return folder_ / fmt::format("{:016x}{:016x}.json", first, fingerprint(identity, first));
}

std::optional<RunResult> RunStore::load(std::string_view identity, const TellDamage& tell) const {
  const std::filesystem::path path = file_of(identity);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string text = text_of_kept(path);
  auto result = run_of_text(identity, text);
  if (!result) {
    const bool whole = object_of(text).has_value();
    tell({{path.string(), 1, 1},
          whole ? "this is another run" : "this run is damaged, or was kept by a version without checksums",
          {}});
  }
  return result;
}

void RunStore::save(std::string_view identity, const RunResult& result) const {
  if (!saves_) return;
  const std::filesystem::path file = file_of(identity);
  if (output_ != nullptr) (void)output_->file((folder_.filename() / file.filename()).string());
  write_file(file, run_text(identity, result));
}

}  // namespace hdpsim
