#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/network/nccl_model.h"
#include "sim/network/traffic.h"
#include "sim/report/link_use.h"

namespace hdpsim {

/// A collective of one size, simulated and, where somebody has measured it, measured.
struct CommRow {
  std::int64_t bytes = 0;  ///< As nccl-tests counts them.
  CollectiveTime time;
  std::optional<double> measured_s;
};

struct CommReport {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t ranks = 0;
  std::int64_t nodes = 0;
  std::string cluster;
  double network_share = 1;  ///< What background traffic leaves of the network.
  std::vector<CommRow> rows;
};

/// The columns of nccl-tests (out of place, floats), then algorithm and protocol and, if there is any, the measured time
/// with the error of the simulated one; a last line with the average bus bandwidth.
[[nodiscard]] std::string comm_table(const CommReport& report);
/// The JSON that nccl-tests writes, with `simulated: true`.
[[nodiscard]] std::string comm_json(const CommReport& report, std::string_view version);

struct TrafficReport {
  Traffic traffic;
  std::string cluster;
  TrafficResult result;
  std::vector<LinkUse> busiest;
};

[[nodiscard]] std::string traffic_table(const TrafficReport& report);
[[nodiscard]] std::string traffic_json(const TrafficReport& report, std::string_view version);

}  // namespace hdpsim
