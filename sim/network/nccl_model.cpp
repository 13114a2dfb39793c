#include "sim/network/nccl_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr double microsecond = 1e-6;
constexpr double gigabyte = 1e9;

using ByProtocol = std::array<double, 3>;  // LL, LL128, Simple

std::size_t index_of(Protocol protocol) {
  return static_cast<std::size_t>(protocol);
}

// All in microseconds.
constexpr ByProtocol ring_base = {6.6, 14.0, 8.4};
constexpr ByProtocol tree_base = {6.8, 14.0, 8.4};
constexpr ByProtocol pat_base = {8.0, 8.0, 8.0};
constexpr ByProtocol ring_nvlink = {0.6, 1.9, 3.4};
constexpr ByProtocol tree_nvlink = {0.6, 1.25, 4.0};
constexpr ByProtocol over_pcie = {1.0, 2.5, 5.7};
constexpr ByProtocol ring_network = {2.7, 4.0, 14.0};
constexpr ByProtocol tree_network = {5.0, 8.5, 14.0};
constexpr double nvls_latency = 25;

// What LL carries at most, by nodes (1, 2, more), for sm_80 and from sm_90 on. B/s.
constexpr std::array<std::array<double, 3>, 2> most_of_ll = {{{87.7e9, 22.5e9, 19.0e9}, {141.0e9, 45.0e9, 35.0e9}}};
constexpr double ll_share = 0.5;
constexpr double ll128_share = 0.92;
constexpr double tree_share = 0.92;
constexpr double tree_ll_share = 1 / 3.8;
constexpr double tree_ll128_share_in_node = 7.0 / 9;
constexpr double tree_ll128_share = 120.0 / 128;
constexpr double nvls_share = 0.85;
constexpr double nvls_algorithm_share = 5.0 / 6;
constexpr double ring_plateau = 1.4;

// How much of its rate a tree reaches by size, from 64 B on, one entry a doubling.
constexpr std::array<std::array<double, 24>, 3> tree_correction = {
    {{1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0, 1.0},
     {1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1.0, 1.0, 1.0},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};

double correction_of_tree(Protocol protocol, double bytes) {
  const auto size = static_cast<std::uint64_t>(bytes);
  const int doublings = static_cast<int>(std::bit_width(size >> 6U)) - 1;
  return doublings < 0 || doublings >= 24 ? 1.0
                                          : tree_correction[index_of(protocol)][static_cast<std::size_t>(doublings)];
}

}  // namespace

std::string_view protocol_name(Protocol protocol) {
  constexpr std::array<std::string_view, 3> names = {"ll", "ll128", "simple"};
  return names.at(index_of(protocol));
}

std::vector<CollectiveTime> NcclModel::ways(CollectiveKind kind, std::int64_t bytes) const {
  HDPSIM_CHECK(group_.ranks > 1 && group_.nodes > 0 && group_.ranks % group_.nodes == 0, "{} ranks on {} nodes",
               group_.ranks, group_.nodes);
  const auto size = static_cast<double>(bytes);
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv) return {direct(kind, size)};
  constexpr std::array protocols = {Protocol::ll, Protocol::ll128, Protocol::simple};
  std::vector<CollectiveTime> ways;
  for (const Protocol protocol : protocols) {
    // LL128 needs stores of 128 bytes to arrive whole: NVLink alone promises that.
    if (protocol != Protocol::ll128 || group_.has_nvlink) ways.push_back(ring(kind, protocol, size));
  }
  if (kind == CollectiveKind::all_reduce) {
    for (const Protocol protocol : protocols) {
      if (protocol != Protocol::ll128 || group_.has_nvlink) ways.push_back(tree(protocol, size));
    }
    const bool in_switch = group_.has_nvlink && group_.compute_capability >= 90 && group_.ranks / group_.nodes > 2;
    if (in_switch && group_.nodes == 1) ways.push_back(nvls(size));
  } else if (kind != CollectiveKind::broadcast && group_.nodes == group_.ranks) {
    ways.push_back(pat(size));  // NCCL has it for one rank a node
  }
  return ways;
}

CollectiveTime NcclModel::best(CollectiveKind kind, std::int64_t bytes) const {
  const std::vector<CollectiveTime> all = ways(kind, bytes);
  return *std::min_element(all.begin(), all.end(),
                           [](const CollectiveTime& a, const CollectiveTime& b) { return a.seconds < b.seconds; });
}

// All rings together: each passes every device of a node by NVLink and leaves the node by another NIC.
double NcclModel::link_rate() const {
  if (group_.nodes == 1) return group_.nvlink_bytes_per_s;
  const double of_node = group_.network_bytes_per_s * static_cast<double>(group_.ranks / group_.nodes);
  return group_.ranks == group_.nodes ? of_node : std::min(group_.nvlink_bytes_per_s, of_node);
}

