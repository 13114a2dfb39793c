#include "sim/network/impl/nccl_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr double microsecond = 1e-6;

using ByProtocol = std::array<double, 3>;  // LL, LL128, Simple

std::size_t index_of(Protocol protocol) {
  return static_cast<std::size_t>(protocol);
}

// Latencies in microseconds, rates in B/s; names and values of tuning.cc unless a line says otherwise.
constexpr ByProtocol ring_base = {6.6, 14.0, 8.4};
constexpr ByProtocol tree_base = {6.8, 14.0, 8.4};
constexpr ByProtocol ring_nvlink = {0.6, 1.9, 3.4};
constexpr ByProtocol tree_nvlink = {0.6, 1.25, 4.0};
constexpr ByProtocol ring_pcie = {1.0, 2.5, 5.7};
constexpr ByProtocol tree_pcie = {1.0, 1.9, 4.0};
constexpr ByProtocol ring_network = {2.7, 4.0, 14.0};
constexpr ByProtocol tree_network = {5.0, 8.5, 14.0};
constexpr double nvls_nvlink = 25;
constexpr double nvls_network = 18;
constexpr double nvls_tree_network = 14;
// What every step costs a rank that talks to the network, even inside its node; three times that with Simple.
constexpr double network_overhead = 1;
constexpr double network_overhead_of_simple = 3;

constexpr double pat_base = 8;
constexpr double pat_network_share = 1 / 3.5;
constexpr double pat_each_rank = 2.8;

// What LL carries at most: in one node by the GPU, over two and over more by the host's processor.
constexpr double ll_ampere = 87.7e9;
constexpr double ll_hopper = 141e9;
constexpr double ll_blackwell = 282e9;
constexpr std::array<double, 2> ll_intel = {39e9, 20.4e9};
constexpr std::array<double, 2> ll_amd = {22.5e9, 19e9};

constexpr double ll_share = 0.5;
constexpr double ll128_share = 0.92;
constexpr double tree_share = 0.92;
constexpr double tree_ll_share = 1 / 3.8;
constexpr double tree_ll128_share_in_node = 7.0 / 9;
constexpr double tree_ll128_share = 120.0 / 128;
constexpr double pat_share = 0.75;
constexpr double nvls_share_hopper = 0.85;
constexpr double nvls_share_blackwell = 0.74;
constexpr double nvls_algorithm_share = 5.0 / 6;
constexpr double ring_plateau = 1.4;
constexpr double plateau_from = 64;  // bytes a channel and rank

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

bool is_gather_or_scatter(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

CollectiveTime time_of(CollectiveAlgorithm algorithm, Protocol protocol, double latency_us, double rate, double bytes) {
  const double latency = latency_us * microsecond;
  return {algorithm, protocol, latency, rate, latency + bytes / rate};
}

// Levels of a tree of the nodes below its root.
double levels(std::int64_t nodes) {
  return std::floor(std::log2(static_cast<double>(nodes)));
}

}  // namespace

std::vector<CollectiveTime> NcclModel::ways(CollectiveKind kind, std::int64_t bytes) const {
  HDPSIM_CHECK(group_.ranks > 1 && group_.nodes > 0 && group_.ranks >= group_.nodes && group_.channels > 0,
               "{} ranks on {} nodes, {} channels", group_.ranks, group_.nodes, group_.channels);
  const auto size = static_cast<double>(bytes);
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv) return {direct(kind, size)};
  std::vector<CollectiveTime> ways;
  const auto append_protocols = [&](const auto& way) {
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      // LL128 needs stores of 128 bytes to arrive whole: NVLink alone promises that.
      if (protocol != Protocol::ll128 || group_.has_nvlink) ways.push_back(way(protocol));
    }
  };
  append_protocols([&](Protocol protocol) { return ring(kind, protocol, size); });
  if (kind == CollectiveKind::all_reduce) append_protocols([&](Protocol protocol) { return tree(protocol, size); });
  append_switch_ways(ways, kind, size);
  // NCCL has PAT for one rank a node.
  if (is_gather_or_scatter(kind) && group_.nodes == group_.ranks) ways.push_back(pat(size));
  return ways;
}

