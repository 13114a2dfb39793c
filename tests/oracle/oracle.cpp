// usage: hdpsim_oracle [speed]
//
// The same traffic in hdpsim and in SimGrid: when messages arrive must agree, and the faster simulator is told. With `speed`
// the cases are large. Exit code 1 if any arrival differs by more than 1e-9.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string_view>

#include "tests/oracle/simgrid.h"
#include "tests/support/random_clusters.h"
#include "tests/unit/network/small_clusters.h"

namespace hdpsim::tests {
namespace {

constexpr double tolerance = 1e-9;
constexpr double mebibyte = 1048576;

struct Case {
  std::string name;
  ClusterSpec cluster;
  std::vector<Message> messages;
};

std::vector<Message> pattern(std::string_view name, std::int64_t devices, std::uint64_t seed = 1) {
  return messages_of(
      {.pattern = traffic_pattern(name), .first = 0, .devices = devices, .bytes = 8 * mebibyte, .seed = seed});
}

/// `count` permutations at once, of messages of 1 to 16 MiB.
std::vector<Message> permutations_of_distinct_sizes(int count, std::int64_t devices, std::uint64_t seed = 1) {
  RandomStream random(seed, "oracle");
  std::vector<Message> all;
  for (int i = 0; i < count; ++i) {
    for (Message message : pattern("permutation", devices, random.next())) {
      message.bytes = static_cast<double>(1048576 + random.below(15 * 1048576));
      all.push_back(message);
    }
  }
  return all;
}

/// Nodes of one device under three tiers, every flow on one uplink of each.
ClusterSpec fat_tree(std::int64_t leaf, std::int64_t aggregation, std::int64_t pods) {
  ClusterSpec spec = three_tiers(8, 1, 1);
  spec.devices = leaf * aggregation * pods;
  spec.devices_per_node = 1;
  spec.nics_per_node = 1;
  spec.tiers[0].fan_in = leaf;
  spec.tiers[1].fan_in = aggregation;
  spec.routing.policy = Routing::Policy::ecmp;
  return spec;
}

ClusterSpec with_fabric(FabricSpec fabric) {
  ClusterSpec spec = rail_cluster(64);
  spec.tiers.clear();
  spec.fabric = std::move(fabric);
  return spec;
}

ClusterSpec degraded() {
  ClusterSpec spec = three_tiers(16, 2, 1);
  spec.degraded = {{.kind = DegradedLink::Kind::nic, .unit = 3, .index = 2, .factor = 0.1},
                   {.kind = DegradedLink::Kind::nvlink, .unit = 1, .index = 5, .factor = 0.05},
                   {.kind = DegradedLink::Kind::tier, .unit = 2, .index = 7, .factor = 0.25}};
  return spec;
}

std::vector<Case> small_cases() {
  std::vector<Case> cases;
  for (const char* const name : {"permutation", "incast", "ring", "bisection"}) {
    cases.push_back({name, rail_cluster(64), pattern(name, 512)});
    cases.push_back({fmt::format("{}, oversubscribed 4:1", name), three_tiers(64, 4, 1), pattern(name, 512)});
    cases.push_back({fmt::format("{}, ecmp", name), fat_tree(8, 8, 8), pattern(name, 512)});
  }
  RandomStream random(1, "oracle fabrics");
  const TorusSpec torus{.shape = {4, 4, 4}, .bandwidth = 25_GBps, .latency = 100_ns};
  DragonflySpec dragonfly = random_dragonfly(64, random);
  dragonfly.spines = 2;
  const SwitchGraphSpec graph = random_graph(512, random);
  cases.push_back({"torus", with_fabric(torus), permutations_of_distinct_sizes(1, 512)});
  cases.push_back({"dragonfly", with_fabric(dragonfly), permutations_of_distinct_sizes(1, 512)});
  cases.push_back({"graph", with_fabric(graph), permutations_of_distinct_sizes(1, 512)});
  cases.push_back({"degraded links", degraded(), permutations_of_distinct_sizes(2, 128)});
  cases.push_back({"four permutations, ecmp", fat_tree(8, 8, 4), permutations_of_distinct_sizes(4, 256)});
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const FabricKind kind = fabric_kinds[seed % std::size(fabric_kinds)];
    ClusterSpec cluster = random_cluster(16, kind, random);
    const std::vector<Message> messages = permutations_of_distinct_sizes(3, cluster.devices, seed);
    cases.push_back({fmt::format("random {} {}", name_of(kind), seed), std::move(cluster), messages});
  }
  return cases;
}

std::vector<Case> large_cases() {
  std::vector<Case> cases;
  cases.push_back({"ring, star", rail_cluster(1536), pattern("ring", 12288)});
  cases.push_back({"ring, fat tree", fat_tree(16, 32, 24), pattern("ring", 12288)});
  cases.push_back({"permutation, fat tree", fat_tree(16, 32, 24), pattern("permutation", 12288)});
  cases.push_back({"four permutations", fat_tree(8, 8, 4), permutations_of_distinct_sizes(4, 256)});
  cases.push_back({"four permutations", fat_tree(8, 16, 8), permutations_of_distinct_sizes(4, 1024)});
  return cases;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Simulates the case in both; prints a line; false if they differ.
bool agrees(const Case& subject) {
  constexpr int repetitions = 5;
  const ClusterLinks links(subject.cluster, {});
  std::vector<double> arrivals;
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    arrivals = arrival_times(links, subject.messages);
    seconds.push_back(seconds_since(begin));
  }
  std::sort(seconds.begin(), seconds.end());
  const SimgridReplay replay = replay_in_simgrid(simgrid_traffic(links, subject.messages, arrivals));
  const auto messages = static_cast<double>(subject.messages.size());
  const double median = seconds[repetitions / 2];
  fmt::print("{:<34} {:>8} {:>10.1e} {:>14.0f} {:>14.0f} {:>7.1f}x\n", subject.name, replay.messages,
             replay.largest_difference, messages / median, messages / replay.seconds, replay.seconds / median);
  return replay.messages == subject.messages.size() && replay.largest_difference <= tolerance;
}

int run(bool large) {
  fmt::print("{:<34} {:>8} {:>10} {:>14} {:>14} {:>8}\n", "case", "flows", "difference", "flows/s", "SimGrid's",
             "ratio");
  int disagree = 0;
  for (const Case& subject : large ? large_cases() : small_cases()) disagree += agrees(subject) ? 0 : 1;
  if (disagree > 0) fmt::print("{} cases differ by more than {}\n", disagree, tolerance);
  return disagree > 0 ? 1 : 0;
}

}  // namespace
}  // namespace hdpsim::tests

int main(int argc, char** argv) {
  try {
    return hdpsim::tests::run(argc > 1 && std::string_view(argv[1]) == "speed");
  } catch (const std::exception& problem) {
    fmt::print(stderr, "error: {}\n", problem.what());
    return 1;
  }
}
