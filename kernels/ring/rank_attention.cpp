#include "kernels/ring/rank_attention.h"

#include <cstddef>
#include <utility>

namespace hdpsim::kernels {
namespace {

// The values of rows of keys and values.
const void* values_of(const AttentionHeads& heads, const void* kv, Element element) {
  return static_cast<const std::byte*>(kv) + static_cast<std::size_t>(key_width(heads)) * element_bytes(element);
}

}  // namespace

std::vector<AttentionBlock> limited(std::vector<AttentionBlock> blocks, const Reach& reach) {
  if (reach.chunk > 0) {
    std::vector<AttentionBlock> parts;
    for (const AttentionBlock& block : blocks) {
      const std::vector<AttentionBlock> of_block = chunked_blocks(block, reach.chunk);
      parts.insert(parts.end(), of_block.begin(), of_block.end());
    }
    return parts;
  }
  for (AttentionBlock& block : blocks) block.window = reach.window;
  return blocks;
}

AttentionForward forward_launch(const RankLaunch& launch, const RingForward& op, const void* kv) {
  const AttentionHeads& heads = launch.heads;
  return {.heads = heads,
          .blocks = launch.blocks,
          .q = {op.q, query_width(heads)},
          .k = {kv, kv_width(heads)},
          .v = {values_of(heads, kv, launch.element), kv_width(heads)},
          .o = {op.o, output_width(heads)},
          .lse = op.lse,
          .lse_stride = launch.rows};
}

AttentionBackward backward_launch(const RankLaunch& launch, const RingBackward& op, const void* kv, float* d_kv,
                                  const float* delta) {
  const AttentionHeads& heads = launch.heads;
  return {.heads = heads,
          .blocks = launch.blocks,
          .q = {op.q, query_width(heads)},
          .k = {kv, kv_width(heads)},
          .v = {values_of(heads, kv, launch.element), kv_width(heads)},
          .d_o = {op.d_o, output_width(heads)},
          .lse = op.lse,
          .delta = delta,
          .lse_stride = launch.rows,
          .d_q = {op.d_q, query_width(heads)},
          .d_k = {d_kv, kv_width(heads)},
          .d_v = {d_kv + key_width(heads), kv_width(heads)},
          .deterministic = op.deterministic};
}

void begin_backward(Backend& backend, const AttentionHeads& heads, std::int64_t rows, const RingBackward& op,
                    float* delta) {
  backend.run(AttentionDelta{.heads = heads,
                             .rows = rows,
                             .o = {op.o, output_width(heads)},
                             .d_o = {op.d_o, output_width(heads)},
                             .delta = delta});
  backend.fill_bytes(op.d_q, 0, static_cast<std::size_t>(rows * query_width(heads)) * sizeof(float));
}

}  // namespace hdpsim::kernels
