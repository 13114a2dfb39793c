#include "sim/plan/impl/plan_builder.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/division.h"

namespace hdpsim {
namespace {

MicroBatch made(std::vector<HdpRank> group, std::vector<Span> spans, const RingSize& size) {
  MicroBatch micro_batch;
  micro_batch.group = std::move(group);
  micro_batch.spans = std::move(spans);
  micro_batch.offload = size.offload;
  micro_batch.token_wise = size.token_wise;
  return micro_batch;
}

std::vector<Span> whole_spans(std::span<const SizedSequence> sequences) {
  std::vector<Span> spans;
  spans.reserve(sequences.size());
  for (const SizedSequence& each : sequences) spans.push_back({SequenceId(each.sequence), 0, each.tokens});
  return spans;
}

std::vector<HdpRank> consecutive_ranks(std::size_t first, std::int64_t count) {
  std::vector<HdpRank> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) ranks.emplace_back(first + i);
  return ranks;
}

}  // namespace

PlanBuilder::PlanBuilder(std::string policy, const PlanningContext& context, const Batch& batch, std::int64_t step)
    : batch_(&batch) {
  plan_.policy = std::move(policy);
  plan_.step = step;
  plan_.ranks = context.ranks;
  plan_.capacity = context.capacity;
  plan_.layers = context.layers;
  HDPSIM_CHECK(batch.sequences.size() <= UINT32_MAX, "{} sequences: ids are 32 bits wide", batch.sequences.size());
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    HDPSIM_CHECK(length(i) >= 1 && length(i) <= context.context,
                 "sequence {} of step {} has {} tokens, the context is {}", i, step, length(i), context.context);
  }
}

Plan PlanBuilder::take() {
  plan_.sequence_tokens.reserve(batch_->sequences.size());
  for (const Sequence& sequence : batch_->sequences) plan_.sequence_tokens.push_back(sequence.tokens);
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(plan_.ranks));
  for (const MicroBatch& micro_batch : plan_.micro_batches) {
    for (const HdpRank rank : micro_batch.group) ++counts[rank.index()];
  }
  plan_.schedule.resize(counts.size());
  for (std::size_t rank = 0; rank < counts.size(); ++rank) plan_.schedule[rank].reserve(counts[rank]);
  for (std::size_t id = 0; id < plan_.micro_batches.size(); ++id) {
    for (const HdpRank rank : plan_.micro_batches[id].group) plan_.schedule[rank.index()].emplace_back(id);
  }
  return std::move(plan_);
}

void PlanBuilder::add(std::vector<HdpRank> group, std::span<const std::size_t> sequences, const RingSize& size) {
  add(made(std::move(group), whole(sequences), size));
}

void PlanBuilder::add(std::vector<HdpRank> group, std::span<const SizedSequence> sequences, const RingSize& size) {
  add(made(std::move(group), whole_spans(sequences), size));
}

void PlanBuilder::add(MicroBatch micro_batch) {
  micro_batch.update = update_;
  plan_.micro_batches.push_back(std::move(micro_batch));
}

std::vector<Span> PlanBuilder::whole(std::span<const std::size_t> sequences) const {
  std::vector<Span> spans;
  spans.reserve(sequences.size());
  for (const std::size_t sequence : sequences) spans.push_back({SequenceId(sequence), 0, length(sequence)});
  return spans;
}

void PlanBuilder::add_consecutive(std::size_t first_rank, const RingSize& size,
                                  std::span<const std::size_t> sequences) {
  add(made(consecutive_ranks(first_rank, size.degree), whole(sequences), size));
}

void PlanBuilder::add_consecutive(std::size_t first_rank, const RingSize& size,
                                  std::span<const SizedSequence> sequences) {
  add(consecutive(first_rank, size, sequences));
}

void PlanBuilder::add_padded(std::size_t first_rank, const RingSize& size, std::span<const SizedSequence> rows) {
  add_consecutive(first_rank, size, rows);
  plan_.micro_batches.back().padded = std::any_of(
      rows.begin(), rows.end(), [&](const SizedSequence& row) { return row.tokens > length(row.sequence); });
}

void PlanBuilder::add_in_turn(const std::vector<SequencePack>& packs, std::int64_t cp, const RingSizing& sizing) {
  const auto replicas = static_cast<std::size_t>(plan_.ranks / cp);
  reserve_more(packs.size());
  for (std::size_t i = 0; i < packs.size(); ++i) {
    if (packs[i].sequences.empty()) continue;
    add_consecutive(i % replicas * static_cast<std::size_t>(cp), sizing.on(cp, packs[i].tokens), packs[i].sequences);
  }
}

void PlanBuilder::add_in_turn(const PackList& packs, std::int64_t cp, const RingSizing& sizing) {
  const auto replicas = static_cast<std::size_t>(plan_.ranks / cp);
  reserve_more(packs.size());
  for (std::size_t i = 0; i < packs.size(); ++i) {
    add_consecutive(i % replicas * static_cast<std::size_t>(cp), sizing.on(cp, tokens_of(packs[i])), packs[i]);
  }
}

MicroBatch PlanBuilder::consecutive(std::size_t first_rank, const RingSize& size,
                                    std::span<const SizedSequence> sequences) const {
  return made(consecutive_ranks(first_rank, size.degree), whole_spans(sequences), size);
}

void PlanBuilder::add_with_local(std::size_t first_rank, std::span<const std::size_t> shared,
                                 const std::vector<SequenceList>& local) {
  if (shared.empty()) {
    for (std::size_t i = 0; i < local.size(); ++i) {
      if (!local[i].empty()) add_consecutive(first_rank + i, {.degree = 1}, local[i]);
    }
    return;
  }
  add_consecutive(first_rank, {.degree = std::ssize(local)}, shared);
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (!local[i].empty()) plan_.micro_batches.back().local.push_back({i, whole(local[i])});
  }
}

void PlanBuilder::add_served(std::size_t first_rank, std::int64_t ranks, std::span<const std::size_t> sequences,
                             std::vector<ServedQueries> moved) {
  add_consecutive(first_rank, {.degree = ranks}, sequences);
  if (ranks == 1 || plan_.micro_batches.back().tokens() < 2 * ranks) return;
  plan_.micro_batches.back().cut = TokenCut::served;
  plan_.micro_batches.back().moved = std::move(moved);
}

void PlanBuilder::add_chunks(HdpRank rank, std::size_t sequence, std::int64_t tokens, std::int64_t kept,
                             const std::function<double(const MicroBatch&)>& offload) {
  const std::int64_t all = length(sequence);
  const std::int64_t chunks = divided(all, tokens);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    MicroBatch micro_batch;
    micro_batch.group = {rank};
    const std::int64_t begin = chunk * tokens;
    micro_batch.spans = {{SequenceId(sequence), begin, std::min(tokens, all - begin)}};
    micro_batch.continues = chunk > 0;
    micro_batch.repeats_forward = chunk < chunks - kept;
    if (!micro_batch.repeats_forward) micro_batch.offload = offload(micro_batch);
    add(std::move(micro_batch));
  }
}

}  // namespace hdpsim
