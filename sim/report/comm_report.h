#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/link_use.h"
#include "sim/network/collective_pace.h"
#include "sim/network/traffic.h"

namespace hdpsim {

/// A collective of one size, simulated and, where somebody has measured it, measured.
struct CommRow {
  std::int64_t bytes = 0;  ///< As nccl-tests counts them.
  CollectiveEstimate collective;
  double seconds = 0;  ///< Beside the other traffic, if there is any.
  std::optional<double> measured_s;
  Bottleneck bottleneck = {};
  std::optional<double> alone_s = {};  ///< Without the other traffic, if there is any.
};

struct CommReport {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t ranks = 0;
  std::int64_t nodes = 0;
  std::string cluster;
  std::string profile;  ///< Empty: the bare fabric.
  std::vector<CommRow> rows;
};

/// The columns of nccl-tests (out of place, floats), then algorithm and protocol and, if there is any, the measured
/// time with the error of the simulated one; then the links that limit each algorithm and the average bus bandwidth.
/// With other traffic also the time without it; and the basis of each row unless all rest on NCCL's model.
[[nodiscard]] std::string comm_table(const CommReport& report);
/// The JSON that nccl-tests writes, with `simulated: true` and for each size the bottleneck links.
[[nodiscard]] std::string comm_json(const CommReport& report, std::string_view version);

struct TrafficReport {
  Traffic traffic;
  std::string cluster;
  std::string profile;  ///< Empty: the bare fabric.
  TrafficResult result;
  std::vector<LinkUse> busiest;
};

[[nodiscard]] std::string traffic_table(const TrafficReport& report);
[[nodiscard]] std::string traffic_json(const TrafficReport& report, std::string_view version);

}  // namespace hdpsim
