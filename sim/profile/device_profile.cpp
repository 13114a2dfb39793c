#include "sim/profile/device_profile.h"

#include <array>
#include <utility>
#include <vector>

namespace hdpsim {
namespace {

double ratio(Bandwidth achieved, Bandwidth line) {
  return static_cast<double>(achieved.bytes_per_second()) / static_cast<double>(line.bytes_per_second());
}

AttentionBlock block_of(const AttentionCurve& curve, std::int64_t queries, std::int64_t keys, std::int64_t count = 1) {
  return {queries, keys, curve.causal ? Mask::causal : Mask::full, count};
}

Flops work_of(const AttentionCurve& curve, std::vector<AttentionBlock> blocks) {
  return flops_of({.blocks = std::move(blocks),
                   .heads = curve.heads,
                   .kv_heads = curve.kv_heads,
                   .head_dim = curve.head_dim,
                   .direction = curve.backward ? Direction::backward : Direction::forward});
}

}  // namespace

std::string_view other_attention_name(OtherAttention kernel) {
  constexpr std::string_view prefix = "attention_";
  return other_attention_key(kernel).substr(prefix.size());
}

std::string_view other_attention_key(OtherAttention kernel) {
  constexpr std::array<std::string_view, other_attentions> keys = {"attention_triton", "attention_flash2",
                                                                   "attention_cudnn"};
  return keys.at(static_cast<std::size_t>(kernel));
}

double SendRecvRate::efficiency() const {
  return ratio(bandwidth, line_rate);
}

double CollectiveRate::efficiency() const {
  return ratio(bandwidth, line_rate);
}

Flops sample_work(const AttentionCurve& curve, const AttentionSample& sample) {
  return work_of(curve, {block_of(curve, sample.queries, sample.keys, sample.count)});
}

Flops sample_work(const AttentionCurve& curve, const PackedSample& sample) {
  std::vector<AttentionBlock> blocks;
  for (const PackedDocument& document : sample.documents) {
    blocks.push_back(block_of(curve, document.queries, document.keys));
  }
  return work_of(curve, std::move(blocks));
}

Flops sample_work(const GemmShapeSample& sample) {
  return flops_of(Gemm{sample.m, sample.n, sample.k});
}

std::string_view copy_kind_name(CopyKind kind) {
  constexpr std::array<std::string_view, copy_kind_count> names = {"d2h", "h2d", "d2h_of_both", "h2d_of_both"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view message_kind_name(MessageKind kind) {
  constexpr std::array<std::string_view, message_kind_count> names = {"send_recv", "all_reduce", "all_gather",
                                                                      "reduce_scatter", "all_to_all"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view link_kind_name(LinkKind kind) {
  return kind == LinkKind::nvlink ? "nvlink" : "network";
}

}  // namespace hdpsim
