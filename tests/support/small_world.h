#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/engine/simulator.h"
#include "sim/network/fair_share_network.h"
#include "sim/plan/plan.h"
#include "sim/program/program.h"

namespace hdpsim::test {

inline constexpr Grain all_grains[] = {Grain::fluid, Grain::exact, Grain::closed_form};

/// Round costs from which times can be derived by hand: a product or a memory-bound part takes the time given to the
/// constructor, attention one picosecond per (query, key) pair forward and two backward.
class HandCosts final : public CostModel {
 public:
  explicit HandCosts(Duration per_gemm) : per_gemm_(per_gemm) {}
  [[nodiscard]] Estimate gemm(const Gemm&) const override { return {per_gemm_, Evidence::measured}; }
  [[nodiscard]] Estimate memory_bound(const MemoryBound&) const override { return {Duration{}, Evidence::formula}; }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return flash_attention_kernels(op); }
  [[nodiscard]] Estimate attention(const Attention& op) const override {
    std::int64_t pairs = 0;
    for (const AttentionBlock& block : op.blocks) {
      const std::int64_t area =
          block.mask == Mask::causal ? block.queries * (block.queries + 1) / 2 : block.queries * block.keys;
      pairs += area * block.count;
    }
    return {Duration::picoseconds(op.direction == Direction::forward ? pairs : 2 * pairs), Evidence::interpolated};
  }

 private:
  Duration per_gemm_;
};

/// A transformer with one head of dimension 64, so that keys and values of a token are 256 bytes.
inline Transformer one_head_model(std::int64_t layers) {
  Transformer model;
  model.name = "one-head";
  model.layers = layers;
  model.hidden = 64;
  model.heads = 1;
  model.kv_heads = 1;
  model.head_dim = 64;
  model.ffn_hidden = 128;
  model.vocabulary = 1000;
  return model;
}

/// One device per node, one NIC per device, and a single switch between the nodes.
inline ClusterSpec one_device_nodes(std::int64_t nodes, Bandwidth nic) {
  ClusterSpec cluster;
  cluster.name = "one-device-nodes";
  cluster.devices = nodes;
  cluster.nics_per_node = 1;
  cluster.nic = nic;
  cluster.nvlink = nic;
  cluster.pcie = nic;
  cluster.tiers = {{.name = "switch", .fan_in = nodes, .oversubscription = 1, .latency = {}}};
  return cluster;
}

/// Two nodes of eight devices with a NIC each.
inline ClusterSpec two_nodes() {
  ClusterSpec cluster;
  cluster.name = "two nodes";
  cluster.devices = 16;
  cluster.devices_per_node = 8;
  cluster.nics_per_node = 8;
  cluster.nvlink = 300_GBps;
  cluster.nic = 200_Gbps;
  cluster.pcie = 32_GBps;
  cluster.host_memory = 1000_GiB;
  cluster.device_memory = 80_GiB;
  cluster.tiers = {{.name = "leaf", .fan_in = 2, .oversubscription = 1, .latency = 1_us}};
  return cluster;
}

/// Every collective takes as long, whatever its kind and size.
inline Collective each_takes(Duration time) {
  return [time](CollectiveKind, Bytes) { return Estimate{time, Evidence::formula}; };
}

/// Every collective moves its bytes at this rate, whatever its kind.
inline Collective each_moves_at(Bandwidth rate) {
  return [rate](CollectiveKind, Bytes bytes) { return Estimate{bytes / rate, Evidence::formula}; };
}

/// The same for collectives in the group of a micro-batch.
inline SharingCosts each_shares_at(Bandwidth rate) {
  return [rate](const SharingRanks&, CollectiveKind, Bytes bytes) { return Estimate{bytes / rate, Evidence::formula}; };
}

/// A machine over a cluster, with no cost but those of `costs` and the messages.
struct HandMachine {
  ClusterSpec cluster;
  std::unique_ptr<CostModel> costs;
  std::unique_ptr<NetworkModel> network;
  std::unique_ptr<Placement> placement;
  Machine machine;

  HandMachine(ClusterSpec spec, std::unique_ptr<CostModel> cost_model, std::int64_t pp = 1)
      : cluster(std::move(spec)), costs(std::move(cost_model)), network(make_fair_share_network(cluster)) {
    Diagnostics problems;
    placement = make_placement("contiguous", Mesh{.hdp = cluster.devices / pp, .pp = pp}, cluster, problems);
    problems.throw_if_any();
    machine.cost = costs.get();
    machine.network = network.get();
    machine.placement = placement.get();
    machine.d2h = cluster.pcie;
    machine.h2d = cluster.pcie;
    for (std::int64_t d = 0; d < cluster.devices; ++d) {
      machine.speed.push_back(cluster.speed_of(DeviceId(static_cast<std::size_t>(d))));
    }
    machine.tensor_parallel = machine.pool = each_takes({});
  }
};

/// Micro-batches of one sequence each: (ranks, tokens), executed in this order.
inline Plan plan_of(std::int64_t ranks, std::int64_t layers,
                    const std::vector<std::pair<std::vector<std::size_t>, std::int64_t>>& micro_batches) {
  Plan plan;
  plan.policy = "by hand";
  plan.ranks = ranks;
  plan.capacity = 1 << 30;
  plan.layers = layers;
  plan.schedule.resize(static_cast<std::size_t>(ranks));
  for (const auto& [group, tokens] : micro_batches) {
    MicroBatch micro_batch;
    for (const std::size_t rank : group) {
      micro_batch.group.emplace_back(rank);
      plan.schedule[rank].emplace_back(plan.micro_batches.size());
    }
    micro_batch.spans = {{SequenceId(plan.sequence_tokens.size()), 0, tokens}};
    plan.sequence_tokens.push_back(tokens);
    plan.micro_batches.push_back(std::move(micro_batch));
  }
  return plan;
}

/// A plan for one rank: micro-batch after micro-batch its chunks, in tokens; a micro-batch of one chunk is a sequence
/// as a whole. All but the last `kept` chunks of a sequence repeat their forward pass.
inline Plan chunks_in_order(std::int64_t layers, const std::vector<std::vector<std::int64_t>>& sequences,
                            std::size_t kept = 1) {
  Plan plan = plan_of(1, layers, {});
  for (const std::vector<std::int64_t>& chunks : sequences) {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      MicroBatch& chunk = plan.micro_batches.emplace_back();
      chunk.group = {HdpRank(0)};
      chunk.spans = {{SequenceId(plan.sequence_tokens.size()), begin, chunks[i]}};
      chunk.continues = i > 0;
      chunk.repeats_forward = i + kept < chunks.size();
      plan.schedule[0].emplace_back(plan.micro_batches.size() - 1);
      begin += chunks[i];
    }
    plan.sequence_tokens.push_back(begin);
  }
  return plan;
}

}  // namespace hdpsim::test
