#include "sim/network/collective_model.h"

#include <algorithm>
#include <set>

#include "sim/base/check.h"
#include "sim/network/impl/collective_choices.h"
#include "sim/network/impl/collective_plan_builder.h"

namespace hdpsim {
namespace {

// The devices of a stage, rank by rank.
std::vector<DeviceId> devices_of_stage(const Mesh& mesh, const Placement& placement, std::int64_t stage) {
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(mesh.hdp * mesh.tp));
  for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) {
    for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
      devices.push_back(placement.device(HdpRank(static_cast<std::size_t>(rank)), stage, shard));
    }
  }
  return devices;
}

// Adds the groups of `size` consecutive devices.
void add_groups(const std::vector<DeviceId>& devices, std::int64_t size, DeviceSets& groups) {
  const auto each = static_cast<std::ptrdiff_t>(size);
  for (auto first = devices.begin(); first != devices.end(); first += each) groups.emplace_back(first, first + each);
}

// Adds the devices of each place in these groups.
void add_places(const std::vector<DeviceId>& devices, std::int64_t size, DeviceSets& places) {
  const auto each = static_cast<std::size_t>(size);
  for (std::size_t place = 0; place < each; ++place) {
    std::vector<DeviceId>& same = places.emplace_back();
    for (std::size_t i = place; i < devices.size(); i += each) same.push_back(devices[i]);
  }
}

// Lines are made of large messages: those of rings, or in a node of switches that reduce, with the Simple protocol.
bool is_like_lines(const CollectiveTerms& way, const CollectiveSpan& span) {
  const bool is_nvls = span.nodes == 1 && way.algorithm == CollectiveAlgorithm::nvls;
  const bool is_plain = way.algorithm == CollectiveAlgorithm::ring || way.algorithm == CollectiveAlgorithm::direct;
  return way.protocol == Protocol::simple && (is_nvls || is_plain);
}

bool reduces_in_network(const CollectiveTerms& way, const CollectiveSpan& span) {
  return span.nodes > 1 && algorithms.at(static_cast<std::size_t>(way.algorithm)).in_network;
}

// What the line of a profile takes at least beyond what NCCL counts for the same algorithm. Lines are made of large
// messages, which fill NCCL's buffers first: one that is smaller than a buffer takes as much less.
double excess_of(const CollectiveTerms& line, const std::vector<CollectiveTerms>& ways, std::int64_t bytes) {
  static const double buffer = nccl::number("buffer_bytes");
  const auto same = std::find_if(ways.begin(), ways.end(), [&](const CollectiveTerms& way) {
    return way.algorithm == line.algorithm && way.protocol == Protocol::simple;
  });
  if (same == ways.end()) return 0;
  const Duration steps =
      line.steps_inside * line.links.nvlink_latency + line.steps_between * line.links.network_latency;
  const double excess = std::max(0.0, line.start_s + steps.seconds() - same->start_s);
  return excess * std::min(1.0, static_cast<double>(bytes) / buffer);
}

// The ways of the first basis that covers a collective, without measured curves.
std::vector<CollectiveTerms> ways_of(const CollectiveQuestion& question) {
  std::vector<CollectiveTerms> ways = nccl_ways(question, {});
  const std::optional<CollectiveTerms> line = profile_line(question);
  if (!line) return ways.empty() ? std::vector{closed_form(question)} : ways;
  const double excess = excess_of(*line, ways, question.bytes);
  std::erase_if(ways, [&](const CollectiveTerms& way) { return is_like_lines(way, question.span); });
  for (CollectiveTerms& way : ways) {
    if (reduces_in_network(way, question.span)) continue;
    way.start_s += excess;
    way.seconds_a_byte = std::max(way.seconds_a_byte, line->seconds_a_byte);
  }
  ways.insert(ways.begin(), *line);
  return ways;
}

// A link never exceeds its rate, however much faster a study makes collectives.
double slowed_share(double share, double factor) {
  return std::min(std::max(1.0, share), share / factor);
}

CollectiveTerms slowed(CollectiveTerms terms, double factor) {
  if (factor == 1) return terms;
  terms.start_s *= factor;
  terms.messages_s *= factor;
  terms.seconds_a_byte *= factor;
  terms.links.nvlink = slowed_share(terms.links.nvlink, factor);
  terms.links.network = slowed_share(terms.links.network, factor);
  terms.links.nvlink_latency = terms.links.nvlink_latency.scaled(factor);
  terms.links.network_latency = terms.links.network_latency.scaled(factor);
  return terms;
}

