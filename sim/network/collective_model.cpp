#include "sim/network/collective_model.h"

#include <algorithm>
#include <set>

#include "sim/base/check.h"
#include "sim/network/impl/collective_choices.h"
#include "sim/network/impl/members_by_node.h"

namespace hdpsim {
namespace {

/// The first basis that covers a collective, in the order of CollectiveModel, and what may be faster instead.
struct Candidates {
  CollectiveTerms first;
  std::optional<CollectiveTerms> other{};
};

// Lines are made of large messages: those of rings, or in a node of switches that reduce, with the Simple protocol.
bool is_like_lines(const CollectiveTerms& way, const CollectiveSpan& span) {
  const bool is_nvls = span.nodes == 1 && way.algorithm == CollectiveAlgorithm::nvls;
  const bool is_plain = way.algorithm == CollectiveAlgorithm::ring || way.algorithm == CollectiveAlgorithm::direct;
  return way.protocol == Protocol::simple && (is_nvls || is_plain);
}

Candidates candidates_of(const CollectiveQuestion& question) {
  if (const auto terms = measured_curve(question)) return {*terms};
  if (const auto terms = in_network_way(question)) return {*terms};
  const std::optional<CollectiveTerms> line = profile_line(question);
  std::optional<CollectiveTerms> way = nccl_way(question, {});
  if (!line) return {way ? *way : closed_form(question)};
  if (!way || is_like_lines(*way, question.span)) return {*line};
  way->seconds_a_byte = std::max(way->seconds_a_byte, line->seconds_a_byte);
  return {*line, way};
}

// A link never exceeds its rate, however much faster a study makes collectives.
double slowed_share(double share, double factor) {
  return std::min(std::max(1.0, share), share / factor);
}

CollectiveTerms slowed(CollectiveTerms terms, double factor) {
  if (factor == 1) return terms;
  terms.start_s *= factor;
  terms.seconds_a_byte *= factor;
  terms.links.nvlink = slowed_share(terms.links.nvlink, factor);
  terms.links.network = slowed_share(terms.links.network, factor);
  terms.links.nvlink_latency = terms.links.nvlink_latency.scaled(factor);
  terms.links.network_latency = terms.links.network_latency.scaled(factor);
  return terms;
}

}  // namespace

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
  if (span_.ranks > 1) {
    const Candidates candidates = candidates_of({links_.cluster(), profile_, span_, kind, bytes.count()});
    answer = priced(kind, bytes, candidates.first);
    if (candidates.other) {
      const CollectiveEstimate other = priced(kind, bytes, *candidates.other);
      if (other.time < answer.time) answer = other;
    }
  }
  answers.last = &*answers.of_bytes.emplace(bytes.count(), answer).first;
  return answers.last->second;
}

std::optional<CollectiveEstimate> CollectiveModel::estimate(CollectiveKind kind, Bytes bytes,
                                                            const NcclChoice& choice) const {
  if (choice.is_free()) return estimate(kind, bytes);
  const auto terms = nccl_way({links_.cluster(), profile_, span_, kind, bytes.count()}, choice);
  return terms ? std::optional(priced(kind, bytes, *terms)) : std::nullopt;
}

CollectiveEstimate CollectiveModel::priced(CollectiveKind kind, Bytes bytes, const CollectiveTerms& terms) const {
  const CollectiveTerms actual = slowed(terms, profile_.factors[CostFamily::collectives]);
  const Flows& flows = flows_of(kind, actual.algorithm);
  const Duration steps = actual.steps_inside * (actual.links.nvlink_latency + flows.plan.hop_inside) +
                         actual.steps_between * (actual.links.network_latency + flows.plan.hop_between);
  const double on_links =
      std::max(flows.fullest.inside_s / actual.links.nvlink, flows.fullest.between_s / actual.links.network);
  CollectiveEstimate answer{.time = {},
                            .evidence = actual.evidence,
                            .basis = actual.basis,
                            .algorithm = actual.algorithm,
                            .protocol = actual.protocol,
                            .wire_bytes = actual.wire_bytes,
                            .latency_s = actual.start_s + steps.seconds(),
                            .seconds_a_byte = std::max(actual.seconds_a_byte, actual.wire_bytes * on_links)};
  answer.time = Duration::seconds(answer.latency_s + static_cast<double>(bytes.count()) * answer.seconds_a_byte);
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

CollectivePlan CollectiveModel::flows(CollectiveKind kind, const CollectiveEstimate& estimate) const {
  if (span_.ranks == 1) return {};
  return with_overhead(flows_of(kind, estimate.algorithm).plan, estimate.wire_bytes);
}

}  // namespace hdpsim
