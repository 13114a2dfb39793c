#include "sim/program/ring_launches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/base/check.h"
#include "sim/model/mixing.h"
#include "sim/model/shares.h"

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

template <typename Visit>
void for_each_length(const MicroBatch& micro_batch, const Visit& visit) {
  for (const Span& span : micro_batch.spans) visit(span.tokens);
  if (micro_batch.padding > 0) visit(micro_batch.padding);
}

// Every pass asks: valid until the thread asks again.
const std::vector<LocalSpan>& merged_by_length(const MicroBatch& micro_batch, std::int64_t ranks) {
  static thread_local std::vector<LocalSpan> spans;
  static thread_local std::vector<LocalSpan> merged;
  spans.clear();
  merged.clear();
  for_each_length(micro_batch, [&](std::int64_t tokens) { spans.push_back(local_span(tokens, ranks)); });
  std::sort(spans.begin(), spans.end(), [](const LocalSpan& a, const LocalSpan& b) { return a.tokens < b.tokens; });
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

// Lengths of spans, each with its number, for a layer whose tokens see `most` tokens; empty if they see all.
std::map<std::int64_t, std::int64_t> spans_by_length(const MicroBatch& micro_batch, std::int64_t most) {
  std::map<std::int64_t, std::int64_t> counts;
  if (most == 0) return counts;
  for_each_length(micro_batch, [&](std::int64_t tokens) { ++counts[tokens]; });
  return counts;
}

void add_blocks(Attention& launch, const std::vector<AttentionBlock>& blocks, std::int64_t times) {
  for (AttentionBlock block : blocks) {
    block.count *= times;
    launch.blocks.push_back(block);
  }
}

// The tokens before a rank's two parts of a span that these see.
std::int64_t halo_of(const Layer& layer, std::int64_t tokens, std::int64_t ranks) {
  const std::int64_t part = divided(tokens, 2 * ranks);
  const std::int64_t others = tokens - divided(tokens, ranks);
  if (layer.indexer) return others;
  if (layer.window > 0) return std::min(2 * (layer.window - 1), others);
  return part % layer.attention_chunk == 0 ? 0 : std::min(layer.attention_chunk, others);
}

// Adds spans of equal length that are cut over the ranks. A part of the span knows no token before it; what all parts
// together miss of the span's area is shared evenly.
void add_local(const Layer& layer, std::int64_t tokens, std::int64_t count, std::int64_t ranks, RingAttention& ring) {
  if (ranks == 1) return add_blocks(ring.own, attention_blocks(layer, tokens), count);
  const std::int64_t parts = std::min(tokens, 2 * ranks);
  const std::int64_t part = divided(tokens, parts);
  add_blocks(ring.own, attention_blocks(layer, part), std::max<std::int64_t>(1, count * parts / ranks));
  const double missed = attention_area(layer, tokens) - static_cast<double>(parts) * attention_area(layer, part);
  const std::int64_t keys = std::min(most_keys(layer), tokens);
  const double rows = std::max(0.0, missed) / static_cast<double>(keys * ranks);  // of a span on a rank
  const std::int64_t whole = std::llround(rows);
  const std::int64_t all = std::llround(rows * static_cast<double>(count));
  if (whole > 0) ring.step.blocks.push_back({whole, keys, Mask::full, count});
  if (whole == 0 && all > 0) ring.step.blocks.push_back({all, keys, Mask::full, 1});
  *ring.halo += halo_of(layer, tokens, ranks) * count;
}

bool is_cut_short(const Layer& layer, const std::map<std::int64_t, std::int64_t>& spans) {
  return !spans.empty() && spans.rbegin()->first > most_keys(layer);
}

// What the tokens of a chunk see of the chunks before it: as rows that see all keys which these tokens reach.
void add_earlier(const Layer& layer, const MicroBatch& micro_batch, Attention& launch) {
  const std::int64_t earlier = micro_batch.earlier_keys();
  const std::int64_t tokens = micro_batch.tokens();
  if (earlier == 0) return;
  if (most_keys(layer) == 0) return launch.blocks.push_back({tokens, earlier, Mask::full, 1});
  const double pairs =
      attention_area(layer, earlier + tokens) - attention_area(layer, earlier) - attention_area(layer, tokens);
  const std::int64_t keys = std::min(earlier, most_keys(layer));
  const std::int64_t rows = std::llround(pairs / static_cast<double>(keys));
  if (rows > 0) launch.blocks.push_back({rows, keys, Mask::full, 1});
}

RingAttention steps_of(const MicroBatch& micro_batch, const Transformer& model, std::int64_t ranks,
                       const Attention& empty) {
  RingAttention ring{empty, empty};
  add_earlier(model, micro_batch, ring.own);
  if (const auto spans = spans_by_length(micro_batch, most_keys(model)); is_cut_short(model, spans)) {
    if (ranks > 1) ring.halo = 0;
    for (const auto& [tokens, count] : spans) add_local(model, tokens, count, ranks, ring);
    return ring;
  }
  const std::vector<LocalSpan>& merged = merged_by_length(micro_batch, ranks);
  ring.own.blocks.reserve(ring.own.blocks.size() + merged.size());
  if (ranks > 1) ring.step.blocks.reserve(merged.size());
  for (const LocalSpan& span : merged) {
    add_block(ring.own, {span.tokens, span.tokens, Mask::causal, 1}, span.own_weight);
    if (ranks > 1) add_block(ring.step, {span.tokens, (span.tokens + 1) / 2, Mask::full, 1}, span.step_weight);
  }
  return ring;
}

// All steps of a ring of `ranks` in the launch of the first.
void join_steps(RingAttention& ring, std::int64_t ranks) {
  const std::int64_t steps = ring.halo ? 1 : ranks - 1;
  for (AttentionBlock block : ring.step.blocks) {
    block.keys *= steps;
    ring.own.blocks.push_back(block);
  }
  ring.step.blocks.clear();
  ring.halo.reset();
}

RingAttention joined_steps(const MicroBatch& micro_batch, const Transformer& model, std::int64_t ranks,
                           const Attention& empty) {
  RingAttention ring = steps_of(micro_batch, model, ranks, empty);
  join_steps(ring, ranks);
  return ring;
}

// A launch of as many columns of an attention has the FLOPs of products of `columns` columns alone, without values:
// one forward, or in backward, which has 2.5 times a forward's, three.
std::int64_t width_of_scores(std::int64_t columns, Direction direction) {
  return divided(direction == Direction::forward ? 5 * columns : 6 * columns, 10);
}

// The scores of all tokens that a query could choose, of every head of the indexer. Backward has those of the chosen
// pairs, `own`, again, and their two gradients.
Attention scores_of(const MicroBatch& micro_batch, const Transformer& model, std::int64_t ranks, const Attention& own) {
  const std::int64_t width = width_of_scores(model.indexer->head_dim, own.direction);
  const Attention empty{.blocks = {},
                        .heads = model.indexer->heads,
                        .kv_heads = 1,
                        .head_dim = width,
                        .direction = own.direction,
                        .kernel_dim = model.indexer->head_dim};
  if (own.direction == Direction::backward) {
    Attention chosen = empty;
    chosen.blocks = own.blocks;
    return chosen;
  }
  Transformer seeing_all = model;
  seeing_all.indexer.reset();
  return joined_steps(micro_batch, seeing_all, ranks, empty).own;
}

// `ring` has all that its ranks attend to in its own launch.
RingAttention with_scores(RingAttention ring, const MicroBatch& micro_batch, const Transformer& model,
                          std::int64_t ranks) {
  if (!scores_keys(model)) return ring;
  ring.scores = scores_of(micro_batch, model, ranks, ring.own);
  if (ring.own.direction == Direction::forward) return ring;
  ring.target = ring.own;
  ring.target->direction = Direction::forward;
  ring.target->kernel_dim = core_heads(model).key_dim;
  ring.target->head_dim = width_of_scores(ring.target->kernel_dim, Direction::forward);
  return ring;
}

}  // namespace