// The time before the links of the cluster are taken into account, which only makes it longer.
double least_seconds(const CollectiveTerms& terms, Bytes bytes) {
  return terms.start_s + std::max(static_cast<double>(bytes.count()) * terms.seconds_a_byte, terms.messages_s);
}

}  // namespace

DeviceSets pools(const Mesh& mesh, const Placement& placement) {
  DeviceSets all;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
      std::vector<DeviceId>& devices = all.emplace_back();
      for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) {
        devices.push_back(placement.device(HdpRank(static_cast<std::size_t>(rank)), stage, shard));
      }
    }
  }
  return all;
}

DeviceSets shard_groups(const DeviceSets& pools, std::int64_t devices) {
  DeviceSets groups;
  for (const auto& pool : pools) add_groups(pool, devices, groups);
  return groups;
}

DeviceSets shard_replicas(const DeviceSets& pools, std::int64_t devices) {
  DeviceSets all;
  for (const auto& pool : pools) add_places(pool, devices, all);
  return all;
}

DeviceSets expert_groups(const Mesh& mesh, const Placement& placement) {
  DeviceSets exchanging;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    DeviceSets groups;
    add_groups(devices_of_stage(mesh, placement, stage), mesh.experts().devices(), groups);
    for (const std::vector<DeviceId>& group : groups) add_places(group, mesh.etp, exchanging);
  }
  return exchanging;
}

DeviceSets expert_cuts(const Mesh& mesh, const Placement& placement) {
  DeviceSets groups;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    add_groups(devices_of_stage(mesh, placement, stage), mesh.etp, groups);
  }
  return groups;
}

DeviceSets expert_pools(const Mesh& mesh, const Placement& placement) {
  DeviceSets all;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    add_places(devices_of_stage(mesh, placement, stage), mesh.experts().devices(), all);
  }
  return all;
}

std::string_view collective_basis_name(CollectiveBasis basis) {
  constexpr std::array<std::string_view, 4> names = {"measured", "profile", "NCCL's model", "closed form"};
  return names.at(static_cast<std::size_t>(basis));
}

CollectiveSpan span_of(const ClusterSpec& cluster, const DeviceSets& sets) {
  HDPSIM_CHECK(!sets.empty() && !sets.front().empty(), "a collective of {} sets", sets.size());
  CollectiveSpan span;
  span.ranks = static_cast<std::int64_t>(sets.front().size());
  span.first = span.last = cluster.node_of(sets.front().front());
  for (const std::vector<DeviceId>& devices : sets) {
    HDPSIM_CHECK(devices.size() == sets.front().size(), "sets of {} and {} devices", sets.front().size(),
                 devices.size());
    if (devices.size() == 1) continue;
    const MembersByNode members(cluster, devices);
    span.nodes = std::max(span.nodes, static_cast<std::int64_t>(members.nodes()));
    span.is_even = span.is_even && members.is_even();
    for (std::size_t node = 0; node < members.nodes(); ++node) {
      span.in_node = std::max(span.in_node, static_cast<std::int64_t>(members.of(node).size()));
      span.first = std::min(span.first, cluster.node_of(members.of(node).front()));
      span.last = std::max(span.last, cluster.node_of(members.of(node).front()));
    }
  }
  return span;
}

CollectiveModel::CollectiveModel(const ClusterLinks& links, const DeviceProfile& profile, DeviceSets sets)
    : links_(links), profile_(profile), sets_(std::move(sets)), span_(span_of(links.cluster(), sets_)) {}

const CollectiveEstimate& CollectiveModel::estimate(CollectiveKind kind, Bytes bytes) const {
  Answers& answers = answers_.at(static_cast<std::size_t>(kind));
  if (answers.last != nullptr && answers.last->first == bytes.count()) return answers.last->second;
  const auto found = answers.of_bytes.find(bytes.count());
  if (found != answers.of_bytes.end()) {
    answers.last = &*found;
    return found->second;
  }
  CollectiveEstimate answer;
  if (span_.ranks > 1) answer = price(kind, bytes);
  answers.last = &*answers.of_bytes.emplace(bytes.count(), answer).first;
  return answers.last->second;
}

std::optional<CollectiveEstimate> CollectiveModel::estimate(CollectiveKind kind, Bytes bytes,
                                                            const NcclChoice& choice) const {
  if (choice.is_free()) return estimate(kind, bytes);
  const auto ways = nccl_ways({links_.cluster(), profile_, span_, kind, bytes.count()}, choice);
  return ways.empty() ? std::nullopt : std::optional(cheapest(kind, bytes, ways));
}

