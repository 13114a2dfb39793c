#include "sim/plan/impl/plan_builder.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {

SequenceList longest_first(const Batch& batch) {
  SequenceList order(batch.sequences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return batch.sequences[a].tokens > batch.sequences[b].tokens; });
  return order;
}

PlanBuilder::PlanBuilder(std::string policy, const PlanningContext& context, const Batch& batch, std::int64_t step) {
  plan_.policy = std::move(policy);
  plan_.step = step;
  plan_.ranks = context.ranks;
  plan_.capacity = context.capacity;
  plan_.layers = context.layers;
  plan_.schedule.resize(static_cast<std::size_t>(context.ranks));
  HDPSIM_CHECK(batch.sequences.size() <= UINT32_MAX, "{} sequences: ids are 32 bits wide", batch.sequences.size());
  plan_.sequence_tokens.reserve(batch.sequences.size());
  for (const Sequence& sequence : batch.sequences) {
    HDPSIM_CHECK(sequence.tokens >= 1 && sequence.tokens <= context.context,
                 "sequence {} of step {} has {} tokens, the context is {}", plan_.sequence_tokens.size(), step,
                 sequence.tokens, context.context);
    plan_.sequence_tokens.push_back(sequence.tokens);
  }
}

void PlanBuilder::add(std::vector<HdpRank> group, std::span<const std::size_t> sequences, const RingSize& size) {
  const MicroBatchId id(plan_.micro_batches.size());
  for (const HdpRank rank : group) plan_.schedule[rank.index()].push_back(id);
  MicroBatch& micro_batch = plan_.micro_batches.emplace_back();
  micro_batch.group = std::move(group);
  micro_batch.offload = size.offload;
  micro_batch.token_wise = size.token_wise;
  micro_batch.spans.reserve(sequences.size());
  for (const std::size_t sequence : sequences) {
    micro_batch.spans.push_back({SequenceId(sequence), 0, plan_.sequence_tokens[sequence]});
  }
}

void PlanBuilder::add_consecutive(std::size_t first_rank, const RingSize& size,
                                  std::span<const std::size_t> sequences) {
  const auto degree = static_cast<std::size_t>(size.degree);
  std::vector<HdpRank> group;
  group.reserve(degree);
  for (std::size_t i = 0; i < degree; ++i) group.emplace_back(first_rank + i);
  add(std::move(group), sequences, size);
}

}  // namespace hdpsim
