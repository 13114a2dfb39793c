// Collectives of whole clusters: their plans, and what they take alone and beside a message.

#include <benchmark/benchmark.h>

#include <limits>

#include "sim/network/collective_plan.h"
#include "sim/network/impl/algorithms.h"
#include "sim/network/transfers.h"

namespace hdpsim {
namespace {

/// Rails of 8 under three tiers, oversubscribed by two at the first, so that every link of the fabric is there.
ClusterSpec rails_of(std::int64_t devices) {
  ClusterSpec spec;
  spec.devices = devices;
  spec.devices_per_node = 8;
  spec.nvlink = 300_GBps;
  spec.nics_per_node = 8;
  spec.nic = 25_GBps;
  spec.tiers = {{.name = "tor", .fan_in = 64, .oversubscription = 2, .latency = 1_us},
                {.name = "aggregation", .fan_in = 32, .latency = 2_us},
                {.name = "core", .fan_in = 64, .latency = 4_us}};
  return spec;
}

/// From the cluster's description to the time of a byte, nothing else on the links.
void all_reduce_alone(benchmark::State& state, CollectiveAlgorithm algorithm) {
  const ClusterSpec spec = rails_of(state.range(0));
  const std::vector<DeviceId> devices = consecutive_devices(0, spec.devices);
  for (auto _ : state) {
    const ClusterLinks links(spec, {});
    const CollectivePlan plan = plan_collective(links, CollectiveKind::all_reduce, algorithm, devices);
    benchmark::DoNotOptimize(seconds_a_byte(plan, links));
    state.counters["links"] = static_cast<double>(plan.parts.front().size());
  }
}

void ring_all_reduce(benchmark::State& state) {
  all_reduce_alone(state, CollectiveAlgorithm::ring);
}
BENCHMARK(ring_all_reduce)->Arg(1024)->Arg(12288)->Arg(131072)->Arg(1048576)->Unit(benchmark::kMillisecond);

void tree_all_reduce(benchmark::State& state) {
  all_reduce_alone(state, CollectiveAlgorithm::tree);
}
BENCHMARK(tree_all_reduce)->Arg(12288)->Arg(1048576)->Unit(benchmark::kMillisecond);

/// The same as a variable of FairShare beside a message that crosses its links.
void ring_all_reduce_beside_a_message(benchmark::State& state) {
  const ClusterSpec spec = rails_of(state.range(0));
  const ClusterLinks links(spec, {});
  const std::vector<DeviceId> devices = consecutive_devices(0, spec.devices);
  std::vector<double> rates(links.count());
  for (std::size_t link = 0; link < rates.size(); ++link) {
    rates[link] = static_cast<double>(links.rate(LinkId(link)).bytes_per_second());
  }
  FairShare network(rates);
  std::vector<FairShare::Link> across;
  const Route message = links.route(DeviceId(0), DeviceId(devices.size() - 1));
  for (const auto& [link, share] : message.binding_links()) {
    across.push_back(static_cast<FairShare::Link>(link.index()));
  }
  for (auto _ : state) {
    std::vector<Transfer> transfers =
        transfers_of(plan_collective(links, CollectiveKind::all_reduce, CollectiveAlgorithm::ring, devices), 1e9);
    transfers.push_back({across, std::numeric_limits<double>::infinity()});
    benchmark::DoNotOptimize(end_times(network, transfers));
  }
}
BENCHMARK(ring_all_reduce_beside_a_message)->Arg(12288)->Arg(1048576)->Unit(benchmark::kMillisecond);

void uniform_all_to_all(benchmark::State& state) {
  const ClusterSpec spec = rails_of(state.range(0));
  const std::vector<DeviceId> devices = consecutive_devices(0, spec.devices);
  for (auto _ : state) {
    const ClusterLinks links(spec, {});
    const CollectivePlan plan =
        plan_collective(links, CollectiveKind::all_to_all, CollectiveAlgorithm::direct, devices);
    benchmark::DoNotOptimize(seconds_a_byte(plan, links));
  }
}
BENCHMARK(uniform_all_to_all)->Arg(12288)->Arg(1048576)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hdpsim
