#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <variant>

#include "sim/cluster/impl/fabric_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/cluster/cluster_files.h"

using namespace hdpsim;
using Catch::Matchers::Contains;

namespace {

/// A cluster of nodes of two GPUs with a NIC of 200 Gbit/s each, whose switches a file lists.
class FabricCluster {
 public:
  FabricCluster(const std::string& fabric, int nodes) {
    std::ofstream(folder_.path() / "fabric.txt") << fabric;
    text_ = fmt::format(
        "device: X\ngpus: {}\nnode: {{gpus: 2, gpu_memory: 1 GB, host_memory: 1 GB, pcie: {{bandwidth: 32 GB/s}}, "
        "nics: {{count: 2, bandwidth: 200 Gbit/s}}}}\ngraph: {{file: fabric.txt}}\n",
        2 * nodes);
  }
  [[nodiscard]] ClusterSpec spec() const {
    Diagnostics diagnostics;
    const auto spec = read(diagnostics);
    diagnostics.throw_if_any();
    return spec.value();
  }
  [[nodiscard]] std::string problems() const {
    Diagnostics diagnostics;
    CHECK_FALSE(read(diagnostics));
    return diagnostics.text();
  }

 private:
  std::optional<ClusterSpec> read(Diagnostics& diagnostics) const {
    const std::string file = (folder_.path() / "cluster.yaml").string();
    return read_cluster(parse_document(file, text_, diagnostics), shipped_clusters(), diagnostics);
  }

  test::TemporaryFolder folder_;
  std::string text_;
};

SwitchGraphSpec graph_of(const ClusterSpec& spec) {
  return std::get<SwitchGraphSpec>(spec.fabric);
}

// The switch of a node's NIC.
std::string attached(const ClusterSpec& spec, std::int64_t node, std::int64_t nic) {
  const SwitchGraphSpec graph = graph_of(spec);
  return graph.switches[graph.attached[static_cast<std::size_t>(node * spec.nics_per_node + nic)]].name;
}

const std::string slurm =
    "# the rack\n"
    "SwitchName=leaf1 Nodes=n[1-3]\n"
    "SwitchName=leaf2 Nodes=n[08-09],m4\n"
    "SwitchName=top Switches=leaf[1-2] LinkSpeed=900\n";

std::string port(int own, const std::string& other, int port, const std::string& description, const std::string& rate) {
  return fmt::format("[{}]\t\"{}\"[{}]\t\t# \"{}\" lid {} {}\n", own, other, port, description, own, rate);
}

// Two leaves and a spine, two cables from each leaf; hosts with a NIC on each leaf, and one with a single NIC.
std::string discovered() {
  std::string text = "#\n# Topology file: generated on Mon Nov 30\n#\n\nvendid=0x2c9\nswitchguid=0xaa(aa)\n";
  for (int leaf = 0; leaf < 2; ++leaf) {
    text += fmt::format("Switch\t40 \"S-{}\"\t\t# \"MF0;leaf{}:MQM8700/U1\" enhanced port 0 lid 1 lmc 0\n", leaf, leaf);
    for (int host : {10, 2}) {
      text += port(host, fmt::format("H-{}{}", host, leaf), 1, fmt::format("node{} mlx5_{}", host, leaf), "4xHDR");
    }
    if (leaf == 0) text += port(30, "H-99", 1, "storage1 mlx5_0", "2xHDR");
    text += port(39, fmt::format("H-sharp{}", leaf), 1, "Mellanox Technologies Aggregation Node", "4xHDR");
    for (int cable : {1, 2}) text += port(32 + cable, "S-9", 2 * leaf + cable, "MF0;spine:MQM8700/U1", "4xEDR");
    text += "\n";
  }
  text += "Switch\t40 \"S-9\"\t\t# \"MF0;spine:MQM8700/U1\" enhanced port 0 lid 9 lmc 0\n";
  for (int leaf = 0; leaf < 2; ++leaf) {
    for (int cable : {1, 2}) {
      text += port(2 * leaf + cable, fmt::format("S-{}", leaf), 32 + cable, "MF0;leaf:MQM8700/U1", "4xEDR");
    }
  }
  return text +
         "\nCa\t1 \"H-100\"\t\t# \"node10 mlx5_0\"\n[1](aa)\t\"S-0\"[10]\t\t# lid 5 lmc 0 \"leaf0\" lid 1 4xHDR\n";
}

}  // namespace

