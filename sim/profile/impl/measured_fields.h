#pragma once

#include "sim/profile/impl/field_list.h"
#include "sim/profile/impl/profile_checks.h"
#include "sim/profile/profile_fits.h"

namespace hdpsim {

// The fields of the sections that only a measured profile has.

inline constexpr Range two_or_more{2, 1e12};

inline Words<CopyKind> copy_words() {
  return words_of<CopyKind>(copy_kind_count, copy_kind_name);
}
inline Words<MessageKind> message_words() {
  return words_of<MessageKind>(message_kind_count, message_kind_name);
}
inline Words<LinkKind> link_words() {
  return words_of<LinkKind>(2, link_kind_name);
}
inline Words<bool> mask_words() {
  return {{"full", false}, {"causal", true}};
}
inline Words<bool> heads_in_tile_words() {
  return {{"one", false}, {"group", true}};
}
inline Words<bool> direction_words() {
  return {{"forward", false}, {"backward", true}};
}

inline void declare(Fields<MemoryBoundSample>& f) {
  f.one_line();
  f.word("kernel", &MemoryBoundSample::kernel);
  f.quantity("bytes", &MemoryBoundSample::bytes);
  f.timing();
}

inline void declare(Fields<CopySample>& f) {
  f.one_line();
  f.choice("kind", "kind", &CopySample::kind, copy_words());
  f.quantity("bytes", &CopySample::bytes);
  f.timing();
}

inline void declare(Fields<MessageSample>& f) {
  f.one_line();
  f.choice("link", "link", &MessageSample::link, link_words());
  f.choice("kind", "kind", &MessageSample::kind, message_words());
  f.count("ranks", &MessageSample::ranks, {}, two_or_more);
  f.quantity("bytes", &MessageSample::bytes);
  f.timing();
}

inline void declare(Fields<Interference>& f) {
  f.one_line();
  f.word("compute", &Interference::compute);
  f.word("traffic", &Interference::traffic);
  f.count("ctas", &Interference::ctas, {}, not_negative);
  f.number("slowdown", &Interference::slowdown, {}, above_zero);
  f.number("p10", &Interference::slowdown_p10, {}, above_zero);
  f.number("p90", &Interference::slowdown_p90, {}, above_zero);
}

inline void declare(Fields<NoiseFloor>& f) {
  f.one_line();
  f.word("family", &NoiseFloor::family);
  f.number("mean", &NoiseFloor::mean);
  f.number("p90", &NoiseFloor::p90);
  f.number("max", &NoiseFloor::max);
  f.count("pairs", &NoiseFloor::pairs);
}

inline void declare(Fields<MeasuredSamples>& f) {
  f.list("memory_bound", {"a memory-bound sample", "sample"}, &MeasuredSamples::memory_bound);
  f.list("copies", {"a copy", "sample"}, &MeasuredSamples::copies);
  f.list("messages", {"a message", "sample"}, &MeasuredSamples::messages);
  f.list("interference", {"an interference", "pair"}, &MeasuredSamples::interference);
  f.list("noise", {"a noise floor", "family"}, &MeasuredSamples::noise);
}

inline void declare(Fields<FitError>& f) {
  f.one_line();
  f.number("mean", &FitError::mean);
  f.number("p95", &FitError::p95);
  f.number("max", &FitError::max);
}

inline void declare(Fields<FitQuality>& f) {
  f.count("samples", &FitQuality::samples);
  f.part("in_sample", "an error", &FitQuality::in_sample);
  f.part("held_out", "an error", &FitQuality::held_out);
  f.numbers("residual_deciles", &FitQuality::residual_deciles);
}

inline void declare(Fields<PairCost>& f) {
  f.one_line();
  f.count("length", &PairCost::length);
  f.number("pair_s", &PairCost::seconds);
}

inline void declare(Fields<AttentionFit>& f) {
  using A = AttentionFit;
  f.choice("mask", "mask", &A::causal, mask_words());
  f.choice("direction", "direction", &A::backward, direction_words());
  f.count("head_dim", &A::head_dim);
  f.tile("tile", {"queries", "keys"}, &A::tile_queries, &A::tile_keys);
  f.tile("gradient_tile", {"queries", "keys"}, &A::gradient_tile_queries, &A::gradient_tile_keys, Need::never);
  f.text("form", &A::form);
  f.number("launch_s", &A::launch_s);
  f.list("pairs", {"a knot of lengths", "knot", true}, &A::pairs);
  f.number("row_s", &A::row_s);
  f.number("tile_row_s", &A::tile_row_s);
  f.number("document_s", &A::document_s);
  f.number("wave_s", &A::wave_s);
  f.range("lengths", "a range of lengths", &A::shortest, &A::longest);
  f.part("quality", "the quality of a fit", &A::quality);
  f.optional_part("packed_quality", "the quality of a fit", &A::packed);
  f.check(check_attention_fit);
}

inline void declare(Fields<GemmFit>& f) {
  f.text("form", &GemmFit::form);
  f.number("launch_s", &GemmFit::launch_s);
  f.number("flop_s", &GemmFit::flop_s);
  f.number("element_s", &GemmFit::element_s);
  f.count("neighbours", &GemmFit::neighbours, {}, not_negative);
  f.number("power", &GemmFit::power, {}, above_zero);
  f.part("quality", "the quality of a fit", &GemmFit::quality);
  f.check(check_gemm_fit);
}

inline void declare(Fields<ByteCost>& f) {
  f.one_line();
  f.quantity("at", &ByteCost::at);
  f.optional_quantity("bandwidth", &ByteCost::bandwidth);
}

inline void declare(Fields<TransferCurve>& f) {
  f.time("latency", &TransferCurve::latency);
  f.list("costs", {"a knot of bytes", "knot", true}, &TransferCurve::costs);
  f.check(check_transfer_curve);
}

inline void declare(Fields<MemoryBoundFit>& f) {
  f.word("kernel", &MemoryBoundFit::kernel);
  f.text("form", &MemoryBoundFit::form);
  f.part("curve", "a curve", &MemoryBoundFit::curve);
  f.range("bytes", "a range of bytes", &MemoryBoundFit::least, &MemoryBoundFit::most);
  f.part("quality", "the quality of a fit", &MemoryBoundFit::quality);
}

inline void declare(Fields<CopyFit>& f) {
  f.choice("kind", "kind", &CopyFit::kind, copy_words());
  f.time("latency", &CopyFit::latency);
  f.quantity("bandwidth", &CopyFit::bandwidth);
  f.range("bytes", "a range of bytes", &CopyFit::least, &CopyFit::most);
  f.part("quality", "the quality of a fit", &CopyFit::quality);
}

inline void declare(Fields<MessageLine>& f) {
  f.one_line();
  f.time("latency", &MessageLine::latency);
  f.quantity("bandwidth", &MessageLine::bandwidth);
}

inline void declare(Fields<MessageFit>& f) {
  f.choice("link", "link", &MessageFit::link, link_words());
  f.choice("kind", "kind", &MessageFit::kind, message_words());
  f.count("ranks", &MessageFit::ranks, {}, two_or_more);
  f.optional_part("curve", "a curve", &MessageFit::curve);
  f.list("lines", {"a line", "line"}, &MessageFit::lines);
  f.range("bytes", "a range of bytes", &MessageFit::least, &MessageFit::most);
  f.part("quality", "the quality of a fit", &MessageFit::quality);
  f.check(check_message_fit);
}

inline void declare(Fields<ProfileFits>& f) {
  f.list("attention", {"an attention fit", "fit"}, &ProfileFits::attention);
  f.optional_part("gemm", "the fit of matrix products", &ProfileFits::gemm);
  f.list("memory_bound", {"a memory-bound fit", "fit"}, &ProfileFits::memory_bound);
  f.list("copies", {"the fit of a copy", "fit"}, &ProfileFits::copies);
  f.list("messages", {"the fit of a message", "fit"}, &ProfileFits::messages);
  f.check(check_fits);
}

}  // namespace hdpsim
