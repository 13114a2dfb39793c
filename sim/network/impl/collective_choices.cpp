#include "sim/network/impl/collective_choices.h"

#include <algorithm>
#include <string>
#include <variant>

#include "sim/base/check.h"
#include "sim/cluster/device_facts.h"
#include "sim/cost/fitted_transfer.h"
#include "sim/network/impl/nccl_model.h"

namespace hdpsim {
namespace {

/// A line of a profile, of a collective or of send/recv.
struct Line {
  double start_s = 0;
  Duration step;
  double efficiency = 1;
};

const std::optional<CollectiveRate>* collective_of(const LinkProfile& link, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return &link.all_reduce;
    case CollectiveKind::all_gather:
      return &link.all_gather;
    case CollectiveKind::reduce_scatter:
      return &link.reduce_scatter;
    case CollectiveKind::all_to_all:
      return &link.all_to_all;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_recv:
      break;
  }
  return nullptr;
}

std::optional<Line> line_for(const std::optional<LinkProfile>& link, CollectiveKind kind) {
  if (!link) return std::nullopt;
  if (kind == CollectiveKind::send_recv) {
    if (!link->send_recv) return std::nullopt;
    return Line{link->send_recv->latency.seconds(), {}, link->send_recv->efficiency()};
  }
  const std::optional<CollectiveRate>* rate = collective_of(*link, kind);
  if (rate == nullptr || !*rate) return std::nullopt;
  return Line{(*rate)->latency.seconds(), (*rate)->step_latency, (*rate)->efficiency()};
}

// Where a line of all-reduces is that of switches that reduce: a ring without them has the rate of its second half.
double efficiency_of_ring(const std::optional<LinkProfile>& link) {
  const std::optional<Line> half = line_for(link, CollectiveKind::all_gather);
  return half ? std::min(1.0, half->efficiency) : 1.0;
}

// A broadcast is a ring like an all-gather, and has no line of its own.
double share_of_ring(const std::optional<LinkProfile>& link, CollectiveKind kind, double of_messages) {
  const bool is_broadcast = kind == CollectiveKind::broadcast;
  const std::optional<Line> line = line_for(link, is_broadcast ? CollectiveKind::all_gather : kind);
  if (!line) return of_messages;
  return line->efficiency > 1 ? efficiency_of_ring(link) : line->efficiency;
}

// The rate is that of NVLink or of the NICs, whichever is lower; where the devices of a node divide the data, all NICs
// of the node together.
double rate_of(const CollectiveQuestion& question, const Line& inside, const Line& between) {
  const CollectiveSpan& span = question.span;
  const DeviceRates rates = device_rates(question);
  const bool divides_data = plain_algorithm(question.kind) == CollectiveAlgorithm::ring;
  const auto in_node = static_cast<double>(span.in_node);
  const double over_network = rates.between * between.efficiency * (divides_data ? in_node : 1);
  const double in_nodes = rates.inside * inside.efficiency;
  if (span.nodes == 1) return in_nodes;
  return span.in_node > 1 ? std::min(in_nodes, over_network) : over_network;
}

std::optional<MessageKind> message_kind(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return MessageKind::all_reduce;
    case CollectiveKind::all_gather:
      return MessageKind::all_gather;
    case CollectiveKind::reduce_scatter:
      return MessageKind::reduce_scatter;
    case CollectiveKind::all_to_all:
      return MessageKind::all_to_all;
    case CollectiveKind::send_recv:
      return MessageKind::send_recv;
    case CollectiveKind::broadcast:
      break;
  }
  return std::nullopt;
}

// If the fit is a curve, the latency is that of the smallest messages.
double latency_s(const MessageFit& fit, double seconds) {
  if (fit.curve) return fit.curve->latency.seconds();
  for (const MessageLine& line : fit.lines) seconds = std::min(seconds, line.latency.seconds());
  return seconds;
}

bool is_sample(const DeviceProfile& profile, const MessageFit& fit, std::int64_t bytes) {
  return std::any_of(profile.samples.messages.begin(), profile.samples.messages.end(), [&](const MessageSample& one) {
    return one.link == fit.link && one.kind == fit.kind && one.ranks == fit.ranks && one.bytes.count() == bytes;
  });
}