// NVLS is there from Hopper on, for more than two ranks of a node.
void NcclModel::append_switch_ways(std::vector<CollectiveTime>& ways, CollectiveKind kind, double bytes) const {
  const bool has_nvls =
      group_.has_nvlink && group_.is_even && group_.compute_capability >= 90 && group_.ranks / group_.nodes > 2;
  if (!has_nvls) return;
  const bool reduces_all = kind == CollectiveKind::all_reduce;
  if (group_.nodes == 1 && (reduces_all || is_gather_or_scatter(kind))) ways.push_back(nvls(kind, bytes));
  if (group_.nodes == 1 || !reduces_all) return;
  if (group_.in_network_reduction) ways.push_back(nvls(kind, bytes));
  ways.push_back(nvls_tree(bytes));
}

CollectiveTime NcclModel::best(CollectiveKind kind, std::int64_t bytes) const {
  const std::vector<CollectiveTime> all = ways(kind, bytes);
  return *std::min_element(all.begin(), all.end(),
                           [](const CollectiveTime& a, const CollectiveTime& b) { return a.seconds < b.seconds; });
}

double NcclModel::in_node() const {
  return static_cast<double>(group_.ranks) / static_cast<double>(group_.nodes);
}

double NcclModel::node_rate() const {
  return group_.network_bytes_per_s * in_node();
}

// All rings together: each passes every device of a node by NVLink and leaves the node by another NIC.
double NcclModel::link_rate() const {
  if (group_.nodes == 1) return group_.nvlink_bytes_per_s;
  return group_.ranks == group_.nodes ? node_rate() : std::min(group_.nvlink_bytes_per_s, node_rate());
}

double NcclModel::most_of_ll() const {
  if (group_.nodes > 1) return (group_.has_amd_hosts ? ll_amd : ll_intel).at(group_.nodes == 2 ? 0 : 1);
  if (group_.compute_capability >= 100) return ll_blackwell;
  return group_.compute_capability >= 90 ? ll_hopper : ll_ampere;
}

double NcclModel::nvls_share() const {
  return group_.compute_capability >= 100 ? nvls_share_blackwell : nvls_share_hopper;
}

double NcclModel::inside_us(CollectiveAlgorithm algorithm, Protocol protocol) const {
  const bool is_ring = algorithm == CollectiveAlgorithm::ring;
  if (group_.has_nvlink) return (is_ring ? ring_nvlink : tree_nvlink).at(index_of(protocol));
  return (is_ring ? ring_pcie : tree_pcie).at(index_of(protocol));
}

// Nothing hides the network where a node has one rank: a ring then waits as long as a tree.
double NcclModel::between_us(CollectiveAlgorithm algorithm, Protocol protocol) const {
  const bool is_hidden = algorithm == CollectiveAlgorithm::ring && group_.ranks > group_.nodes;
  return (is_hidden ? ring_network : tree_network).at(index_of(protocol));
}

double NcclModel::ring_latency_us(CollectiveKind kind, Protocol protocol) const {
  const double base = ring_base[index_of(protocol)];
  double inside = inside_us(CollectiveAlgorithm::ring, protocol);
  if (kind == CollectiveKind::broadcast) {  // the chunks of a ring that is the same everywhere follow each other
    return base + (group_.nodes > 1 ? ring_network[index_of(protocol)] : inside);
  }
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double steps = passes * static_cast<double>(group_.ranks - 1);
  const double between = passes * static_cast<double>(group_.nodes - 1);
  if (group_.nodes > 1) {
    inside = std::max(inside, network_overhead * (protocol == Protocol::simple ? network_overhead_of_simple : 1));
  }
  return base + (steps - between) * inside + between * between_us(CollectiveAlgorithm::ring, protocol);
}

