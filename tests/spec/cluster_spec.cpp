#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("cluster show prints a shipped cluster as it will be simulated", "[cluster]") {
  const Workplace here;
  const Outcome outcome = here.run("cluster show h100-rail");
  CHECK(outcome.err.empty());
  CHECK_THAT(outcome.out, Contains("h100-rail: 1024 x H100-80GB on 128 nodes of 8"));
  CHECK_THAT(outcome.out, Contains("1024 x node # nic # out: 50.0 GB/s"));
  const auto json = nlohmann::json::parse(here.hdpsim("cluster show h100-rail --format json").out);
  CHECK(json.at("gpus") == 1024);
  CHECK(here.hdpsim("cluster show h100-rial").code == 2);
  CHECK(here.hdpsim("cluster show h100-rail --format csv").code == 2);
}

TEST_CASE("check says what it read of a topology of NCCL", "[cluster]") {
  const Workplace here;
  const Outcome outcome = here.run("check configs/clusters/examples/h100-nvswitch.yaml");
  CHECK_THAT(outcome.out, Contains("a cluster of 256 x H100-80GB, 8 a node: fine"));
  CHECK_THAT(outcome.out, Contains("note: NVLink: 18 links of 25 GB/s a gpu, over NVSwitch"));
}

TEST_CASE("a topology that is wrong is told with its file, line and column, and nothing is written", "[cluster]") {
  const Workplace here;
  here.write("topo.xml", "<system version=\"1\">\n  <cpu numaid=\"0\"/>\n</system>\n");
  here.write("cluster.yaml",
             "{device: X, gpus: 8, node: {nccl_topology: topo.xml, gpu_memory: 1 GB, host_memory: 1 GB}}\n");
  CHECK_THAT(here.refusal("check cluster.yaml"), Contains("topo.xml:1:2: error: the topology has no gpu"));
}

TEST_CASE("a study runs on nodes of two generations, and the slower ones set the pace", "[cluster]") {
  const Workplace here;
  const std::string run = "study configs/studies/tiny.yaml --set sweep={} --set data.steps=1 --format json";
  const auto step_s = [&](const std::string& more, const std::string& out) {
    return nlohmann::json::parse(here.run(run + more + " --out " + out).out)
        .at("runs")
        .at(0)
        .at("step_time_s")
        .at("mean")
        .get<double>();
  };
  const double alike = step_s("", "alike");
  const double mixed = step_s(" --set \"cluster.node_kinds={old: {nodes: 0, speed: 0.5}}\"", "mixed");
  const double all_old = step_s(" --set \"cluster.node_kinds={old: {nodes: 0-3, speed: 0.5}}\"", "old");
  CHECK(mixed > 1.3 * alike);
  CHECK(mixed <= all_old * 1.001);
}

// Four nodes of eight GPUs, with NICs of two ports.
void write_cluster(const Workplace& here, const std::string& links) {
  here.write("cluster.yaml", R"(device: H100-80GB
gpus: 32
node:
  gpus: 8
  gpu_memory: 80 GB
  host_memory: 2 TB
  nvlink: {bandwidth: 450 GB/s}
  nics: {count: 8, bandwidth: 400 Gbit/s, ports: 2}
  pcie: {bandwidth: 64 GB/s}
tiers: {leaf: {fan_in: 32}}
)" + links);
}

constexpr const char* one_port_down = "links: {node 1 nic 3 port 0: 0}\n";
// What went over it goes over NIC 4, beside what is NIC 4's own.
constexpr const char* one_nic_down = "links: {node 1 nic 3: 0}\n";

TEST_CASE("collectives go at the pace of the slowest NIC", "[cluster]") {
  const Workplace here;
  const auto bus_bandwidth = [&](const std::string& links) {
    write_cluster(here, links);
    const auto json = nlohmann::json::parse(
        here.run("comm all_gather --profile none --algo ring --proto simple -b 8G -e 8G -g 32 --cluster cluster.yaml "
                 "--format json")
            .out);
    return json.at("results").at(0).at("out_of_place").at("bus_bw").get<double>();
  };
  const double whole = bus_bandwidth("");
  CHECK(bus_bandwidth(one_port_down) == Approx(whole / 2).epsilon(0.05));  // besides start-up latencies
  CHECK(bus_bandwidth(one_nic_down) == Approx(whole / 2).epsilon(0.05));
}

}  // namespace
}  // namespace hdpsim::spec