// Null: none was measured.
const MessageFit* fit_of(const CollectiveQuestion& question) {
  const std::optional<MessageKind> kind = message_kind(question.kind);
  if (!kind || question.profile.provenance.device != question.cluster.device) return nullptr;
  const LinkKind link = question.span.nodes > 1 ? LinkKind::network : LinkKind::nvlink;
  return message_fit(question.profile.fits, link, *kind, question.span.ranks);
}

bool has_switches(const ClusterSpec& cluster) {
  return !std::holds_alternative<TorusSpec>(cluster.fabric);
}

NcclGroup group_of(const CollectiveQuestion& question, const LinkEfficiency& efficiency) {
  const ClusterSpec& cluster = question.cluster;
  const DeviceRates rates = device_rates(question);
  return {.ranks = question.span.ranks,
          .nodes = question.span.nodes,
          .is_even = question.span.is_even,
          .nvlink_bytes_per_s = rates.inside * efficiency.nvlink,
          .network_bytes_per_s = rates.between * efficiency.network,
          .has_nvlink = cluster.has_nvlink(),
          .compute_capability = cluster.compute_capability,
          .has_amd_hosts = cluster.cpu == HostCpu::amd,
          .in_network_reduction = cluster.in_network_reduction && has_switches(cluster),
          .channels = cluster.nics_per_node};
}

}  // namespace

void count_ring_steps(const CollectiveQuestion& question, CollectiveTerms& terms) {
  const std::int64_t passes = question.kind == CollectiveKind::all_reduce ? 2 : 1;
  terms.steps_inside = passes * (question.span.ranks - question.span.nodes);
  terms.steps_between = passes * (question.span.nodes - 1);
}

DeviceRates device_rates(const CollectiveQuestion& question) {
  const ClusterSpec& cluster = question.cluster;
  const NodeId first = question.span.first;
  const NodeId last = question.span.last;
  const Bandwidth inside = cluster.has_nvlink() ? cluster.slowest_nvlink(first, last) : cluster.pcie;
  const auto nic = static_cast<double>(cluster.slowest_nic(first, last).bytes_per_second());
  return {static_cast<double>(inside.bytes_per_second()), nic / static_cast<double>(cluster.devices_per_nic())};
}

// A ring of n passes its data around in n - 1 steps, each of which starts a message and moves 1/n of the data over
// every link: the least traffic possible (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", J. Parallel Distrib. Comput. 69, 2009). The links alone set its rate.
CollectiveTerms closed_form(const CollectiveQuestion& question) {
  CollectiveTerms terms;
  terms.algorithm = plain_algorithm(question.kind);
  terms.links = message_efficiency(question.profile);
  if (terms.algorithm == CollectiveAlgorithm::ring) {
    count_ring_steps(question, terms);
  } else {
    terms.steps_inside = question.span.in_node > 1 ? 1 : 0;
    terms.steps_between = question.span.nodes > 1 ? 1 : 0;
  }
  return terms;
}

LinkEfficiency ring_efficiency(const CollectiveQuestion& question) {
  const LinkEfficiency messages = message_efficiency(question.profile);
  return {.nvlink = share_of_ring(question.profile.nvlink, question.kind, messages.nvlink),
          .network = share_of_ring(question.profile.network, question.kind, messages.network)};
}

// Steps inside nodes cost what the line of NVLink says, those between nodes what the line of the network says; the
// slower of the two sets the rate. Bus bandwidth is that of a ring; only switches that reduce themselves (NVLS) exceed
// the rate of the link, as they send less.
std::optional<CollectiveTerms> profile_line(const CollectiveQuestion& question) {
  const std::optional<Line> nvlink = line_for(question.profile.nvlink, question.kind);
  const std::optional<Line> network = line_for(question.profile.network, question.kind);
  const bool spans_nodes = question.span.nodes > 1;
  const std::optional<Line>& main = spans_nodes ? network : nvlink;
  if (!main) return std::nullopt;
  Line inside = nvlink.value_or(Line{});
  const Line between = network.value_or(Line{});
  CollectiveTerms terms;
  terms.basis = CollectiveBasis::profile;
  terms.evidence = Evidence::extrapolated;
  const bool is_nvls = !spans_nodes && question.span.ranks > 2 && main->efficiency > 1 &&
                       question.kind == CollectiveKind::all_reduce && question.cluster.has_nvlink();
  terms.algorithm = is_nvls ? CollectiveAlgorithm::nvls : plain_algorithm(question.kind);
  if (!is_nvls && inside.efficiency > 1) inside.efficiency = efficiency_of_ring(question.profile.nvlink);
  terms.start_s = main->start_s;
  if (question.kind != CollectiveKind::send_recv) count_ring_steps(question, terms);
  terms.links = {.nvlink = std::min(1.0, inside.efficiency),
                 .network = std::min(1.0, between.efficiency),
                 .nvlink_latency = inside.step,
                 .network_latency = between.step};
  terms.seconds_a_byte = bus_factor(question.kind, question.span.ranks) / rate_of(question, inside, between);
  return terms;
}

