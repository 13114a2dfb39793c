#pragma once

#include "sim/profile/device_profile.h"
#include "sim/profile/impl/field_words.h"

namespace hdpsim {

// The fields of the sections that only a measured profile has, each stated once; see profile_fields.h.

template <class Io>
void fields(Io& io, typename Io::template Of<MemoryBoundSample>& s) {
  io.one_line();
  io.word("kernel", s.kernel);
  io.quantity("bytes", s.bytes);
  io.timing(s.time, s.spread);
}

template <class Io>
void fields(Io& io, typename Io::template Of<CopySample>& s) {
  io.one_line();
  io.choice("kind", "kind", s.kind, copy_words());
  io.quantity("bytes", s.bytes);
  io.timing(s.time, s.spread);
}

template <class Io>
void fields(Io& io, typename Io::template Of<MessageSample>& s) {
  io.one_line();
  io.choice("link", "link", s.link, link_words());
  io.choice("kind", "kind", s.kind, message_words());
  io.count("ranks", s.ranks, {2, 1e12});
  io.quantity("bytes", s.bytes);
  io.timing(s.time, s.spread);
}

template <class Io>
void fields(Io& io, typename Io::template Of<Interference>& i) {
  io.one_line();
  io.word("compute", i.compute);
  io.word("traffic", i.traffic);
  io.count("ctas", i.ctas, not_negative);
  io.number("slowdown", i.slowdown, above_zero);
  io.number("p10", i.slowdown_p10, above_zero);
  io.number("p90", i.slowdown_p90, above_zero);
}

template <class Io>
void fields(Io& io, typename Io::template Of<NoiseFloor>& n) {
  io.one_line();
  io.word("family", n.family);
  io.number("mean", n.mean);
  io.number("p90", n.p90);
  io.number("max", n.max);
  io.count("pairs", n.pairs);
}

template <class Io>
void fields(Io& io, typename Io::template Of<MeasuredSamples>& samples) {
  io.list("memory_bound", {"a memory-bound sample", "sample"}, samples.memory_bound);
  io.list("copies", {"a copy", "sample"}, samples.copies);
  io.list("messages", {"a message", "sample"}, samples.messages);
  io.list("interference", {"an interference", "pair"}, samples.interference);
  io.list("noise", {"a noise floor", "family"}, samples.noise);
}

template <class Io>
void fields(Io& io, typename Io::template Of<FitError>& e) {
  io.one_line();
  io.number("mean", e.mean);
  io.number("p95", e.p95);
  io.number("max", e.max);
}

template <class Io>
void fields(Io& io, typename Io::template Of<FitQuality>& q) {
  io.count("samples", q.samples);
  io.part("in_sample", "an error", q.in_sample);
  io.part("held_out", "an error", q.held_out);
  io.numbers("residual_deciles", q.residual_deciles);
}

template <class Io>
void fields(Io& io, typename Io::template Of<PairCost>& pair) {
  io.one_line();
  io.count("length", pair.length);
  io.number("pair_s", pair.seconds);
}

template <class Io>
void fields(Io& io, typename Io::template Of<AttentionFit>& f) {
  io.choice("mask", "mask", f.causal, mask_words());
  io.choice("direction", "direction", f.backward, direction_words());
  io.count("head_dim", f.head_dim);
  io.tile("tile", {"queries", "keys"}, f.tile_queries, f.tile_keys);
  io.optional_tile("gradient_tile", {"queries", "keys"}, f.gradient_tile_queries, f.gradient_tile_keys);
  io.text("form", f.form);
  io.number("launch_s", f.launch_s);
  io.list("pairs", {"a knot of lengths", "knot", true}, f.pairs);
  io.number("row_s", f.row_s);
  io.number("tile_row_s", f.tile_row_s);
  io.number("document_s", f.document_s);
  io.number("wave_s", f.wave_s);
  io.counts_between("lengths", "a range of lengths", f.shortest, f.longest);
  io.part("quality", "the quality of a fit", f.quality);
  io.optional_part("packed_quality", "the quality of a fit", f.packed);
}

template <class Io>
void fields(Io& io, typename Io::template Of<GemmFit>& f) {
  io.text("form", f.form);
  io.number("launch_s", f.launch_s);
  io.number("flop_s", f.flop_s);
  io.number("element_s", f.element_s);
  io.count("neighbours", f.neighbours, not_negative);
  io.number("power", f.power, above_zero);
  io.part("quality", "the quality of a fit", f.quality);
}

template <class Io>
void fields(Io& io, typename Io::template Of<ByteCost>& b) {
  io.one_line();
  io.quantity("at", b.at);
  io.optional_quantity("bandwidth", b.bandwidth);
}

template <class Io>
void fields(Io& io, typename Io::template Of<TransferCurve>& c) {
  io.time("latency", c.latency);
  io.list("costs", {"a knot of bytes", "knot", true}, c.costs);
}

template <class Io>
void fields(Io& io, typename Io::template Of<MemoryBoundFit>& f) {
  io.word("kernel", f.kernel);
  io.text("form", f.form);
  io.part("curve", "a curve", f.curve);
  io.bytes_between("bytes", "a range of bytes", f.least, f.most);
  io.part("quality", "the quality of a fit", f.quality);
}

template <class Io>
void fields(Io& io, typename Io::template Of<CopyFit>& f) {
  io.choice("kind", "kind", f.kind, copy_words());
  io.time("latency", f.latency);
  io.quantity("bandwidth", f.bandwidth);
  io.bytes_between("bytes", "a range of bytes", f.least, f.most);
  io.part("quality", "the quality of a fit", f.quality);
}

template <class Io>
void fields(Io& io, typename Io::template Of<MessageLine>& l) {
  io.one_line();
  io.time("latency", l.latency);
  io.quantity("bandwidth", l.bandwidth);
}

template <class Io>
void fields(Io& io, typename Io::template Of<MessageFit>& f) {
  io.choice("link", "link", f.link, link_words());
  io.choice("kind", "kind", f.kind, message_words());
  io.count("ranks", f.ranks, {2, 1e12});
  io.optional_part("curve", "a curve", f.curve);
  io.list("lines", {"a line", "line", !f.curve}, f.lines);
  io.bytes_between("bytes", "a range of bytes", f.least, f.most);
  io.part("quality", "the quality of a fit", f.quality);
}

template <class Io>
void fields(Io& io, typename Io::template Of<ProfileFits>& fits) {
  io.list("attention", {"an attention fit", "fit"}, fits.attention);
  io.optional_part("gemm", "the fit of matrix products", fits.gemm);
  io.list("memory_bound", {"a memory-bound fit", "fit"}, fits.memory_bound);
  io.list("copies", {"the fit of a copy", "fit"}, fits.copies);
  io.list("messages", {"the fit of a message", "fit"}, fits.messages);
}

}  // namespace hdpsim
