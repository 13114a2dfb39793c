#include "sim/profile/impl/measured_writer.h"

#include "sim/profile/impl/map_writer.h"

namespace hdpsim {
namespace {

Value to_value(const MemoryBoundSample& s) {
  MapWriter map;
  map.word("kernel", s.kernel).quantity("bytes", s.bytes);
  return add_timing(map, s.time, s.spread).one_line();
}

Value to_value(const CopySample& s) {
  MapWriter map;
  map.word("kind", copy_kind_name(s.kind)).quantity("bytes", s.bytes);
  return add_timing(map, s.time, s.spread).one_line();
}

Value to_value(const MessageSample& s) {
  MapWriter map;
  map.word("link", link_kind_name(s.link)).word("kind", message_kind_name(s.kind));
  map.number("ranks", s.ranks).quantity("bytes", s.bytes);
  return add_timing(map, s.time, s.spread).one_line();
}

Value to_value(const Interference& i) {
  return MapWriter()
      .word("compute", i.compute)
      .word("traffic", i.traffic)
      .number("ctas", i.ctas)
      .number("slowdown", i.slowdown)
      .number("p10", i.slowdown_p10)
      .number("p90", i.slowdown_p90)
      .one_line();
}

Value to_value(const NoiseFloor& n) {
  return MapWriter()
      .word("family", n.family)
      .number("mean", n.mean)
      .number("p90", n.p90)
      .number("max", n.max)
      .number("pairs", n.pairs)
      .one_line();
}

Value to_value(const FitError& e) {
  return MapWriter().number("mean", e.mean).number("p95", e.p95).number("max", e.max).one_line();
}

Value to_value(const FitQuality& q) {
  Value deciles =
      list_of(q.residual_deciles, [](double residual) { return Value::scalar(fmt::format("{}", residual)); });
  deciles.one_line = true;
  return MapWriter()
      .number("samples", q.samples)
      .add("in_sample", to_value(q.in_sample))
      .add("held_out", to_value(q.held_out))
      .add("residual_deciles", std::move(deciles))
      .done();
}

Value tile_value(std::int64_t queries, std::int64_t keys) {
  return MapWriter().number("queries", queries).number("keys", keys).one_line();
}

Value to_value(const AttentionFit& f) {
  MapWriter map;
  map.word("mask", f.causal ? "causal" : "full")
      .word("direction", f.backward ? "backward" : "forward")
      .number("head_dim", f.head_dim)
      .add("tile", tile_value(f.tile_queries, f.tile_keys));
  if (f.gradient_tile_queries > 0) {
    map.add("gradient_tile", tile_value(f.gradient_tile_queries, f.gradient_tile_keys));
  }
  map.text("form", f.form)
      .number("launch_s", f.launch_s)
      .add("pairs",
           list_of(f.pairs,
                   [](const PairCost& pair) {
                     return MapWriter().number("length", pair.length).number("pair_s", pair.seconds).one_line();
                   }))
      .number("row_s", f.row_s)
      .number("tile_row_s", f.tile_row_s)
      .number("document_s", f.document_s)
      .number("wave_s", f.wave_s);
  map.add("lengths", MapWriter().number("least", f.shortest).number("most", f.longest).one_line())
      .add("quality", to_value(f.quality));
  if (f.packed) map.add("packed_quality", to_value(*f.packed));
  return map.done();
}

Value to_value(const GemmFit& f) {
  return MapWriter()
      .text("form", f.form)
      .number("launch_s", f.launch_s)
      .number("flop_s", f.flop_s)
      .number("element_s", f.element_s)
      .number("neighbours", f.neighbours)
      .number("power", f.power)
      .add("quality", to_value(f.quality))
      .done();
}

Value range_value(Bytes least, Bytes most) {
  return MapWriter().quantity("least", least).quantity("most", most).one_line();
}

Value to_value(const TransferCurve& c) {
  const auto cost = [](const ByteCost& b) {
    MapWriter map;
    map.quantity("at", b.at);
    if (b.bandwidth) map.quantity("bandwidth", *b.bandwidth);
    return map.one_line();
  };
  return MapWriter().quantity("latency", c.latency).add("costs", list_of(c.costs, cost)).done();
}

Value to_value(const MemoryBoundFit& f) {
  return MapWriter()
      .word("kernel", f.kernel)
      .text("form", f.form)
      .add("curve", to_value(f.curve))
      .add("bytes", range_value(f.least, f.most))
      .add("quality", to_value(f.quality))
      .done();
}

Value to_value(const CopyFit& f) {
  return MapWriter()
      .word("kind", copy_kind_name(f.kind))
      .quantity("latency", f.latency)
      .quantity("bandwidth", f.bandwidth)
      .add("bytes", range_value(f.least, f.most))
      .add("quality", to_value(f.quality))
      .done();
}

Value to_value(const MessageFit& f) {
  const auto line = [](const MessageLine& l) {
    return MapWriter().quantity("latency", l.latency).quantity("bandwidth", l.bandwidth).one_line();
  };
  MapWriter map;
  map.word("link", link_kind_name(f.link)).word("kind", message_kind_name(f.kind)).number("ranks", f.ranks);
  if (f.curve) map.add("curve", to_value(*f.curve));
  if (!f.lines.empty()) map.add("lines", list_of(f.lines, line));
  return map.add("bytes", range_value(f.least, f.most)).add("quality", to_value(f.quality)).done();
}

template <class T>
void add_list(MapWriter& map, std::string_view key, const std::vector<T>& items) {
  if (!items.empty()) map.add(key, list_of(items, [](const T& item) { return to_value(item); }));
}

}  // namespace

Value samples_value(const MeasuredSamples& samples) {
  MapWriter map;
  add_list(map, "memory_bound", samples.memory_bound);
  add_list(map, "copies", samples.copies);
  add_list(map, "messages", samples.messages);
  add_list(map, "interference", samples.interference);
  add_list(map, "noise", samples.noise);
  return map.done();
}

Value fits_value(const ProfileFits& fits) {
  MapWriter map;
  add_list(map, "attention", fits.attention);
  if (fits.gemm) map.add("gemm", to_value(*fits.gemm));
  add_list(map, "memory_bound", fits.memory_bound);
  add_list(map, "copies", fits.copies);
  add_list(map, "messages", fits.messages);
  return map.done();
}

}  // namespace hdpsim
