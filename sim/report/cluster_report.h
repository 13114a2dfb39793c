#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/network/cluster_links.h"

namespace hdpsim {

/// Links whose names differ only in numbers: `node # nic # out`.
struct LinkGroup {
  std::string name;
  std::int64_t count = 0;
  Bandwidth least;  ///< Rates of the links that are up.
  Bandwidth most;
  std::int64_t down = 0;
};

/// A cluster as it will be simulated, at the physical rates of its links.
struct ClusterReport {
  ClusterSpec cluster;
  std::vector<LinkGroup> links;  ///< In the order of their first ids. O(links) to make.
  /// B/s of all gpus together when each sends to the one half the cluster away; empty for a single gpu and beyond
  /// `most_bisected` gpus.
  std::optional<double> bisection;
  static constexpr std::int64_t most_bisected = 131072;
};

[[nodiscard]] ClusterReport report_cluster(const ClusterSpec& cluster);
/// For a person at a terminal.
[[nodiscard]] std::string cluster_table(const ClusterReport& report);
/// Schema `hdpsim.cluster/1`.
[[nodiscard]] std::string cluster_json(const ClusterReport& report, std::string_view version);

}  // namespace hdpsim