Attention empty_launch(const Transformer& model, std::int64_t tp, const GroupSharing& sharing, Direction direction) {
  const std::int64_t parts = tp * sharing.inner;
  const CoreHeads core = core_heads(model);
  const std::int64_t kv_heads = std::max<std::int64_t>(1, core.kv_heads / parts);
  return {{}, model.heads / parts, kv_heads, (core.key_dim + core.value_dim) / 2, direction};
}

RingAttention ring_attention(const MicroBatch& micro_batch, const Transformer& model, std::int64_t tp,
                             const GroupSharing& sharing, Direction direction) {
  const std::int64_t ranks = sharing.parties;
  HDPSIM_CHECK(!model.indexer || ranks == 1, "{} ranks choose keys and gather none", ranks);
  const Attention empty = empty_launch(model, tp, sharing, direction);
  return with_scores(steps_of(micro_batch, model, ranks, empty), micro_batch, model, ranks);
}

RingAttention gathered_attention(const MicroBatch& micro_batch, const Transformer& model, std::int64_t tp,
                                 Direction direction) {
  const std::int64_t ranks = std::ssize(micro_batch.group);
  const Attention empty = empty_launch(model, tp, {}, direction);
  return with_scores(joined_steps(micro_batch, model, ranks, empty), micro_batch, model, ranks);
}

}  // namespace hdpsim
