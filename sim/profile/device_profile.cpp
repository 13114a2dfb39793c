#include "sim/profile/device_profile.h"

#include <array>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

double ratio(Bandwidth achieved, Bandwidth line) {
  return static_cast<double>(achieved.bytes_per_second()) / static_cast<double>(line.bytes_per_second());
}

double exact_area(const AttentionCurve& curve, std::int64_t queries, std::int64_t keys) {
  const auto rows = static_cast<double>(queries);
  return curve.causal ? rows * (rows + 1) / 2 : rows * static_cast<double>(keys);
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

std::size_t fp8_table(ProductFormat format) {
  HDPSIM_CHECK(in_fp8(format), "products of elements have no table in fp8");
  if (format == ProductFormat::fp8_blocks) return 1;
  return format == ProductFormat::mxfp8 ? 2 : 0;
}

std::string_view fp8_table_key(std::size_t table) {
  constexpr std::array<std::string_view, fp8_tables> keys = {"gemm_fp8", "gemm_fp8_blocks", "gemm_mxfp8"};
  return keys.at(table);
}

double SendRecvRate::efficiency() const {
  return ratio(bandwidth, line_rate);
}

double CollectiveRate::efficiency() const {
  return ratio(bandwidth, line_rate);
}

Flops sample_work(const AttentionCurve& curve, const AttentionSample& sample) {
  const double area = exact_area(curve, sample.queries, sample.keys);
  const auto width = static_cast<double>(curve.heads * curve.head_dim * sample.count);
  const Flops forward(4 * width * area);
  return curve.backward ? 2.5 * forward : forward;
}

Flops sample_work(const AttentionCurve& curve, const PackedSample& sample) {
  double area = 0;
  for (const PackedDocument& document : sample.documents) area += exact_area(curve, document.queries, document.keys);
  const Flops forward(4 * static_cast<double>(curve.heads * curve.head_dim) * area);
  return curve.backward ? 2.5 * forward : forward;
}

Flops sample_work(const GemmShapeSample& sample) {
  return Flops(2.0 * static_cast<double>(sample.m) * static_cast<double>(sample.n) * static_cast<double>(sample.k));
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
