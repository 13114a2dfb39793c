#include "sim/app/comm_collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/diagnostic.h"
#include "sim/cost/fitted_transfer.h"
#include "sim/network/link_efficiency.h"
#include "sim/network/profile_collective.h"

namespace hdpsim::app {
namespace {

constexpr std::size_t named_links = 3;
constexpr double rounding = 1e-9;

double bytes_per_second(Bandwidth rate) {
  return static_cast<double>(rate.bytes_per_second());
}

std::int64_t whole_nodes(const ClusterSpec& cluster, std::int64_t ranks) {
  const std::int64_t per_node = std::min(ranks, cluster.devices_per_node);
  if (ranks % per_node != 0) {
    throw InputError(fmt::format("{} gpus are not a whole number of nodes of {}", ranks, per_node),
                     fmt::format("write -g {}", ranks / per_node * per_node));
  }
  return ranks / per_node;
}

NcclGroup group_of(const ClusterSpec& cluster, const LinkEfficiency& efficiency, std::int64_t ranks) {
  const std::int64_t nodes = whole_nodes(cluster, ranks);
  const NodeId first(0);
  const NodeId last(static_cast<std::size_t>(nodes - 1));
  const Bandwidth inside = cluster.has_nvlink() ? cluster.slowest_nvlink(first, last) : cluster.pcie;
  const double nic =
      bytes_per_second(cluster.slowest_nic(first, last)) / static_cast<double>(cluster.devices_per_nic());
  return {.ranks = ranks,
          .nodes = nodes,
          .nvlink_bytes_per_s = bytes_per_second(inside) * efficiency.nvlink,
          .network_bytes_per_s = nic * efficiency.network,
          .has_nvlink = cluster.has_nvlink(),
          .compute_capability = cluster.compute_capability,
          .has_amd_hosts = cluster.cpu == HostCpu::amd,
          .in_network_reduction = cluster.in_network_reduction,
          .channels = cluster.nics_per_node};
}

LinkEfficiency message_efficiency_of(const std::optional<DeviceProfile>& profile) {
  LinkEfficiency efficiency = profile ? message_efficiency(*profile) : LinkEfficiency{};
  efficiency.nvlink_latency = efficiency.network_latency = {};  // NCCL's model and the profile's lines have their own
  return efficiency;
}

const std::map<CollectiveKind, MessageKind>& measured_kinds() {
  static const std::map<CollectiveKind, MessageKind> kinds{
      {CollectiveKind::all_reduce, MessageKind::all_reduce},
      {CollectiveKind::all_gather, MessageKind::all_gather},
      {CollectiveKind::reduce_scatter, MessageKind::reduce_scatter},
      {CollectiveKind::all_to_all, MessageKind::all_to_all},
      {CollectiveKind::send_recv, MessageKind::send_recv}};
  return kinds;
}

// Where the fit is a curve its latency is that of the smallest messages.
CollectiveTime time_of(const MessageFit& fit, std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  CollectiveTime time;
  time.seconds = fitted_seconds(fit, size);
  time.latency_s = fit.curve ? fit.curve->latency.seconds() : time.seconds;
  for (const MessageLine& line : fit.lines) {
    if (!fit.curve) time.latency_s = std::min(time.latency_s, line.latency.seconds());
  }
  time.bytes_per_s = size / std::max(time.seconds - time.latency_s, 1e-12);
  return time;
}

}  // namespace

CommCollective::CommCollective(const ClusterSpec& cluster, const std::optional<DeviceProfile>& profile,
                               CollectiveKind kind, std::int64_t ranks, const std::vector<Traffic>& background)
    : profile_(profile),
      is_device_of_profile_(profile && profile->provenance.device == cluster.device),
      kind_(kind),
      ranks_(ranks),
      nodes_(whole_nodes(cluster, ranks)),
      physical_(group_of(cluster, {}, ranks)),
      group_(group_of(cluster, message_efficiency_of(profile), ranks)),
      links_(cluster, {}),
      background_(endless_transfers(links_, background)) {}

CollectiveTime CommCollective::nccl_way(std::int64_t bytes, const NcclChoice& choice) const {
  std::vector<CollectiveTime> ways = NcclModel(group_).ways(kind_, bytes);
  std::erase_if(ways, [&](const CollectiveTime& way) {
    return (!choice.algorithm.empty() && algorithm_name(way.algorithm) != choice.algorithm) ||
           (!choice.protocol.empty() && protocol_name(way.protocol) != choice.protocol);
  });
  if (ways.empty()) throw InputError(fmt::format("{} has no such algorithm and protocol here", collective_name(kind_)));
  return *std::min_element(ways.begin(), ways.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; });
}

std::optional<CollectiveTime> CommCollective::measured(std::int64_t bytes) const {
  const auto kind = measured_kinds().find(kind_);
  if (!is_device_of_profile_ || kind == measured_kinds().end()) return std::nullopt;
  const LinkKind link = nodes_ > 1 ? LinkKind::network : LinkKind::nvlink;
  for (const MessageFit& fit : profile_->fits.messages) {
    const bool is_in_range = Bytes(bytes) >= fit.least && Bytes(bytes) <= fit.most;
    if (fit.link == link && fit.kind == kind->second && fit.ranks == ranks_ && is_in_range) return time_of(fit, bytes);
  }
  return std::nullopt;
}

