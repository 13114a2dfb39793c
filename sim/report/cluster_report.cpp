#include "sim/report/cluster_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/division.h"
#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/document/json.h"
#include "sim/network/cluster_links.h"
#include "sim/network/traffic.h"

namespace hdpsim {
namespace {

bool is_down(Bandwidth rate) {
  return rate <= Bandwidth::bytes_per_second(1);
}

void add(LinkGroup& group, Bandwidth rate) {
  ++group.count;
  if (is_down(rate)) {
    ++group.down;
    return;
  }
  group.least = group.least == Bandwidth{} ? rate : std::min(group.least, rate);
  group.most = std::max(group.most, rate);
}

std::vector<LinkGroup> groups_of(const ClusterLinks& links) {
  std::vector<LinkGroup> groups;
  std::map<std::string, std::size_t> places;
  for (std::size_t id = 0; id < links.count(); ++id) {
    const std::string name = link_kind(links.name(LinkId(id)));
    const auto [place, is_new] = places.try_emplace(name, groups.size());
    if (is_new) groups.push_back({.name = name, .count = 0, .least = {}, .most = {}, .down = 0});
    add(groups[place->second], links.rate(LinkId(id)));
  }
  return groups;
}

std::string rate_text(Bandwidth rate) {
  return bytes_text(Bytes(rate.bytes_per_second())) + "/s";
}

Bandwidth rounded_rate(double bytes_per_second) {
  return Bandwidth::bytes_per_second(std::llround(bytes_per_second));
}

std::string rates_text(const LinkGroup& group) {
  if (group.count == group.down) return "down";
  const std::string least = rate_text(group.least);
  const std::string rates = group.least == group.most ? least : fmt::format("{} to {}", least, rate_text(group.most));
  return group.down == 0 ? rates : fmt::format("{}; {} down", rates, group.down);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string nodes_text(const ClusterSpec& c) {
  std::string text = c.has_nvlink() ? fmt::format("NVLink {} a gpu", rate_text(c.nvlink)) : "no NVLink";
  if (c.nic > Bandwidth{}) {
    text += fmt::format(", {} of {:.9g} Gbit/s", counted(c.nics_per_node, "NIC"), c.nic.gigabytes_per_second() * 8);
    if (c.ports_per_nic > 1) text += fmt::format(" over {} ports", c.ports_per_nic);
  }
  text += fmt::format(", PCIe {} for {}", rate_text(c.pcie), counted(c.devices_per_pcie_uplink, "gpu"));
  return text + fmt::format(", {} a gpu, {} a host", bytes_text(c.device_memory), bytes_text(c.host_memory));
}

std::string kind_text(const ClusterSpec& c, const NodeRange& range) {
  const NodeKind& kind = c.kinds[range.kind];
  return fmt::format("  nodes {}-{} ({}): {}, speed {:.3g}, NVLink {}, NICs of {:.9g} Gbit/s, {} a gpu, {} a host\n",
                     range.first, range.last, kind.name, kind.device, kind.speed, rate_text(kind.nvlink),
                     kind.nic.gigabytes_per_second() * 8, bytes_text(kind.device_memory), bytes_text(kind.host_memory));
}

std::string tiers_text(const ClusterSpec& c) {
  std::string text;
  for (std::size_t tier = 0; tier < c.tiers.size(); ++tier) {
    const std::int64_t nodes = c.nodes_per_unit(tier);
    text += fmt::format("  tier {}: {} of {}, {:.3g}:1, {}\n", c.tiers[tier].name,
                        counted(divided(c.nodes(), nodes), "unit"), counted(std::min(nodes, c.nodes()), "node"),
                        c.tiers[tier].oversubscription, duration_text(c.tiers[tier].latency));
  }
  return text;
}

Json node_json(const ClusterSpec& c) {
  return {{"gpus", c.devices_per_node},
          {"gpu_memory_gb", c.device_memory.gigabytes()},
          {"host_memory_gb", c.host_memory.gigabytes()},
          {"nvlink_gb_per_s", c.nvlink.gigabytes_per_second()},
          {"nics", c.nics_per_node},
          {"nic_gb_per_s", c.nic.gigabytes_per_second()},
          {"ports_per_nic", c.ports_per_nic},
          {"pcie_gb_per_s", c.pcie.gigabytes_per_second()},
          {"gpus_per_pcie_uplink", c.devices_per_pcie_uplink}};
}

Json kinds_json(const ClusterSpec& c) {
  Json kinds = Json::array();
  for (const NodeRange& range : c.kind_ranges) {
    const NodeKind& kind = c.kinds[range.kind];
    kinds.push_back({{"name", kind.name},
                     {"first_node", range.first},
                     {"last_node", range.last},
                     {"device", kind.device},
                     {"speed", kind.speed},
                     {"gpu_memory_gb", kind.device_memory.gigabytes()},
                     {"host_memory_gb", kind.host_memory.gigabytes()},
                     {"nvlink_gb_per_s", kind.nvlink.gigabytes_per_second()},
                     {"nic_gb_per_s", kind.nic.gigabytes_per_second()}});
  }
  return kinds;
}

Json tiers_json(const ClusterSpec& c) {
  Json tiers = Json::array();
  for (std::size_t tier = 0; tier < c.tiers.size(); ++tier) {
    tiers.push_back({{"name", c.tiers[tier].name},
                     {"nodes_per_unit", c.nodes_per_unit(tier)},
                     {"oversubscription", c.tiers[tier].oversubscription},
                     {"latency_s", c.tiers[tier].latency.seconds()}});
  }
  return tiers;
}

}  // namespace

ClusterReport report_cluster(const ClusterSpec& cluster) {
  const ClusterLinks links(cluster, {});
  ClusterReport report{.cluster = cluster, .links = groups_of(links), .bisection = std::nullopt};
  if (cluster.devices > 1 && cluster.devices <= ClusterReport::most_bisected) report.bisection = bisection_rate(links);
  return report;
}

std::string cluster_table(const ClusterReport& report) {
  const ClusterSpec& c = report.cluster;
  std::string text = fmt::format("{}: {} x {} on {} of {}\n", printable(c.name), c.devices, printable(c.device),
                                 counted(c.nodes(), "node"), c.devices_per_node);
  text += fmt::format("  node: {}\n", nodes_text(c));
  for (const NodeRange& range : c.kind_ranges) text += kind_text(c, range);
  text += tiers_text(c);
  if (!report.links.empty()) text += "links that can bind, each direction one\n";
  for (const LinkGroup& group : report.links) {
    text += fmt::format("  {:>9} x {}: {}\n", group.count, group.name, rates_text(group));
  }
  if (report.bisection) {
    text +=
        fmt::format("bisection, every gpu to the one half the cluster away: {}, {} a gpu\n",
                    rate_text(rounded_rate(*report.bisection)), rate_text(rounded_rate(*report.bisection) / c.devices));
  }
  for (const std::string& note : c.notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string cluster_json(const ClusterReport& report, std::string_view version) {
  const ClusterSpec& c = report.cluster;
  Json json = {{"schema", "hdpsim.cluster/1"}, {"hdpsim", version}, {"name", c.name},
               {"device", c.device},           {"gpus", c.devices}, {"nodes", c.nodes()}};
  json["node"] = node_json(c);
  json["node_kinds"] = kinds_json(c);
  json["tiers"] = tiers_json(c);
  json["links"] = Json::array();
  for (const LinkGroup& group : report.links) {
    json["links"].push_back({{"name", group.name},
                             {"count", group.count},
                             {"down", group.down},
                             {"least_gb_per_s", group.least.gigabytes_per_second()},
                             {"most_gb_per_s", group.most.gigabytes_per_second()}});
  }
  json["bisection_gb_per_s"] = report.bisection ? Json(*report.bisection / 1e9) : Json();
  json["notes"] = c.notes;
  return json_page(json);
}

}  // namespace hdpsim
