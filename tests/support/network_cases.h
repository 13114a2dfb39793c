#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/random.h"
#include "sim/network/traffic.h"

namespace hdpsim::tests {

inline constexpr double mebibyte = 1048576;

/// Hosts of one device and one NIC of 50 GB/s on one switch. No latency.
inline ClusterSpec star(std::int64_t hosts) {
  ClusterSpec spec;
  spec.name = "star";
  spec.devices = hosts;
  spec.nic = 50_GBps;
  spec.tiers = {{.name = "switch", .fan_in = hosts}};
  return spec;
}

/// The same hosts under three tiers without oversubscription: `leaf` hosts a leaf switch, `aggregation` leaf switches a
/// pod. Every pair of hosts has one way of the many.
inline ClusterSpec fat_tree(std::int64_t leaf, std::int64_t aggregation, std::int64_t pods) {
  ClusterSpec spec = star(leaf * aggregation * pods);
  spec.name = "fat tree";
  spec.tiers = {{.name = "leaf", .fan_in = leaf},
                {.name = "aggregation", .fan_in = aggregation},
                {.name = "core", .fan_in = pods}};
  spec.routing.policy = Routing::Policy::ecmp;
  return spec;
}

/// 8 MiB from each sender of the pattern.
inline std::vector<Message> pattern(std::string_view name, std::int64_t devices, std::uint64_t seed = 1) {
  return messages_of(
      {.pattern = traffic_pattern(name), .first = 0, .devices = devices, .bytes = 8 * mebibyte, .seed = seed});
}

/// `count` permutations at once, of messages of 1 to 16 MiB, nearly all of which end at another time.
inline std::vector<Message> permutations_of_distinct_sizes(int count, std::int64_t devices, std::uint64_t seed = 1) {
  RandomStream random(seed, "permutations of distinct sizes");
  std::vector<Message> all;
  for (int i = 0; i < count; ++i) {
    for (Message message : pattern("permutation", devices, random.next())) {
      message.bytes = mebibyte + static_cast<double>(random.below(std::uint64_t{15} * 1048576));
      all.push_back(message);
    }
  }
  return all;
}

}  // namespace hdpsim::tests
