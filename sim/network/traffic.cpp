#include "sim/network/traffic.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/network/transfers.h"

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
  Transfer transfer{{}, bytes};
  transfer.links.reserve(route.link_count);
  for (const LinkId link : route.binding_links()) transfer.links.push_back(static_cast<FairShare::Link>(link.index()));
  return transfer;
}

FairShare network_of(const ClusterLinks& links) {
  std::vector<double> rates(links.count());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    rates[i] = static_cast<double>(links.rate(LinkId(i)).bytes_per_second());
  }
  return FairShare(std::move(rates));
}

void append_background(std::vector<Transfer>& transfers, const ClusterLinks& links,
                       const std::vector<Traffic>& background) {
  for (const Traffic& traffic : background) {
    for (const Message& message : messages_of(traffic)) {
      transfers.push_back(transfer(links.route(message.from, message.to), for_ever));
    }
  }
}

/// Messages on their way.
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

std::vector<double> arrivals_beside(const ClusterLinks& links, Underway&& messages,
                                    const std::vector<Traffic>& background) {
  append_background(messages.transfers, links, background);
  FairShare network = network_of(links);
  std::vector<double> ends = end_times(network, messages.transfers);
  ends.resize(messages.latencies_s.size());
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] += messages.latencies_s[i];
  return ends;
}

void count_bytes(std::vector<double>& bytes, const Route& route, double amount) {
  for (const LinkId link : route.binding_links()) bytes[link.index()] += amount;
}

std::vector<Bytes> whole_bytes(const std::vector<double>& bytes) {
  std::vector<Bytes> whole;
  whole.reserve(bytes.size());
  for (const double amount : bytes) whole.emplace_back(static_cast<std::int64_t>(amount));
  return whole;
}

/// What an all-to-all sends over each link. Between nodes the data of a rail's receivers travel together on that rail; in
/// a node they go to the device of the rail first, so that every pair of its devices carries what g x nodes devices send.
class AllToAll {
 public:
  AllToAll(const ClusterLinks& links, const ClusterSpec& cluster, const Traffic& traffic)
      : links_(links),
        traffic_(traffic),
        per_node_(std::min(cluster.devices_per_node, traffic.devices)),
        nics_(std::min(cluster.nics_per_node, per_node_)),
        nodes_(traffic.devices / per_node_),
        bytes_(links.count()) {
    HDPSIM_CHECK(traffic.devices % per_node_ == 0 && per_node_ % nics_ == 0,
                 "an all-to-all of {} devices in nodes of {}", traffic.devices, per_node_);
  }

  std::vector<double> link_bytes() {
    for (std::int64_t node = 0; node < nodes_; ++node) in_node(node);
    for (std::int64_t from = 0; from < nodes_; ++from) {
      for (std::int64_t to = 0; to < nodes_; ++to) {
        if (from != to) between(from, to);
      }
    }
    return std::move(bytes_);
  }

 private:
  [[nodiscard]] DeviceId device(std::int64_t node, std::int64_t local) const {
    return DeviceId(static_cast<std::size_t>(traffic_.first + node * per_node_ + local));
  }
  void in_node(std::int64_t node) {
    for (std::int64_t i = 0; i < per_node_; ++i) {
      for (std::int64_t j = 0; j < per_node_; ++j) {
        if (i == j) continue;
        count_bytes(bytes_, links_.route(device(node, i), device(node, j)),
                    traffic_.bytes * static_cast<double>(nodes_));
      }
    }
  }
  void between(std::int64_t from, std::int64_t to) {
    const std::int64_t per_nic = per_node_ / nics_;
    for (std::int64_t nic = 0; nic < nics_; ++nic) {
      const Route route = links_.route(device(from, nic * per_nic), device(to, nic * per_nic));
      count_bytes(bytes_, route, traffic_.bytes * static_cast<double>(per_node_ * per_nic));
    }
  }

  const ClusterLinks& links_;
  const Traffic& traffic_;
  std::int64_t per_node_;
  std::int64_t nics_;
  std::int64_t nodes_;
  std::vector<double> bytes_;
};

TrafficResult simulate_all_to_all(const ClusterLinks& links, const Traffic& traffic,
                                  const std::vector<Traffic>& background) {
  const std::vector<double> bytes = AllToAll(links, links.cluster(), traffic).link_bytes();
  FairShare network = network_of(links);
  std::vector<Transfer> others;
  append_background(others, links, background);
  for (const Transfer& other : others) (void)network.add(other.links, for_ever);
  double seconds = 0;
  for (std::size_t link = 0; link < bytes.size(); ++link) {
    if (bytes[link] == 0) continue;
    // At least half: the fair share beside one other.
    const double capacity = network.capacity(static_cast<FairShare::Link>(link));
    const double left = std::max(capacity - network.load(static_cast<FairShare::Link>(link)), capacity / 2);
    seconds = std::max(seconds, bytes[link] / left);
  }
  const std::int64_t n = traffic.devices;
  return {n * (n - 1), seconds, seconds, seconds, whole_bytes(bytes), {}};
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
  return arrivals_beside(links, underway(links, messages), {});
}

TrafficResult simulate_traffic(const ClusterLinks& links, const Traffic& traffic,
                               const std::vector<Traffic>& background) {
  if (traffic.pattern == TrafficPattern::all_to_all) return simulate_all_to_all(links, traffic, background);
  Underway messages = underway(links, messages_of(traffic));
  std::vector<double> bytes(links.count());
  for (const Transfer& transfer : messages.transfers) {
    for (const FairShare::Link link : transfer.links) bytes[link] += transfer.bytes;
  }
  std::vector<double> arrivals = arrivals_beside(links, std::move(messages), background);
  const auto [first, last] = std::minmax_element(arrivals.begin(), arrivals.end());
  const double mean = std::accumulate(arrivals.begin(), arrivals.end(), 0.0) / static_cast<double>(arrivals.size());
  return {static_cast<std::int64_t>(arrivals.size()), *first, mean, *last, whole_bytes(bytes), std::move(arrivals)};
}

double network_share(const ClusterLinks& links, std::int64_t devices, const std::vector<Traffic>& background) {
  const std::int64_t per_node = links.cluster().devices_per_node;
  if (background.empty() || devices <= per_node) return 1;
  FairShare network = network_of(links);
  std::vector<Transfer> others;
  append_background(others, links, background);
  for (const Transfer& other : others) (void)network.add(other.links, for_ever);
  struct Hop {
    FairShare::Variable flow;
    double alone;
  };
  std::vector<Hop> hops;
  const std::int64_t per_nic = links.cluster().devices_per_nic();
  for (std::int64_t device = 0; device < devices; device += per_nic) {
    const Route route = links.route(DeviceId(static_cast<std::size_t>(device)),
                                    DeviceId(static_cast<std::size_t>((device + per_node) % devices)));
    const Transfer hop = transfer(route, for_ever);
    hops.push_back({network.add(hop.links, for_ever), static_cast<double>(route.alone.bytes_per_second())});
  }
  double share = 1;
  for (const Hop& hop : hops) share = std::min(share, network.rate(hop.flow) / hop.alone);
  return share;
}

}  // namespace hdpsim
