#include "sim/network/collective_pace.h"

#include <algorithm>

#include "sim/network/impl/algorithms.h"

namespace hdpsim {
namespace {

constexpr std::size_t named_links = 3;
constexpr double rounding = 1e-9;

// The links that limit the slowest of the first `own` transfers when all begin. None if only their caps do.
std::vector<LinkId> slowest_links(FairShare& network, const std::vector<Transfer>& transfers, std::size_t own) {
  std::vector<FairShare::Variable> flows;
  flows.reserve(transfers.size());
  for (const Transfer& transfer : transfers) {
    flows.push_back(transfer.loads.empty() ? network.add(transfer.links, transfer.cap)
                                           : network.add_coupled(transfer.loads, transfer.cap));
  }
  flows.resize(own);
  double slowest = network.rate(flows.front());
  for (const FairShare::Variable flow : flows) slowest = std::min(slowest, network.rate(flow));
  std::vector<LinkId> found;
  for (const FairShare::Variable flow : flows) {
    const auto link = network.bottleneck(flow);
    if (link && network.rate(flow) <= slowest * (1 + rounding)) found.emplace_back(*link);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

CollectivePace::CollectivePace(const ClusterLinks& links, std::vector<DeviceId> devices,
                               const std::vector<Traffic>& background)
    : links_(links), devices_(std::move(devices)), background_(endless_transfers(links, background)) {}

const CollectivePlan& CollectivePace::plan(CollectiveKind kind, CollectiveAlgorithm algorithm) {
  const auto found = plans_.find({kind, algorithm});
  if (found != plans_.end()) return found->second;
  // Parts that end sooner make room for others only if there is other traffic. For `direct`, one part per message would
  // be too many.
  const bool in_parts = !background_.empty() && algorithm != CollectiveAlgorithm::direct;
  CollectivePlan plan =
      plan_collective(links_, kind, algorithm, devices_, in_parts ? PlanGrain::parts : PlanGrain::whole);
  return plans_.emplace(std::pair(kind, algorithm), std::move(plan)).first->second;
}

const CollectivePace::Pace& CollectivePace::pace(CollectiveKind kind, const CollectiveEstimate& alone) {
  const Key key{kind, alone.algorithm, alone.wire_bytes, alone.seconds_a_byte};
  const auto found = paces_.find(key);
  if (found != paces_.end()) return found->second;
  const CollectivePlan on_wire = with_overhead(plan(kind, alone.algorithm), alone.wire_bytes);
  return paces_.emplace(key, found_pace(on_wire, alone.seconds_a_byte)).first->second;
}

// Times are proportional to the bytes, because all other traffic never ends.
CollectivePace::Pace CollectivePace::found_pace(const CollectivePlan& on_wire, double alone_seconds_a_byte) const {
  constexpr double sample = 1e9;
  Pace pace{.seconds_a_byte = alone_seconds_a_byte, .bottleneck = {}};
  if (!background_.empty()) {
    std::vector<Transfer> transfers = transfers_of(on_wire, sample, 1 / alone_seconds_a_byte);
    const std::size_t own = transfers.size();
    transfers.insert(transfers.end(), background_.begin(), background_.end());
    FairShare network = idle_network(links_);
    const std::vector<double> ends = end_times(network, transfers);
    pace.seconds_a_byte = *std::max_element(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(own)) / sample;
    pace.bottleneck = named({.used = 1, .links = slowest_links(network, transfers, own)});
  }
  if (pace.bottleneck.links == 0) pace.bottleneck = named(fullest(on_wire, pace.seconds_a_byte));
  return pace;
}

CollectivePace::UsedLinks CollectivePace::fullest(const CollectivePlan& plan, double seconds_a_byte) const {
  const std::vector<double> bytes = link_bytes(plan, links_.count());
  const auto used = [&](std::size_t link) {
    return bytes[link] / seconds_a_byte / static_cast<double>(links_.rate(LinkId(link)).bytes_per_second());
  };
  UsedLinks fullest;
  for (std::size_t link = 0; link < bytes.size(); ++link) {
    if (bytes[link] > 0) fullest.used = std::max(fullest.used, used(link));
  }
  for (std::size_t link = 0; link < bytes.size(); ++link) {
    if (bytes[link] > 0 && used(link) >= fullest.used * (1 - rounding)) fullest.links.emplace_back(link);
  }
  return fullest;
}

Bottleneck CollectivePace::named(const UsedLinks& used) const {
  Bottleneck bottleneck{.used = used.used, .links = static_cast<std::int64_t>(used.links.size()), .first = {}};
  for (std::size_t i = 0; i < std::min(named_links, used.links.size()); ++i) {
    bottleneck.first.push_back(links_.name(used.links[i]));
  }
  return bottleneck;
}

}  // namespace hdpsim
