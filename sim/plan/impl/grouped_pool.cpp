#include "sim/plan/impl/grouped_pool.h"

#include <algorithm>
#include <utility>

namespace hdpsim {

std::vector<std::int64_t> group_sizes(const PlanningContext& context) {
  std::vector<std::int64_t> sizes;
  const std::int64_t per_node = context.ranks_per_node;
  for (std::int64_t size = 1; size <= context.ranks; ++size) {
    const bool fits_nodes = size < per_node ? per_node % size == 0 : size % per_node == 0;
    if (context.ranks % size == 0 && fits_nodes) sizes.push_back(size);
  }
  return sizes;
}

PlanningContext in_groups(const PlanningContext& context, std::int64_t size, const OrderedBatch& batch) {
  if (size == 1) return context;
  PlanningContext pool = context;
  pool.ranks /= size;
  pool.ranks_per_node = std::max<std::int64_t>(1, context.ranks_per_node / size);
  pool.capacity *= size;
  if (pool.host_tokens) *pool.host_tokens *= size;
  if (pool.offload_room) {
    pool.offload_room->most_tokens *= size;
    pool.offload_room->rounding *= size;
  }
  const std::int64_t tokens = std::min(pool.capacity, batch.tokens);
  const double share = static_cast<double>(tokens) / static_cast<double>(batch.tokens);
  pool.work = context.work.of_groups(size, batch.pairs * share, tokens);
  if (!context.rank_speeds) return pool;
  pool.rank_speeds = [of_ranks = context.rank_speeds, size](std::int64_t step) {
    const std::vector<double> speeds = of_ranks(step);
    std::vector<double> slowest;
    for (auto first = speeds.begin(); first != speeds.end(); first += size) {
      slowest.push_back(*std::min_element(first, first + size));
    }
    return slowest;
  };
  return pool;
}

Plan on_ranks(Plan plan, std::int64_t size, const PlanningContext& context) {
  if (size == 1) return plan;
  plan.ranks = context.ranks;
  plan.capacity = context.capacity;
  const auto count = static_cast<std::size_t>(size);
  for (MicroBatch& micro_batch : plan.micro_batches) {
    std::vector<HdpRank> ranks;
    ranks.reserve(micro_batch.group.size() * count);
    for (const HdpRank group : micro_batch.group) {
      for (std::size_t i = 0; i < count; ++i) ranks.emplace_back(group.index() * count + i);
    }
    micro_batch.group = std::move(ranks);
  }
  std::vector<std::vector<MicroBatchId>> schedule;
  schedule.reserve(plan.schedule.size() * count);
  for (const std::vector<MicroBatchId>& of_group : plan.schedule) {
    for (std::size_t i = 0; i < count; ++i) schedule.push_back(of_group);
  }
  plan.schedule = std::move(schedule);
  return plan;
}

}  // namespace hdpsim
