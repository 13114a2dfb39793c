// Facts that hold for the routes of every cluster that is accepted, over seeded random clusters of all fabrics, with
// links that are down, NICs of several ports and nodes of two kinds.

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "sim/base/random.h"
#include "sim/cluster/cluster_config.h"
#include "sim/network/cluster_links.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

std::int64_t one_link_of(RandomStream& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

/// The text of a cluster file.
class RandomCluster {
 public:
  explicit RandomCluster(RandomStream& random) : random_(random) {
    nics_ = std::int64_t{1} << one_link_of(random, 0, 2);
    gpus_per_node_ = nics_ * (std::int64_t{1} << one_link_of(random, 0, 1));
    switch (random.below(4)) {
      case 0:
        tiers();
        break;
      case 1:
        torus();
        break;
      case 2:
        dragonfly();
        break;
      default:
        graph();
    }
  }

  [[nodiscard]] std::string text() {
    const bool nvlink = one_link_of(random_, 0, 2) > 0;
    std::string text = fmt::format("device: X\ngpus: {}\nnode:\n  gpus: {}\n", nodes_ * gpus_per_node_, gpus_per_node_);
    text += "  gpu_memory: 80 GB\n  host_memory: 1 TB\n";
    if (nvlink) text += "  nvlink: {bandwidth: 300 GB/s}\n";
    text += fmt::format("  nics: {{count: {}, bandwidth: 200 Gbit/s, ports: {}}}\n", nics_, ports_);
    text += fmt::format("  pcie: {{bandwidth: 32 GB/s, gpus_per_uplink: {}}}\n",
                        gpus_per_node_ >> one_link_of(random_, 0, gpus_per_node_ > 1 ? 1 : 0));
    text += fabric_;
    if (nodes_ > 1 && one_link_of(random_, 0, 1) == 1) {
      text += fmt::format("node_kinds: {{old: {{nodes: {}-{}, speed: 0.5, nics: {{bandwidth: 100 Gbit/s}}}}}}\n",
                          nodes_ / 2, nodes_ - 1);
    }
    if (one_link_of(random_, 0, 1) == 1)
      text += fmt::format("routing: {{policy: ecmp, seed: {}}}\n", one_link_of(random_, 0, 99));
    return text + links();
  }

 private:
  void tiers() {
    const std::int64_t below = one_link_of(random_, 1, 4);
    const std::int64_t units = one_link_of(random_, 1, 4);
    nodes_ = one_link_of(random_, 1, below * units);
    ports_ = one_link_of(random_, 1, 3);
    has_uplinks_ = nodes_ > below;
    below_ = below;
    fabric_ = fmt::format("tiers: {{tor: {{fan_in: {}, oversubscription: {}}}, core: {{fan_in: {}}}}}\n", below,
                          one_link_of(random_, 1, 3), units);
  }
  void torus() {
    const std::int64_t x = one_link_of(random_, 1, 5);
    const std::int64_t y = one_link_of(random_, 1, 4);
    nodes_ = x * y;
    fabric_ = fmt::format("torus: {{shape: [{}, {}], bandwidth: 10 GB/s}}\n", x, y);
  }
  void dragonfly() {
    const std::int64_t groups = one_link_of(random_, 1, 3);
    const std::int64_t leaves = one_link_of(random_, 1, 3);
    nodes_ = one_link_of(random_, 1, groups * leaves * 2);
    fabric_ = fmt::format(
        "dragonfly: {{groups: {}, leaves: {}, spines: {}, nodes_per_leaf: 2, global_links: {}, bandwidth: 10 GB/s}}\n",
        groups, leaves, one_link_of(random_, 1, 3), one_link_of(random_, 1, 2));
  }
  // Cables anywhere: often not connected, and then refused.
  void graph() {
    const std::int64_t switches = one_link_of(random_, 1, 5);
    nodes_ = one_link_of(random_, 1, 8);
    fabric_ = "graph:\n  switches: {";
    for (std::int64_t i = 0; i < switches; ++i) fabric_ += fmt::format("{}s{}: {{}}", i > 0 ? ", " : "", i);
    fabric_ += "}\n  cables: [";
    bool first = true;
    for (std::int64_t i = 1; i < switches; ++i) {
      if (one_link_of(random_, 0, 9) == 0) continue;
      const std::int64_t other = one_link_of(random_, 0, i - 1);
      fabric_ += fmt::format("{}{{from: s{}, to: s{}, bandwidth: 20 GB/s, count: {}}}", first ? "" : ", ", i, other,
                             one_link_of(random_, 1, 3));
      cables_.push_back(fmt::format("s{} to s{}", other, i));
      first = false;
    }
    fabric_ += "]\n  nodes: {";
    for (std::int64_t node = 0; node < nodes_; ++node) {
      fabric_ += fmt::format("{}{}: s{}", node > 0 ? ", " : "", node, one_link_of(random_, 0, switches - 1));
    }
    fabric_ += "}\n";
  }

  // Some NICs, ports and uplinks that are down or slow.
  std::string links() {
    std::set<std::string> lines;
    for (std::int64_t left = nodes_ > 1 ? one_link_of(random_, 0, 5) : 0; left > 0; --left) {
      std::string name =
          fmt::format("node {} nic {}", one_link_of(random_, 0, nodes_ - 1), one_link_of(random_, 0, nics_ - 1));
      const bool is_tier = has_uplinks_ && one_link_of(random_, 0, 2) == 0;
      if (is_tier) {
        name = fmt::format("tor {} rail {}", one_link_of(random_, 0, (nodes_ - 1) / below_),
                           one_link_of(random_, 0, nics_ - 1));
      }
      if (one_link_of(random_, 0, 1) == 1) {
        name += fmt::format(" {} {}", is_tier ? "plane" : "port", one_link_of(random_, 0, ports_ - 1));
      }
      if (one_link_of(random_, 0, 1) == 1) name += is_tier ? " up" : " in";
      if (!cables_.empty() && one_link_of(random_, 0, 1) == 1) {
        name = cables_[random_.below(cables_.size())];
      }
      lines.insert(name);
    }
    if (lines.empty()) return "";
    std::string text = "links:\n";
    for (const std::string& line : lines)
      text += fmt::format("  {}: {}\n", line, one_link_of(random_, 0, 2) > 0 ? "0" : "0.5");
    return text;
  }

  RandomStream& random_;
  std::int64_t nodes_ = 1;
  std::int64_t nics_ = 1;
  std::int64_t gpus_per_node_ = 1;
  std::int64_t ports_ = 1;
  std::int64_t below_ = 1;
  bool has_uplinks_ = false;
  std::string fabric_;
  std::vector<std::string> cables_;  ///< Of a graph, one between two switches each.
};

void check_route(const ClusterLinks& links, DeviceId from, DeviceId to) {
  const Route route = links.route(from, to);
  REQUIRE(route.links.size() >= 1);
  std::set<LinkId> passed;
  for (const auto& [link, share] : route.binding_links()) {
    CAPTURE(links.name(link));
    REQUIRE(link.index() < links.count());
    CHECK(passed.insert(link).second);                         // none twice
    CHECK(links.rate(link) > Bandwidth::bytes_per_second(1));  // none that is down
    CHECK(links.rate(link) >= route.alone.scaled(share * (1 - 1e-9)));
  }
}

}  // namespace

