#include "sim/network/profile_collective.h"

#include <algorithm>

namespace hdpsim {
namespace {

/// A line of a profile, either kind.
struct Line {
  double start_s = 0;
  double step_s = 0;
  double efficiency = 1;
};

Line line_of(const CollectiveRate& rate) {
  return {rate.latency.seconds(), rate.step_latency.seconds(), rate.efficiency()};
}

const std::optional<CollectiveRate>* collective_of(const LinkProfile& link, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return &link.all_reduce;
    case CollectiveKind::all_gather:
      return &link.all_gather;
    case CollectiveKind::reduce_scatter:
      return &link.reduce_scatter;
    case CollectiveKind::all_to_all:
      return &link.all_to_all;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_recv:
      break;
  }
  return nullptr;
}

std::optional<Line> line_for(const std::optional<LinkProfile>& link, CollectiveKind kind) {
  if (!link) return std::nullopt;
  if (kind == CollectiveKind::send_recv) {
    if (!link->send_recv) return std::nullopt;
    return Line{link->send_recv->latency.seconds(), 0, link->send_recv->efficiency()};
  }
  const std::optional<CollectiveRate>* rate = collective_of(*link, kind);
  return rate != nullptr && *rate ? std::optional(line_of(**rate)) : std::nullopt;
}

bool divides_data(CollectiveKind kind) {
  return kind != CollectiveKind::all_to_all && kind != CollectiveKind::send_recv;
}

}  // namespace

std::optional<CollectiveTime> profiled_collective(const DeviceProfile& profile, const NcclGroup& group,
                                                  CollectiveKind kind, std::int64_t bytes) {
  const std::optional<Line> inside = line_for(profile.nvlink, kind);
  const std::optional<Line> between = line_for(profile.network, kind);
  const std::optional<Line>& main = group.nodes > 1 ? between : inside;
  if (!main) return std::nullopt;
  const std::int64_t in_node = group.ranks / group.nodes;
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  double steps_s = 0;
  double rate = 0;
  if (in_node > 1) {
    const Line of_nvlink = inside.value_or(Line{});
    steps_s += static_cast<double>(in_node - 1) * of_nvlink.step_s;
    rate = group.nvlink_bytes_per_s * of_nvlink.efficiency;
  }
  if (group.nodes > 1) {
    steps_s += static_cast<double>(group.nodes - 1) * main->step_s;
    const double nics = divides_data(kind) ? static_cast<double>(in_node) : 1;
    const double network = group.network_bytes_per_s * nics * main->efficiency;
    rate = in_node > 1 ? std::min(rate, network) : network;
  }
  CollectiveTime time;
  time.latency_s = main->start_s + passes * steps_s;
  time.bytes_per_s = rate / bus_factor(kind, group.ranks);
  time.seconds = time.latency_s + static_cast<double>(bytes) / time.bytes_per_s;
  return time;
}

}  // namespace hdpsim
