#include <fmt/format.h>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;

constexpr char study[] = R"(name: long
cluster: {preset: a100-rail-3tier, gpus: 32}
model: {preset: llama-7b}
profile: bytescale-implied
data:
  lengths: {fixed: 1Gi}
  context: 1Gi
  tokens_per_step: 1Gi
  steps: 1
mesh: {tp: 2, capacity: 64Mi}
plans: [static]
)";

TEST_CASE("a step longer than 106 days is refused at the quantity that asks for it, and nothing is written",
          "[range]") {
  const Workplace here;
  here.write("study.yaml", study);
  for (const char* command : {"study study.yaml --out out", "study study.yaml", "replay study.yaml --out out"}) {
    const std::string outcome = here.refusal(command);
    CHECK_THAT(outcome,
               Contains("study.yaml:7:12: error: a micro-batch of this study: a time is longer than 106 days"));
    CHECK_THAT(outcome, Contains("'data.context' is "));
    CHECK_FALSE(fs::exists(here.folder() / "out"));
  }
}

TEST_CASE("numbers that no cluster, model or study has are refused where they stand, with their range", "[range]") {
  const Workplace here;
  here.write("study.yaml", study);
  struct Refused {
    const char* value;
    const char* range;
  };
  for (const auto& [value, range] :
       {Refused{"cluster.speed={0-31: 1e-9}", "from 0.001 to 1000"}, Refused{"cluster.speed={0-31: 1e9}", "1000"},
        Refused{"cluster.node.nics.bandwidth=1 B/s", "from 1 MB/s to 1000 TB/s"},
        Refused{"cluster.tiers.tor.latency=1000 s", "from 0 s to 1 s"},
        Refused{"model.num_hidden_layers=2147483648", "from 1 to 10000"},
        Refused{"model.intermediate_size=1099511627776", "from 1 to 1e+07"},
        Refused{"overheads.per_micro_batch=1000000 s", "from 0 s to 3600 s"},
        Refused{"faults=[{device: 3, slowdown: 1e6}]", "from 1 to 1000"}, Refused{"data.context=2Gi", "from 1 to 1Gi"},
        Refused{"mesh.tp=1M", "from 1 to 65536"}}) {
    CHECK_THAT(here.refusal(fmt::format("study study.yaml --set '{}'", value)),
               Contains("it must be ") && Contains(range));
  }
}

TEST_CASE("a cable of a graph carries a share between 0 and 1, as NICs and tiers do", "[range]") {
  const Workplace here;
  here.write("graph.yaml", R"(name: graph
device: H100-80GB
gpus: 16
node: {gpus: 8, gpu_memory: 80 GB, host_memory: 2 TB, nics: {count: 8, bandwidth: 50 GB/s}, pcie: {bandwidth: 64 GB/s}}
graph:
  switches: {leaf0: {latency: 0.5 us}, leaf1: {latency: 0.5 us}}
  cables: [{from: leaf0, to: leaf1, bandwidth: 50 GB/s, count: 2}]
  nodes: {0: leaf0, 1: leaf1}
links: {leaf0 to leaf1 1: 1000000000000000000}
)");
  for (const char* command : {"check graph.yaml", "cluster show graph.yaml", "comm all_reduce --cluster graph.yaml"}) {
    CHECK_THAT(here.refusal(command),
               Contains("graph.yaml:9:27: error: a share of 1000000000000000000, it must be 0 or from"));
  }
}

}  // namespace
}  // namespace hdpsim::spec