TEST_CASE("every two gpus of a cluster that is accepted have a route over links that exist and are up", "[property]") {
  constexpr std::uint64_t clusters = 600;
  const auto seeds = tests::seeds(clusters);
  std::map<bool, int> accepted;
  for (const std::uint64_t seed : seeds) {
    RandomStream random(seed, "routes");
    const std::string text = RandomCluster(random).text();
    INFO("replay: HDPSIM_SEED=" << seed << '\n' << text);
    Diagnostics diagnostics;
    const auto spec = read_cluster(parse_document("cluster.yaml", text, diagnostics), diagnostics);
    CAPTURE(diagnostics.text());
    const bool cut_off = diagnostics.text().find("has no way to") != std::string::npos;
    const bool no_uplinks = diagnostics.text().find("joins all nodes") != std::string::npos;
    REQUIRE((spec.has_value() || cut_off || no_uplinks));  // nothing else is wrong with them
    ++accepted[spec.has_value()];
    if (!spec) continue;
    const ClusterLinks links(*spec, {});
    const auto devices = static_cast<std::size_t>(spec->devices);
    for (std::size_t from = 0; from < devices; ++from) {
      for (std::size_t to = 0; to < devices; ++to) {
        if (from != to) check_route(links, DeviceId(from), DeviceId(to));
      }
    }
  }
  if (seeds.size() < clusters) return;
  CHECK(accepted[true] > 300);
  CHECK(accepted[false] > 20);  // the test of what is refused is one
}

}  // namespace hdpsim
