#include "sim/study/outsize.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/model/parameters.h"
#include "sim/model/work.h"
#include "sim/study/problems.h"

namespace hdpsim {
namespace {

// Generous values for each quantity: with all of them, a step takes minutes.
constexpr std::int64_t usual_context = 2 << 20;
constexpr std::int64_t usual_tokens_per_device = 64 << 10;
constexpr std::int64_t usual_capacity = 1 << 20;
constexpr double usual_parameters = 1e12;
constexpr auto usual_link = 1_GBps;
constexpr auto usual_peak = 1_TFLOPs;
constexpr auto usual_latency = 10_us;
constexpr auto usual_overhead = 1_s;
constexpr double usual_token_bytes = 1e4;

struct Suspect {
  std::string key;
  double times;
};

double slower(Bandwidth rate, Bandwidth usual) {
  if (rate == Bandwidth{}) return 0;  // no such link
  return static_cast<double>(usual.bytes_per_second()) / static_cast<double>(rate.bytes_per_second());
}

double longer(Duration time, Duration usual) {
  return time.seconds() / usual.seconds();
}

// The slowest link and the longest latency of a fabric that is no tiers, under its key.
std::vector<Suspect> fabric_suspects(const FabricSpec& fabric) {
  const auto both = [](const std::string& key, Bandwidth slowest, Duration longest) {
    return std::vector<Suspect>{{key, std::max(slower(slowest, usual_link), longer(longest, usual_latency))}};
  };
  if (const auto* torus = std::get_if<TorusSpec>(&fabric)) {
    return both("cluster.torus", torus->bandwidth, torus->latency);
  }
  if (const auto* dragonfly = std::get_if<DragonflySpec>(&fabric)) {
    return both("cluster.dragonfly", std::min(dragonfly->local, dragonfly->global),
                std::max(dragonfly->latency, dragonfly->global_latency));
  }
  const auto* graph = std::get_if<SwitchGraphSpec>(&fabric);
  if (graph == nullptr || graph->cables.empty()) return {};
  const auto is_slower = [](const auto& a, const auto& b) { return a.bandwidth < b.bandwidth; };
  Duration longest;
  for (const SwitchGraphSpec::Switch& each : graph->switches) longest = std::max(longest, each.latency);
  return both("cluster.graph", std::min_element(graph->cables.begin(), graph->cables.end(), is_slower)->bandwidth,
              longest);
}

std::vector<Suspect> loading_suspects(const LoadingSpec& loading) {
  constexpr double usual_rate = 1e6;  // tokens that a process prepares
  constexpr double usual_access = 1e12;
  constexpr auto usual_sample = 1_ms;
  const double rate = loading.tokens_per_s.value_or(usual_rate);
  double slowest_source = 0;
  for (const SourceSpec& source : loading.sources) {
    slowest_source = std::max(
        {slowest_source, longer(source.sample, usual_sample), usual_rate / source.tokens_per_s.value_or(usual_rate),
         static_cast<double>(source.bytes_per_token.value_or(loading.bytes_per_token).count()) / usual_token_bytes,
         static_cast<double>(source.access.count()) / usual_access});
  }
  return {{"loading.bytes_per_token", static_cast<double>(loading.bytes_per_token.count()) / usual_token_bytes},
          {"loading.storage", slower(loading.storage.value_or(usual_link), usual_link)},
          {"loading.network", slower(loading.network.value_or(usual_link), usual_link)},
          {"loading.tokens_per_s", rate > 0 ? usual_rate / rate : 0},
          {"loading.planner", longer(loading.planner, usual_overhead)},
          {"loading.planner_sample", longer(loading.planner_sample, usual_sample)},
          {"loading.planner_compare", longer(loading.planner_compare, usual_sample)},
          {"loading.connection", longer(loading.connection, usual_overhead)},
          {"loading.sources", slowest_source},
          {"loading.deaths", loading.deaths ? longer(loading.deaths->restart, 600 * usual_overhead) : 0}};
}

std::vector<Suspect> suspects_of(const PointSpec& spec) {
  const ClusterSpec& cluster = spec.cluster;
  const DeviceProfile& profile = *spec.profile;
  double slowest = 1;
  for (const auto& [device, speed] : cluster.speed) slowest = std::min(slowest, speed);
  double slowest_kind = 1;
  for (const NodeKind& kind : cluster.kinds) slowest_kind = std::min(slowest_kind, kind.speed);
  double least_share = 1;
  for (const DegradedLink& link : cluster.degraded) {
    if (link.factor > 0) least_share = std::min(least_share, link.factor);
  }
  Duration latency;
  for (const SwitchTier& tier : cluster.tiers) latency = std::max(latency, tier.latency);
  double slowdown = 1;
  for (const Fault& fault : spec.conditions.faults) slowdown = std::max(slowdown, fault.slowdown);
  const auto tokens = static_cast<double>(spec.batch.tokens_per_step);
  const auto devices = static_cast<double>(spec.mesh.devices());
  std::vector<Suspect> all = {
      {"data.context", static_cast<double>(spec.batch.context) / usual_context},
      {"data.tokens_per_step", tokens / (usual_tokens_per_device * devices)},
      {"mesh.capacity", static_cast<double>(spec.capacity) / usual_capacity},
      {"model", static_cast<double>(parameter_count(spec.model)) / usual_parameters},
      {"cluster.speed", 1 / slowest},
      {"cluster.node_kinds", 1 / slowest_kind},
      {"cluster.links", 1 / least_share},
      {"cluster.tiers", longer(latency, usual_latency)},
      {"cluster.node.nics.bandwidth", slower(cluster.nic, usual_link)},
      {"cluster.node.nvlink.bandwidth", slower(cluster.nvlink, usual_link)},
      {"cluster.node.nvlink.latency", longer(cluster.nvlink_latency, usual_latency)},
      {"cluster.node.pcie.bandwidth", slower(cluster.pcie, usual_link)},
      {"faults", slowdown},
      {"overheads.per_step", longer(profile.overheads.per_step.time, usual_overhead)},
      {"overheads.per_micro_batch", longer(profile.overheads.per_micro_batch.time, usual_overhead)},
      {"profile", usual_peak.per_second() / profile.datasheet.peak.per_second()}};
  const auto add = [&](const std::vector<Suspect>& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(fabric_suspects(cluster.fabric));
  if (spec.loading) add(loading_suspects(*spec.loading));
  return all;
}

// The position of the last value on the path that the study has.
Position place_on_path(const Value& study, std::string_view key) {
  const Value* at = &study;
  while (!key.empty() && at->is_map()) {
    const std::size_t dot = std::min(key.find('.'), key.size());
    const Value* next = at->find(key.substr(0, dot));
    if (next == nullptr) break;
    at = next;
    key.remove_prefix(std::min(dot + 1, key.size()));
  }
  return at->position;
}

}  // namespace

Diagnostic Outsize::problem(std::string_view something, std::string_view why) const {
  std::string help = "are its sizes, rates and times those that were meant?";
  if (times > 1) {
    const std::string many = times < 10 ? fmt::format("{:.1f}", times) : fmt::format("{:.0f}", times);
    help = fmt::format("'{}' is {} times what is usual: is that what was meant?", key, many);
  }
  return {.position = position, .message = fmt::format("{}: {}", something, why), .help = std::move(help)};
}

void Outsize::fail(std::string_view something, std::string_view why) const {
  Diagnostics found;
  found.add(problem(something, why));
  Problems(found).throw_if_any({});
  throw InputError(found);
}

Outsize outsize_of(const Value& study, const PointSpec& spec) {
  const std::vector<Suspect> suspects = suspects_of(spec);
  const Suspect& worst = *std::max_element(suspects.begin(), suspects.end(),
                                           [](const Suspect& a, const Suspect& b) { return a.times < b.times; });
  return {.position = place_on_path(study, worst.key), .key = worst.key, .times = worst.times};
}

}  // namespace hdpsim