CollectiveTime NcclModel::ring(CollectiveKind kind, Protocol protocol, double bytes) const {
  const auto ranks = static_cast<double>(group_.ranks);
  const auto nodes = static_cast<double>(group_.nodes);
  const bool reduces_all = kind == CollectiveKind::all_reduce;
  const double steps = reduces_all ? 2 * (ranks - 1) : kind == CollectiveKind::broadcast ? ranks : ranks - 1;
  double between = 0;
  if (group_.nodes > 1) between = reduces_all ? 2 * nodes : kind == CollectiveKind::broadcast ? nodes : nodes - 1;
  between = std::min(between, steps);

  double rate = link_rate();
  if (protocol == Protocol::ll) {
    const std::size_t generation = group_.compute_capability >= 90 ? 1 : 0;
    const auto scale = static_cast<std::size_t>(std::clamp<std::int64_t>(group_.nodes, 1, 3) - 1);
    rate = std::min(most_of_ll.at(generation).at(scale), rate * ll_share);
  } else if (protocol == Protocol::ll128) {
    rate *= ll128_share;
  }
  const double algorithm_rate = rate * ranks / steps;

  const std::size_t p = index_of(protocol);
  const double inside = group_.has_nvlink ? ring_nvlink[p] : over_pcie[p];
  double latency = ring_base[p] + (steps - between) * inside + between * ring_network[p];
  if (protocol == Protocol::simple && group_.nodes > 1 && reduces_all && bytes / ranks >= 64) latency *= ring_plateau;
  return {CollectiveAlgorithm::ring, protocol, latency * microsecond + bytes / algorithm_rate};
}

CollectiveTime NcclModel::tree(Protocol protocol, double bytes) const {
  const auto nodes = static_cast<double>(group_.nodes);
  const double in_node = static_cast<double>(group_.ranks) / nodes;
  double rate = link_rate();
  if (protocol == Protocol::ll) {
    const std::size_t generation = group_.compute_capability >= 90 ? 1 : 0;
    const auto scale = static_cast<std::size_t>(std::clamp<std::int64_t>(group_.nodes, 1, 3) - 1);
    rate = std::min(most_of_ll.at(generation).at(scale), rate * tree_ll_share);
  } else if (protocol == Protocol::ll128) {
    rate *= group_.nodes == 1 ? tree_ll128_share_in_node : tree_ll128_share;
  } else {
    rate *= tree_share;
  }
  const double algorithm_rate = rate / 2 * correction_of_tree(protocol, bytes);
  const std::size_t p = index_of(protocol);
  const double inside = group_.has_nvlink ? tree_nvlink[p] : over_pcie[p];
  const double depth = std::floor(std::log2(nodes));
  const double latency = tree_base[p] + 2 * ((in_node - 1) * inside + depth * tree_network[p]);
  return {CollectiveAlgorithm::tree, protocol, latency * microsecond + bytes / algorithm_rate};
}

// The switch adds up: every byte crosses a device's link once each way.
CollectiveTime NcclModel::nvls(double bytes) const {
  return {CollectiveAlgorithm::nvls, Protocol::simple,
          nvls_latency * microsecond + bytes / (group_.nvlink_bytes_per_s * nvls_share * nvls_algorithm_share)};
}

CollectiveTime NcclModel::pat(double bytes) const {
  const auto ranks = static_cast<double>(group_.ranks);
  const double rate = group_.network_bytes_per_s * ranks / (ranks - 1);
  const std::size_t p = index_of(Protocol::simple);
  const double steps = std::ceil(std::log2(ranks));
  return {CollectiveAlgorithm::pat, Protocol::simple,
          (pat_base[p] + steps * (ring_network[p] / 2)) * microsecond + bytes / rate};
}

CollectiveTime NcclModel::direct(CollectiveKind kind, double bytes) const {
  const auto ranks = static_cast<double>(group_.ranks);
  const double in_node = ranks / static_cast<double>(group_.nodes);
  const std::size_t p = index_of(Protocol::simple);
  const double step = group_.nodes > 1 ? ring_network[p] : group_.has_nvlink ? ring_nvlink[p] : over_pcie[p];
  double seconds = 0;
  if (kind == CollectiveKind::send_recv) {
    const double slowest =
        group_.nodes > 1 ? std::min(group_.nvlink_bytes_per_s, group_.network_bytes_per_s) : group_.nvlink_bytes_per_s;
    seconds = bytes / (group_.nodes == group_.ranks ? group_.network_bytes_per_s : slowest);
  } else {
    const double inside = bytes * (in_node - 1) / ranks / group_.nvlink_bytes_per_s;
    const double between = group_.nodes > 1 ? bytes * (ranks - in_node) / ranks / group_.network_bytes_per_s : 0;
    seconds = std::max(in_node > 1 ? inside : 0, between);
  }
  return {CollectiveAlgorithm::direct, Protocol::simple, (ring_base[p] + step) * microsecond + seconds};
}

}  // namespace hdpsim
