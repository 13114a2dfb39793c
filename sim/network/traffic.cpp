#include "sim/network/traffic.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/network/collective_plan.h"
#include "sim/network/impl/algorithms.h"

namespace hdpsim {
namespace {

constexpr std::array<std::string_view, 5> names = {"permutation", "incast", "all_to_all", "ring", "bisection"};
constexpr double for_ever = std::numeric_limits<double>::infinity();

std::vector<Message> permutation(const Traffic& traffic) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(traffic.devices));
  std::iota(order.begin(), order.end(), traffic.first);
  RandomStream random(traffic.seed, "permutation");
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  std::vector<Message> messages;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto device = [&](std::size_t place) {
      return DeviceId(static_cast<std::size_t>(order[place % order.size()]));
    };
    messages.push_back({device(i), device(i + 1), traffic.bytes});
  }
  return messages;
}

Transfer transfer(const Route& route, double bytes) {
  const auto used = route.binding_links();
  const auto is_whole = [](const RouteLink& one) { return one.share == 1; };
  Transfer transfer{{}, bytes};
  if (std::all_of(used.begin(), used.end(), is_whole)) {
    for (const RouteLink& one : used) transfer.links.push_back(static_cast<FairShare::Link>(one.link.index()));
  } else {
    for (const auto& [link, share] : used) {
      transfer.loads.push_back({static_cast<FairShare::Link>(link.index()), share});
    }
  }
  return transfer;
}

CollectivePlan all_to_all_plan(const ClusterLinks& links, const Traffic& traffic) {
  return plan_collective(links, CollectiveKind::all_to_all, CollectiveAlgorithm::direct,
                         consecutive_devices(traffic.first, traffic.devices));
}

/// Messages under way.
struct Underway {
  std::vector<Transfer> transfers;
  std::vector<double> latencies_s;
};

Underway underway(const ClusterLinks& links, std::span<const Message> messages) {
  Underway result;
  result.transfers.reserve(messages.size());
  result.latencies_s.reserve(messages.size());
  for (const Message& message : messages) {
    const Route route = links.route(message.from, message.to);
    result.transfers.push_back(transfer(route, message.bytes));
    result.latencies_s.push_back(route.latency.seconds());
  }
  return result;
}

std::vector<double> arrivals_with(const ClusterLinks& links, Underway&& messages,
                                  const std::vector<Traffic>& background) {
  const std::vector<Transfer> others = endless_transfers(links, background);
  messages.transfers.insert(messages.transfers.end(), others.begin(), others.end());
  FairShare network = idle_network(links);
  std::vector<double> ends = end_times(network, messages.transfers);
  ends.resize(messages.latencies_s.size());
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] += messages.latencies_s[i];
  return ends;
}

LinkTraffic messages_on_links(const std::vector<double>& bytes) {
  LinkTraffic traffic(bytes.size());
  for (std::size_t link = 0; link < bytes.size(); ++link) {
    traffic.add(LinkId(link), Bytes(static_cast<std::int64_t>(bytes[link])));
  }
  return traffic;
}

TrafficResult simulate_all_to_all(const ClusterLinks& links, const Traffic& traffic,
                                  const std::vector<Traffic>& background) {
  const CollectivePlan plan = all_to_all_plan(links, traffic);
  const std::int64_t n = traffic.devices;
  const double size = traffic.bytes * static_cast<double>(n);  // data of each device for all, itself included
  double seconds = size * seconds_a_byte(plan, links);
  if (!background.empty()) {
    std::vector<Transfer> transfers = transfers_of(plan, size);
    const std::vector<Transfer> others = endless_transfers(links, background);
    transfers.insert(transfers.end(), others.begin(), others.end());
    FairShare network = idle_network(links);
    seconds = end_times(network, transfers).front();
  }
  seconds += plan.latency.seconds();
  std::vector<double> bytes = link_bytes(plan, links.count());
  for (double& amount : bytes) amount *= size;
  return {n * (n - 1), seconds, seconds, seconds, messages_on_links(bytes), {}};
}

}  // namespace

std::vector<std::string> traffic_pattern_names() {
  return {names.begin(), names.end()};
}