TEST_CASE("Slurm's tree of switches joins its hosts in their order, with the rates of the NICs below", "[cluster]") {
  const ClusterSpec spec = FabricCluster(slurm, 6).spec();
  CHECK(graph_of(spec).switches.size() == 3);
  CHECK(attached(spec, 2, 1) == "leaf1");
  CHECK(attached(spec, 3, 0) == "leaf2");
  REQUIRE(graph_of(spec).cables.size() == 2);
  CHECK(graph_of(spec).cables[0].count == 3 * 2);
  CHECK(graph_of(spec).cables[0].bandwidth == 200_Gbps);
  CHECK_THAT(spec.notes.at(0), Contains("Slurm's topology states no rates"));
  // Of fewer nodes the first hosts, and cables for their NICs alone.
  const ClusterSpec four = FabricCluster(slurm, 4).spec();
  CHECK(graph_of(four).cables[1].count == 1 * 2);
  CHECK_THAT(four.notes.back(), Contains("the nodes are the first 4 of 6 hosts: n1 to n08"));
}

TEST_CASE("what ibnetdiscover prints joins hosts by name, their NICs by name, and switches by cables of its rates",
          "[cluster]") {
  const ClusterSpec spec = FabricCluster(discovered(), 2).spec();
  CHECK(attached(spec, 0, 0) == "leaf0");  // node2 before node10
  CHECK(attached(spec, 1, 1) == "leaf1");
  const SwitchGraphSpec graph = graph_of(spec);
  REQUIRE(graph.cables.size() == 2);
  for (const SwitchGraphSpec::Cable& cable : graph.cables) {
    CHECK(cable.count == 2);
    CHECK(cable.bandwidth == 100_Gbps);
    CHECK(graph.switches[cable.to].name == "spine");
  }
  CHECK_THAT(spec.notes.back(), Contains("left out: hosts that have not 2 NICs (storage1)"));
}

TEST_CASE("a fabric that does not fit the cluster, or is cut, is told with what is missing", "[cluster]") {
  CHECK_THAT(FabricCluster(slurm, 7).problems(), Contains("the file has 6 hosts that can be nodes, the cluster has 7"));
  CHECK_THAT(FabricCluster("SwitchName=a Nodes=n[3-1]\n", 1).problems(),
             Contains("fabric.txt:1:1: error: 'n[3-1]' is no list of names"));
  CHECK_THAT(FabricCluster("SwitchName=a Switches=b\nSwitchName=b Switches=a Nodes=n1\n", 1).problems(),
             Contains("'a' is below itself"));
  CHECK_THAT(FabricCluster("SwitchName=a Nodes=n1\nSwitchName=b Switches=a,c\n", 1).problems(),
             Contains("there is no switch 'c', which 'b' joins"));
  CHECK_THAT(FabricCluster("hello\n", 1).problems(), Contains("no switch is listed"));
  const std::string whole = discovered();
  CHECK_THAT(FabricCluster(whole.substr(0, whole.find("Switch\t40 \"S-9\"")), 2).problems(),
             Contains("the switch 'S-9' is joined by a cable and not listed"));
  std::string rateless = whole;
  rateless.replace(rateless.find("4xHDR"), 5, "4xFOO");
  CHECK_THAT(FabricCluster(rateless, 2).problems(),
             Contains("a port without the one at its other end, or without a rate"));
}

TEST_CASE("names with numbers are in the order of the numbers", "[cluster]") {
  std::vector<std::string> names{"n10", "n9", "m2", "n09", "n9b", "n", "n1a2", "n1a10"};
  std::sort(names.begin(), names.end(), is_before);
  CHECK(names == std::vector<std::string>{"m2", "n", "n1a2", "n1a10", "n9", "n09", "n9b", "n10"});
}
