#include "sim/run/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/document/record.h"

namespace hdpsim {

// Pairs of whole seconds and remaining picoseconds, because JSON has no numbers of 128 bits.
constexpr std::int64_t picoseconds_per_second = 1'000'000'000'000;

void to_json(Json& json, const DurationSum& sum) {
  json = {static_cast<std::int64_t>(sum.picoseconds() / picoseconds_per_second),
          static_cast<std::int64_t>(sum.picoseconds() % picoseconds_per_second)};
}

void from_json(const Json& json, DurationSum& sum) {
  const Int128 whole = json.at(0).get<std::int64_t>();
  sum = DurationSum::picoseconds(whole * picoseconds_per_second + json.at(1).get<std::int64_t>());
}

void to_json(Json& json, Bandwidth rate) {
  json = rate.bytes_per_second();
}

void from_json(const Json& json, Bandwidth& rate) {
  rate = Bandwidth::bytes_per_second(json.get<std::int64_t>());
}

template <class Tag>
void to_json(Json& json, Id<Tag> id) {
  json = id.index();
}

template <class Tag>
void from_json(const Json& json, Id<Tag>& id) {
  id = Id<Tag>(json.get<std::size_t>());
}

void to_json(Json& json, const Breakdown& breakdown) {
  json = Json::array();
  for (const Activity activity : all_activities) json.push_back(breakdown[activity]);
}

void from_json(const Json& json, Breakdown& breakdown) {
  for (const Activity activity : all_activities) json.at(index_of(activity)).get_to(breakdown[activity]);
}

void to_json(Json& json, const MemoryParts& parts) {
  json = Json::array();
  for (std::size_t i = 0; i < memory_parts; ++i) json.push_back(parts[static_cast<MemoryPart>(i)]);
}

void from_json(const Json& json, MemoryParts& parts) {
  for (std::size_t i = 0; i < memory_parts; ++i) json.at(i).get_to(parts[static_cast<MemoryPart>(i)]);
}

template <SameAs<MemoryUse> Self, class Visit>
void each_member(Self& memory, const Visit& visit) {
  visit("device", memory.device);
  visit("host", memory.host);
  visit("connections", memory.connections);
  visit("parts", memory.parts);
  visit("rank", memory.rank);
  visit("stage", memory.stage);
  visit("at_ps", memory.at);
}

template <SameAs<MemorySample> Self, class Visit>
void each_member(Self& sample, const Visit& visit) {
  visit("at_ps", sample.at);
  visit("device", sample.device);
  visit("host", sample.host);
}

template <SameAs<RankMemory> Self, class Visit>
void each_member(Self& memory, const Visit& visit) {
  visit("rank", memory.rank);
  visit("samples", memory.samples);
}

template <SameAs<StepMemory> Self, class Visit>
void each_member(Self& memory, const Visit& visit) {
  visit("step", memory.step);
  visit("ranks", memory.ranks);
}

template <SameAs<LoaderMemory> Self, class Visit>
void each_member(Self& memory, const Visit& visit) {
  visit("all", memory.all);
  visit("node", memory.node);
  visit("elsewhere", memory.elsewhere);
}

template <SameAs<LoaderUse> Self, class Visit>
void each_member(Self& use, const Visit& visit) {
  visit("loaders", use.loaders);
  visit("memory", use.memory);
  visit("connections", use.connections);
  visit("waited_for", use.waited_for);
}

template <SameAs<LoaderEvent> Self, class Visit>
void each_member(Self& event, const Visit& visit) {
  visit("kind", event.kind);
  visit("step", event.step);
  visit("at_s", event.at_s);
  visit("source", event.source);
  visit("loaders", event.loaders);
  visit("pause_ps", event.pause);
}

// But for `loading` and `loading_job`, from which the waits of a run are computed before it is kept.
template <SameAs<StepResult> Self, class Visit>
void each_member(Self& step, const Visit& visit) {
  visit("step", step.step);
  visit("sequences", step.sequences);
  visit("tokens", step.tokens);
  visit("micro_batches", step.micro_batches);
  visit("tokens_held", step.tokens_held);
  visit("model_flops", step.model_flops);
  visit("time_ps", step.time);
  visit("bound_ps", step.bound);
  visit("mean_ps", step.mean);
  visit("busy_min_ps", step.busy.min);
  visit("busy_mean_ps", step.busy.mean);
  visit("busy_max_ps", step.busy.max);
  visit("busy_deviation_ps", step.busy.deviation);
  visit("evidence", step.evidence);
  visit("peers", step.connections.peers);
  visit("groups", step.connections.groups);
  visit("memory", step.memory);
  visit("events", step.events);
  visit("slopes_ps", step.slopes);
  visit("slow_nodes_ps", step.slow_nodes);
  visit("routes_ps", step.routes);
  visit("fitted_ps", step.fitted);
  visit("loaders", step.loaders);
  visit("batch_s", step.phases.batch_s);
  visit("planner_s", step.phases.planner_s);
  visit("check_s", step.phases.check_s);
  visit("simulation_s", step.phases.simulation_s);
  visit("summary_s", step.phases.summary_s);
}

template <SameAs<LinkUse> Self, class Visit>
void each_member(Self& link, const Visit& visit) {
  visit("name", link.name);
  visit("rate", link.rate);
  visit("bytes", link.bytes);
  visit("utilisation", link.utilisation);
  visit("other_bytes", link.other_bytes);
  visit("other_utilisation", link.other_utilisation);
}

template <SameAs<Refusal> Self, class Visit>
void each_member(Self& refusal, const Visit& visit) {
  visit("step", refusal.step);
  visit("message", refusal.message);
  visit("help", refusal.help);
}

template <SameAs<RunResult> Self, class Visit>
void each_member(Self& run, const Visit& visit) {
  visit("steps", run.steps);
  visit("ranks_ps", run.ranks);
  visit("links", run.links);
  visit("memory", run.memory);
  visit("loader_events", run.loader_events);
  visit("refusal", run.refusal);
}

std::string run_identity(const Study& study, std::size_t run, std::string_view version) {
  const StudyPoint& point = study.points.at(run / study.plans.size());
  return fmt::format("hdpsim: {}\n{}memory_ranks: {}\nplan:\n{}", version, point.identity, study.output.memory_ranks,
                     study.plans[run % study.plans.size()].identity());
}

std::string run_text(const RunResult& result) {
  return record_text(result);
}

std::optional<RunResult> run_of_text(std::string_view text) {
  return record_of_text<RunResult>(text);
}

}  // namespace hdpsim