TrafficPattern traffic_pattern(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  HDPSIM_CHECK(found != names.end(), "there is no traffic pattern '{}'", name);
  return static_cast<TrafficPattern>(found - names.begin());
}

std::vector<Message> messages_of(const Traffic& traffic) {
  const auto n = static_cast<std::size_t>(traffic.devices);
  HDPSIM_CHECK(n >= 2, "traffic among {} devices", n);
  std::vector<Message> messages;
  const auto send = [&](std::size_t from, std::size_t to) {
    const auto first = static_cast<std::size_t>(traffic.first);
    messages.push_back({DeviceId(first + from), DeviceId(first + to), traffic.bytes});
  };
  const std::size_t even = n / 2 * 2;
  switch (traffic.pattern) {
    case TrafficPattern::permutation:
      return permutation(traffic);
    case TrafficPattern::incast:
      for (std::size_t i = 1; i < n; ++i) send(i, 0);
      break;
    case TrafficPattern::ring:
      for (std::size_t i = 0; i < n; ++i) send(i, (i + 1) % n);
      break;
    case TrafficPattern::bisection:
      for (std::size_t i = 0; i < even; ++i) send(i, (i + even / 2) % even);
      break;
    case TrafficPattern::all_to_all:
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
          if (i != j) send(i, j);
        }
      }
      break;
  }
  return messages;
}

std::vector<double> arrival_times(const ClusterLinks& links, std::span<const Message> messages) {
  return arrivals_with(links, underway(links, messages), {});
}

std::vector<Transfer> endless_transfers(const ClusterLinks& links, const std::vector<Traffic>& background) {
  std::vector<Transfer> transfers;
  for (const Traffic& traffic : background) {
    if (traffic.pattern == TrafficPattern::all_to_all) {
      const std::vector<Transfer> parts = transfers_of(all_to_all_plan(links, traffic), for_ever);
      transfers.insert(transfers.end(), parts.begin(), parts.end());
      continue;
    }
    for (const Message& message : messages_of(traffic)) {
      transfers.push_back(transfer(links.route(message.from, message.to), for_ever));
    }
  }
  return transfers;
}

FairShare idle_network(const ClusterLinks& links) {
  std::vector<double> rates(links.count());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    rates[i] = static_cast<double>(links.rate(LinkId(i)).bytes_per_second());
  }
  return FairShare(std::move(rates));
}

TrafficResult simulate_traffic(const ClusterLinks& links, const Traffic& traffic,
                               const std::vector<Traffic>& background) {
  if (traffic.pattern == TrafficPattern::all_to_all) return simulate_all_to_all(links, traffic, background);
  Underway messages = underway(links, messages_of(traffic));
  std::vector<double> bytes(links.count());
  for (const Transfer& transfer : messages.transfers) {
    for (const FairShare::Link link : transfer.links) bytes[link] += transfer.bytes;
    for (const FairShare::Load& load : transfer.loads) bytes[load.link] += load.flows * transfer.bytes;
  }
  std::vector<double> arrivals = arrivals_with(links, std::move(messages), background);
  const auto [first, last] = std::minmax_element(arrivals.begin(), arrivals.end());
  const double mean = std::accumulate(arrivals.begin(), arrivals.end(), 0.0) / static_cast<double>(arrivals.size());
  return {
      static_cast<std::int64_t>(arrivals.size()), *first, mean, *last, messages_on_links(bytes), std::move(arrivals)};
}

double bisection_rate(const ClusterLinks& links) {
  FairShare network = idle_network(links);
  std::vector<FairShare::Variable> flows;
  const Traffic traffic{.pattern = TrafficPattern::bisection, .devices = links.cluster().devices};
  for (const Message& message : messages_of(traffic)) {
    const Transfer one = transfer(links.route(message.from, message.to), for_ever);
    flows.push_back(one.loads.empty() ? network.add(one.links, for_ever) : network.add_coupled(one.loads, for_ever));
  }
  double sum = 0;
  for (const FairShare::Variable flow : flows) sum += network.rate(flow);
  return sum;
}

}  // namespace hdpsim