CollectiveTime NcclModel::ring(CollectiveKind kind, Protocol protocol, double bytes) const {
  const auto ranks = static_cast<double>(group_.ranks);
  const bool reduces_all = kind == CollectiveKind::all_reduce;
  const double steps = reduces_all ? 2 * (ranks - 1) : kind == CollectiveKind::broadcast ? ranks : ranks - 1;
  double rate = link_rate();
  if (protocol == Protocol::ll) rate = std::min(most_of_ll(), rate * ll_share);
  if (protocol == Protocol::ll128) rate *= ll128_share;
  double latency = ring_latency_us(kind, protocol);
  const bool is_large = bytes / (static_cast<double>(group_.channels) * ranks) >= plateau_from;
  if (protocol == Protocol::simple && group_.nodes > 1 && reduces_all && is_large) latency *= ring_plateau;
  return time_of(CollectiveAlgorithm::ring, protocol, latency, rate * ranks / steps, bytes);
}

CollectiveTime NcclModel::tree(Protocol protocol, double bytes) const {
  double rate = link_rate() * tree_share;
  if (protocol == Protocol::ll) rate = std::min(most_of_ll(), rate * tree_ll_share);
  if (protocol == Protocol::ll128) rate *= group_.nodes == 1 ? tree_ll128_share_in_node : tree_ll128_share;
  const double latency =
      tree_base[index_of(protocol)] + 2 * ((in_node() - 1) * inside_us(CollectiveAlgorithm::tree, protocol) +
                                           levels(group_.nodes) * between_us(CollectiveAlgorithm::tree, protocol));
  return time_of(CollectiveAlgorithm::tree, protocol, latency, rate / 2 * correction_of_tree(protocol, bytes), bytes);
}

CollectiveTime NcclModel::nvls(CollectiveKind kind, double bytes) const {
  const bool several = group_.nodes > 1;
  const double link = several ? std::min(group_.nvlink_bytes_per_s, node_rate()) : group_.nvlink_bytes_per_s;
  const double of_algorithm = kind == CollectiveKind::all_reduce ? nvls_algorithm_share : (in_node() - 1) / in_node();
  return time_of(CollectiveAlgorithm::nvls, Protocol::simple, nvls_nvlink + (several ? nvls_network : 0),
                 link * nvls_share() * of_algorithm, bytes);
}

CollectiveTime NcclModel::nvls_tree(double bytes) const {
  const double network = group_.nodes > 2 ? node_rate() / 2 : node_rate();
  const double link = std::min(group_.nvlink_bytes_per_s, network);
  return time_of(CollectiveAlgorithm::nvls_tree, Protocol::simple,
                 nvls_nvlink + 2 * levels(group_.nodes) * nvls_tree_network, link * nvls_share() * nvls_algorithm_share,
                 bytes);
}

CollectiveTime NcclModel::pat(double bytes) const {
  const double network = between_us(CollectiveAlgorithm::pat, Protocol::simple);
  const double latency =
      pat_base + levels(group_.nodes) * network * pat_network_share + pat_each_rank * static_cast<double>(group_.ranks);
  return time_of(CollectiveAlgorithm::pat, Protocol::simple, latency, link_rate() * pat_share, bytes);
}

CollectiveTime NcclModel::direct(CollectiveKind kind, double bytes) const {
  const auto ranks = static_cast<double>(group_.ranks);
  const std::size_t p = index_of(Protocol::simple);
  const double step = group_.nodes > 1 ? ring_network[p] : inside_us(CollectiveAlgorithm::ring, Protocol::simple);
  double seconds_a_byte = 0;
  if (in_node() > 1) {
    const double share = kind == CollectiveKind::send_recv ? 1 : (in_node() - 1) / ranks;
    seconds_a_byte = share / group_.nvlink_bytes_per_s;
  }
  if (group_.nodes > 1) {
    const double share = kind == CollectiveKind::send_recv ? 1 : (ranks - in_node()) / ranks;
    seconds_a_byte = std::max(seconds_a_byte, share / group_.network_bytes_per_s);
  }
  return time_of(CollectiveAlgorithm::direct, Protocol::simple, ring_base[p] + step, 1 / seconds_a_byte, bytes);
}

}  // namespace hdpsim
