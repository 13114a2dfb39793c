// usage: hdpsim_oracle [speed]
//
// The same traffic in hdpsim and in SimGrid: when messages arrive must agree, and the rates of flows, by processor
// time, are told. With `speed` the cases are large. Exit code 1 if any arrival differs by more than 1e-9.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <string_view>

#include "tests/oracle/simgrid.h"
#include "tests/support/network_cases.h"
#include "tests/support/random_clusters.h"
#include "tests/unit/network/small_clusters.h"

namespace hdpsim::tests {
namespace {

constexpr double tolerance = 1e-9;

struct Case {
  std::string name;
  ClusterSpec cluster;
  std::vector<Message> messages;
};

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
  cases.push_back({"ring, star", star(12288), pattern("ring", 12288)});
  cases.push_back({"ring, fat tree", fat_tree(16, 32, 24), pattern("ring", 12288)});
  cases.push_back({"permutation, fat tree", fat_tree(16, 32, 24), pattern("permutation", 12288)});
  cases.push_back({"four permutations", fat_tree(8, 8, 4), permutations_of_distinct_sizes(4, 256)});
  cases.push_back({"four permutations", fat_tree(8, 16, 8), permutations_of_distinct_sizes(4, 1024)});
  return cases;
}

/// SimGrid has one way for a message.
Case flow_by_flow(Case subject) {
  if (!std::holds_alternative<std::monostate>(subject.cluster.fabric)) {
    subject.cluster.routing.policy = Routing::Policy::ecmp;
  }
  return subject;
}

/// Simulates the case in both; prints a line; false if they differ.
bool agrees(const Case& subject) {
  constexpr int repetitions = 5;
  const ClusterLinks links(subject.cluster, {});
  std::vector<double> arrivals;
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    const std::clock_t begin = std::clock();
    arrivals = arrival_times(links, subject.messages);
    seconds.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
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
  for (const Case& subject : large ? large_cases() : small_cases()) disagree += agrees(flow_by_flow(subject)) ? 0 : 1;
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