std::optional<MeasuredSizes> measured_sizes(const CollectiveQuestion& question) {
  const MessageFit* fit = fit_of(question);
  if (fit == nullptr) return std::nullopt;
  return MeasuredSizes{fit->least.count(), fit->most.count()};
}

CollectiveTerms measured_curve(const CollectiveQuestion& question) {
  const MessageFit* fit = fit_of(question);
  HDPSIM_CHECK(fit != nullptr, "no curve of {} was measured", collective_name(question.kind));
  const double seconds = fitted_seconds(*fit, static_cast<double>(question.bytes));
  CollectiveTerms terms;
  terms.basis = CollectiveBasis::measured;
  terms.evidence = is_sample(question.profile, *fit, question.bytes) ? Evidence::measured : Evidence::interpolated;
  terms.algorithm = plain_algorithm(question.kind);
  terms.start_s = latency_s(*fit, seconds);
  terms.seconds_a_byte = (seconds - terms.start_s) / static_cast<double>(question.bytes);
  return terms;
}

std::string why_no_in_network_reduction(const ClusterSpec& cluster) {
  const std::string left_out = "left out is in_network_reduction: ";
  if (!cluster.in_network_reduction) return {};
  if (!has_switches(cluster)) return left_out + "no switches join the nodes of a torus";
  if (cluster.compute_capability == unknown_capability) return left_out + "NCCL does not run on " + cluster.device;
  return {};
}

namespace {

// NCCL chooses a broadcast's protocol as if its chunks had one hop to go. The last rank of the ring has the first chunk
// when that has passed all others. Leaves the way that NCCL takes, with this latency.
void fill_the_ring(const NcclGroup& group, std::int64_t bytes, std::vector<CollectiveTerms>& ways) {
  const auto seconds = [&](const CollectiveTerms& way) {
    return way.start_s + static_cast<double>(bytes) * way.seconds_a_byte;
  };
  const auto fastest =
      std::min_element(ways.begin(), ways.end(), [&](const auto& a, const auto& b) { return seconds(a) < seconds(b); });
  if (fastest == ways.end()) return;
  CollectiveTerms chosen = *fastest;
  chosen.start_s = broadcast_latency_s(group, chosen.protocol);
  ways.assign(1, chosen);
}

}  // namespace

std::vector<CollectiveTerms> nccl_ways(const CollectiveQuestion& question, const NcclChoice& choice) {
  if (question.cluster.compute_capability == unknown_capability) return {};
  const LinkEfficiency efficiency = ring_efficiency(question);  // without latencies: NCCL's model has its own
  const NcclGroup group = group_of(question, efficiency);
  std::vector<CollectiveTerms> all;
  for (const CollectiveTime& way : nccl_ways(group, question.kind, question.bytes)) {
    const bool is_allowed = way.algorithm == choice.algorithm.value_or(way.algorithm) &&
                            way.protocol == choice.protocol.value_or(way.protocol);
    if (!is_allowed) continue;
    CollectiveTerms& terms = all.emplace_back();
    terms.basis = CollectiveBasis::nccl_model;
    terms.algorithm = way.algorithm;
    terms.protocol = way.protocol;
    terms.wire_bytes = wire_bytes(way.protocol);
    terms.start_s = way.latency_s;
    terms.messages_s = way.messages_s;
    terms.links = efficiency;
    terms.seconds_a_byte = 1 / way.bytes_per_s;
  }
  if (question.kind == CollectiveKind::broadcast) fill_the_ring(group, question.bytes, all);
  return all;
}

}  // namespace hdpsim