CollectiveEstimate CollectiveModel::price(CollectiveKind kind, Bytes bytes) const {
  const CollectiveQuestion question{links_.cluster(), profile_, span_, kind, bytes.count()};
  const std::optional<MeasuredSizes> sizes = measured_sizes(question);
  if (!sizes) return cheapest(kind, bytes, ways_of(question));
  const auto measured = [&](std::int64_t size) {
    return cheapest(kind, Bytes(size), {measured_curve({links_.cluster(), profile_, span_, kind, size})});
  };
  if (bytes.count() >= sizes->least && bytes.count() <= sizes->most) return measured(bytes.count());
  CollectiveEstimate answer = cheapest(kind, bytes, ways_of(question));
  const bool is_larger = bytes.count() > sizes->most;
  const CollectiveEstimate nearest = measured(is_larger ? sizes->most : sizes->least);
  if (is_larger && answer.time < nearest.time) {
    answer.latency_s += (nearest.time - answer.time).seconds();
    answer.time = nearest.time;
  } else if (!is_larger && answer.time > nearest.time) {
    answer.latency_s = nearest.time.seconds();
    answer.seconds_a_byte = 0;
    answer.time = nearest.time;
  }
  return answer;
}

// A way that could not be faster than the best so far, whatever the links, is not looked at: its flows may be many.
CollectiveEstimate CollectiveModel::cheapest(CollectiveKind kind, Bytes bytes,
                                             std::vector<CollectiveTerms> ways) const {
  HDPSIM_CHECK(!ways.empty(), "no way to price {}", collective_name(kind));
  for (CollectiveTerms& way : ways) way = slowed(way, profile_.factors[CostFamily::collectives]);
  std::stable_sort(ways.begin(), ways.end(), [&](const CollectiveTerms& a, const CollectiveTerms& b) {
    return least_seconds(a, bytes) < least_seconds(b, bytes);
  });
  CollectiveEstimate best = priced(kind, bytes, ways.front());
  for (std::size_t i = 1; i < ways.size() && least_seconds(ways[i], bytes) < best.time.seconds(); ++i) {
    const CollectiveEstimate other = priced(kind, bytes, ways[i]);
    if (other.time < best.time) best = other;
  }
  return best;
}

CollectiveEstimate CollectiveModel::priced(CollectiveKind kind, Bytes bytes, const CollectiveTerms& actual) const {
  const Flows& flows = flows_of(kind, actual.algorithm);
  const Duration steps = actual.steps_inside * (actual.links.nvlink_latency + flows.plan.hop_inside) +
                         actual.steps_between * (actual.links.network_latency + flows.plan.hop_between);
  const LinkEfficiency messages = message_efficiency(profile_);
  const double on_links =
      std::max(flows.fullest.inside_s / actual.links.nvlink, flows.fullest.between_s / actual.links.network);
  CollectiveEstimate answer{
      .time = {},
      .evidence = actual.evidence,
      .basis = actual.basis,
      .algorithm = actual.algorithm,
      .protocol = actual.protocol,
      .wire_bytes = actual.wire_bytes,
      .latency_s = actual.start_s + steps.seconds(),
      .seconds_a_byte = std::max(actual.seconds_a_byte, actual.wire_bytes * on_links),
      .as_messages = {messages.nvlink / actual.links.nvlink, messages.network / actual.links.network}};
  const double on_the_way = static_cast<double>(bytes.count()) * answer.seconds_a_byte;
  answer.latency_s += std::max(0.0, actual.messages_s - on_the_way);
  answer.time = Duration::seconds(answer.latency_s + on_the_way);
  return answer;
}

const CollectiveModel::Flows& CollectiveModel::flows_of(CollectiveKind kind, CollectiveAlgorithm algorithm) const {
  const auto found = flows_.find({kind, algorithm});
  if (found != flows_.end()) return found->second;
  std::vector<CollectivePlan> plans;
  plans.reserve(sets_.size());
  for (const std::vector<DeviceId>& devices : sets_) plans.push_back(plan_collective(links_, kind, algorithm, devices));
  Flows flows{together(plans), {}};
  flows.fullest = fullest_links(flows.plan, links_);
  return flows_.emplace(std::pair(kind, algorithm), std::move(flows)).first->second;
}

const CollectivePlan& CollectiveModel::plan(CollectiveKind kind, CollectiveAlgorithm algorithm) const {
  return flows_of(kind, algorithm).plan;
}

CollectivePlan CollectiveModel::flows(CollectiveKind kind, const CollectiveEstimate& estimate) const {
  if (span_.ranks == 1) return {};
  return with_overhead(flows_of(kind, estimate.algorithm).plan, estimate.wire_bytes);
}

}  // namespace hdpsim