CommRow CommCollective::row(std::int64_t bytes, const NcclChoice& choice) {
  CommRow row{.bytes = bytes, .time = nccl_way(bytes, choice), .measured_s = {}};
  const bool is_free = choice.algorithm.empty() && choice.protocol.empty();
  const auto take = [&](const std::optional<CollectiveTime>& time, CommBasis basis) {
    if (!time || !is_free || row.basis != CommBasis::nccl_model) return;
    row.time.latency_s = time->latency_s;
    row.time.bytes_per_s = time->bytes_per_s;
    row.basis = basis;
  };
  take(measured(bytes), CommBasis::measured);
  if (profile_) take(profiled_collective(*profile_, physical_, kind_, bytes), CommBasis::profile);
  // A rate that was measured has the protocol's flags in it.
  const double overhead = row.basis == CommBasis::nccl_model ? wire_bytes(row.time.protocol) : 1;
  const Pace& found = pace({row.time.algorithm, overhead, row.time.bytes_per_s});
  row.time.seconds = row.time.latency_s + static_cast<double>(bytes) * found.seconds_a_byte;
  row.bottleneck = found.bottleneck;
  return row;
}

const CollectivePlan& CommCollective::plan(CollectiveAlgorithm algorithm) {
  const auto found = plans_.find(algorithm);
  if (found != plans_.end()) return found->second;
  // Who ends sooner makes room for the others only where there are any. A part a message would be too many.
  const bool in_parts = !background_.empty() && algorithm != CollectiveAlgorithm::direct;
  const auto devices = consecutive_devices(0, ranks_);
  return plans_
      .emplace(algorithm,
               plan_collective(links_, kind_, algorithm, devices, in_parts ? PlanGrain::parts : PlanGrain::whole))
      .first->second;
}

// Times are proportional to the bytes: all other traffic goes on for ever.
const CommCollective::Pace& CommCollective::pace(const PaceKey& key) {
  const auto found = paces_.find(key);
  if (found != paces_.end()) return found->second;
  constexpr double sample = 1e9;
  const CollectivePlan on_wire = with_overhead(plan(key.algorithm), key.wire_bytes);
  Pace pace;
  if (background_.empty()) {
    pace.seconds_a_byte = std::max(1 / key.most, seconds_a_byte(on_wire, links_));
  } else {
    std::vector<Transfer> transfers = transfers_of(on_wire, sample, key.most);
    const std::size_t own = transfers.size();
    transfers.insert(transfers.end(), background_.begin(), background_.end());
    FairShare network = idle_network(links_);
    const std::vector<double> ends = end_times(network, transfers);
    pace.seconds_a_byte = *std::max_element(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(own)) / sample;
    pace.bottleneck = named(slowest_links(network, transfers, own));
  }
  if (pace.bottleneck.links == 0) pace.bottleneck = named(fullest_links(on_wire, pace.seconds_a_byte));
  return paces_.emplace(key, std::move(pace)).first->second;
}

CommCollective::UsedLinks CommCollective::fullest_links(const CollectivePlan& plan, double seconds_a_byte) const {
  const std::vector<double> bytes = link_bytes(plan, links_.count());
  const auto used = [&](std::size_t link) {
    return bytes[link] / seconds_a_byte / bytes_per_second(links_.rate(LinkId(link)));
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

// The links that hold back the slowest of the first `own` transfers when all begin. None where nothing but their cap
// does.
CommCollective::UsedLinks CommCollective::slowest_links(FairShare& network, const std::vector<Transfer>& transfers,
                                                        std::size_t own) {
  std::vector<FairShare::Variable> flows;
  flows.reserve(transfers.size());
  for (const Transfer& transfer : transfers) {
    flows.push_back(transfer.loads.empty() ? network.add(transfer.links, transfer.cap)
                                           : network.add_coupled(transfer.loads, transfer.cap));
  }
  flows.resize(own);
  double slowest = network.rate(flows.front());
  for (const FairShare::Variable flow : flows) slowest = std::min(slowest, network.rate(flow));
  UsedLinks found{.used = 1, .links = {}};
  for (const FairShare::Variable flow : flows) {
    const auto link = network.bottleneck(flow);
    if (link && network.rate(flow) <= slowest * (1 + rounding)) found.links.emplace_back(*link);
  }
  std::sort(found.links.begin(), found.links.end());
  found.links.erase(std::unique(found.links.begin(), found.links.end()), found.links.end());
  return found;
}

Bottleneck CommCollective::named(const UsedLinks& used) const {
  Bottleneck bottleneck{.used = used.used, .links = static_cast<std::int64_t>(used.links.size()), .first = {}};
  for (std::size_t i = 0; i < std::min(named_links, used.links.size()); ++i) {
    bottleneck.first.push_back(links_.name(used.links[i]));
  }
  return bottleneck;
}

}  // namespace hdpsim::app
