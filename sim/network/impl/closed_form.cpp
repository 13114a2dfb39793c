#include "sim/network/impl/collective_choices.h"

namespace hdpsim {

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

}  // namespace hdpsim
