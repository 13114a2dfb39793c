#include "sim/program/ring_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hdpsim {
namespace {

// One span as a rank of the ring sees it: its local tokens, and how often such a block occurs on an average rank.
struct LocalSpan {
  std::int64_t tokens;
  double own_weight;
  double step_weight;
};

LocalSpan local_span(std::int64_t tokens, std::int64_t ranks) {
  if (tokens >= ranks) return {(tokens + ranks - 1) / ranks, 1, 1};
  const double share = static_cast<double>(tokens) / static_cast<double>(ranks);
  return {1, share, share * share};
}

std::vector<LocalSpan> merged_by_length(const MicroBatch& micro_batch) {
  const auto ranks = static_cast<std::int64_t>(micro_batch.group.size());
  std::vector<LocalSpan> spans;
  spans.reserve(micro_batch.spans.size());
  for (const Span& span : micro_batch.spans) spans.push_back(local_span(span.tokens, ranks));
  if (micro_batch.padding > 0) spans.push_back(local_span(micro_batch.padding, ranks));
  std::sort(spans.begin(), spans.end(), [](const LocalSpan& a, const LocalSpan& b) { return a.tokens < b.tokens; });
  std::vector<LocalSpan> merged;
  for (const LocalSpan& span : spans) {
    if (merged.empty() || merged.back().tokens != span.tokens) {
      merged.push_back(span);
    } else {
      merged.back().own_weight += span.own_weight;
      merged.back().step_weight += span.step_weight;
    }
  }
  return merged;
}

void add_block(Attention& launch, AttentionBlock block, double weight) {
  block.count = std::llround(weight);
  if (block.count > 0) launch.blocks.push_back(block);
}

}  // namespace

RingAttention ring_attention(const MicroBatch& micro_batch, const Transformer& model, std::int64_t tp,
                             Direction direction) {
  const std::int64_t kv_heads = std::max<std::int64_t>(1, model.kv_heads / tp);
  const Attention empty{{}, model.heads / tp, kv_heads, model.head_dim, direction};
  RingAttention ring{empty, empty};
  const bool alone = micro_batch.group.size() == 1;
  for (const LocalSpan& span : merged_by_length(micro_batch)) {
    add_block(ring.own, {span.tokens, span.tokens, Mask::causal, 1}, span.own_weight);
    if (!alone) add_block(ring.step, {span.tokens, (span.tokens + 1) / 2, Mask::full, 1}, span.step_weight);
  }
  return ring;
}

}  // namespace hdpsim
