#include <algorithm>

#include "sim/network/impl/collective_choices.h"

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

}  // namespace

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

}  // namespace hdpsim
