#include <fmt/format.h>

#include "sim/profile/impl/map_writer.h"
#include "sim/profile/impl/measured_writer.h"
#include "sim/profile/profile_file.h"

namespace hdpsim {
namespace {

Value to_value(const Provenance& p) {
  return MapWriter()
      .word("label", profile_label_name(p.label))
      .text("source", p.source)
      .text("device", p.device)
      .number("devices", p.devices)
      .text("device_name", p.device_name)
      .text("driver", p.driver)
      .text("cuda", p.cuda)
      .text("nccl", p.nccl)
      .text("clocks", p.clocks)
      .text("date", p.date)
      .text("commit", p.commit)
      .done();
}

Value to_value(const Datasheet& d) {
  return MapWriter()
      .quantity("peak", d.peak)
      .quantity("memory_bandwidth", d.memory_bandwidth)
      .quantity("memory", d.memory)
      .number("multiprocessors", d.multiprocessors)
      .text("source", d.source)
      .done();
}

Value to_value(const AttentionSample& s) {
  MapWriter map;
  map.number("queries", s.queries).number("keys", s.keys).number("count", s.count);
  add_timing(map, s.time, s.spread);
  return map.one_line();
}

Value to_value(const PackedDocument& d) {
  return Value::scalar(d.queries == d.keys ? fmt::format("{}", d.queries) : fmt::format("{}x{}", d.queries, d.keys));
}

Value to_value(const PackedSample& s) {
  MapWriter map;
  Value documents = list_of(s.documents, [](const PackedDocument& d) { return to_value(d); });
  documents.one_line = true;
  add_timing(map, s.time, s.spread);
  return map.add("documents", std::move(documents)).one_line();
}

Value to_value(const AttentionCurve& c) {
  MapWriter map;
  map.word("mask", c.causal ? "causal" : "full")
      .word("direction", c.backward ? "backward" : "forward")
      .number("head_dim", c.head_dim)
      .number("heads", c.heads);
  if (c.kv_heads > 0) map.number("kv_heads", c.kv_heads);
  map.add("tile", MapWriter().number("queries", c.tile_queries).number("keys", c.tile_keys).one_line())
      .quantity("launch", c.launch)
      .text("source", c.source);
  const auto sample = [](const auto& s) { return to_value(s); };
  if (!c.samples.empty()) map.add("samples", list_of(c.samples, sample));
  if (!c.packed.empty()) map.add("packed", list_of(c.packed, sample));
  return map.done();
}

Value to_value(const GemmShapeSample& s) {
  MapWriter map;
  map.number("m", s.m).number("n", s.n).number("k", s.k);
  add_timing(map, s.time, s.spread);
  return map.one_line();
}

Value to_value(const GemmTable& g) {
  MapWriter map;
  map.add("tile", MapWriter().number("m", g.tile_m).number("n", g.tile_n).one_line())
      .quantity("launch", g.launch)
      .quantity("full_rate", g.full_rate)
      .text("source", g.source);
  const auto by_work = [](const GemmWorkSample& s) {
    return MapWriter().number("gflop", s.gflop).number("efficiency", s.efficiency).one_line();
  };
  if (!g.by_work.empty()) map.add("by_work", list_of(g.by_work, by_work));
  if (!g.by_shape.empty()) {
    map.add("by_shape", list_of(g.by_shape, [](const GemmShapeSample& s) { return to_value(s); }));
  }
  return map.done();
}

Value to_value(const MemoryBoundRate& m) {
  return MapWriter().quantity("latency", m.latency).quantity("bandwidth", m.bandwidth).text("source", m.source).done();
}

Value to_value(const SendRecvRate& r) {
  return MapWriter()
      .quantity("latency", r.latency)
      .quantity("bandwidth", r.bandwidth)
      .quantity("line_rate", r.line_rate)
      .text("source", r.source)
      .done();
}

Value to_value(const CollectiveRate& r) {
  return MapWriter()
      .quantity("latency", r.latency)
      .quantity("step_latency", r.step_latency)
      .quantity("bandwidth", r.bandwidth)
      .quantity("line_rate", r.line_rate)
      .text("source", r.source)
      .done();
}

Value to_value(const LinkProfile& link) {
  MapWriter map;
  if (link.send_recv) map.add("send_recv", to_value(*link.send_recv));
  if (link.all_gather) map.add("all_gather", to_value(*link.all_gather));
  if (link.reduce_scatter) map.add("reduce_scatter", to_value(*link.reduce_scatter));
  if (link.all_reduce) map.add("all_reduce", to_value(*link.all_reduce));
  if (link.all_to_all) map.add("all_to_all", to_value(*link.all_to_all));
  return map.done();
}

Value to_value(const HostCopies& h) {
  return MapWriter()
      .quantity("latency", h.latency)
      .quantity("d2h", h.d2h)
      .quantity("h2d", h.h2d)
      .quantity("d2h_both", h.d2h_both)
      .quantity("h2d_both", h.h2d_both)
      .text("source", h.source)
      .done();
}

Value to_value(const Overhead& o) {
  return MapWriter().quantity("time", o.time).text("source", o.source).done();
}

Value to_value(const Slowdown& s) {
  return MapWriter().number("factor", s.factor).text("source", s.source).done();
}

// A measured profile leaves out what was not measured.
Value to_value(const Overheads& overheads, ProfileLabel label) {
  MapWriter map;
  const auto add = [&](std::string_view key, const Overhead& overhead) {
    if (label == ProfileLabel::measured && overhead == Overhead{}) return;
    map.add(key, to_value(overhead));
  };
  add("per_step", overheads.per_step);
  add("per_micro_batch", overheads.per_micro_batch);
  add("kernel_launch", overheads.kernel_launch);
  if (overheads.host_issue) map.add("host_issue", to_value(*overheads.host_issue));
  if (overheads.compute_beside_communication) {
    map.add("compute_beside_communication", to_value(*overheads.compute_beside_communication));
  }
  return map.done();
}

Value to_value(const ConnectionCosts& c) {
  MapWriter map;
  if (c.first_contact) map.quantity("first_contact", *c.first_contact);
  if (c.memory_per_peer) map.quantity("memory_per_peer", *c.memory_per_peer);
  if (c.communicator) {
    map.add(
        "communicator",
        MapWriter().quantity("base", c.communicator->base).quantity("per_rank", c.communicator->per_rank).one_line());
  }
  return map.text("source", c.source).done();
}

Value to_value(const BackwardRing& r) {
  return MapWriter().number("dkv_bytes_per_element", r.dkv_bytes_per_element).text("source", r.source).done();
}

}  // namespace

std::string profile_text(const DeviceProfile& profile) {
  MapWriter map;
  map.word("schema", "hdpsim.profile/1")
      .add("provenance", to_value(profile.provenance))
      .word("elements", profile.element_bytes == 4 ? "fp32" : "bf16")
      .add("datasheet", to_value(profile.datasheet));
  if (!profile.attention.empty()) {
    map.add("attention", list_of(profile.attention, [](const AttentionCurve& c) { return to_value(c); }));
  }
  for (std::size_t i = 0; i < other_attentions; ++i) {
    if (profile.other_attention[i].empty()) continue;
    map.add(other_attention_key(static_cast<OtherAttention>(i)),
            list_of(profile.other_attention[i], [](const AttentionCurve& c) { return to_value(c); }));
  }
  if (profile.gemm) map.add("gemm", to_value(*profile.gemm));
  if (profile.gemm_fp8) map.add("gemm_fp8", to_value(*profile.gemm_fp8));
  if (profile.memory_bound) map.add("memory_bound", to_value(*profile.memory_bound));
  MapWriter links;
  if (profile.nvlink) links.add("nvlink", to_value(*profile.nvlink));
  if (profile.network) links.add("network", to_value(*profile.network));
  if (profile.nvlink || profile.network) map.add("links", links.done());
  if (profile.host_copies) map.add("host_copies", to_value(*profile.host_copies));
  map.add("overheads", to_value(profile.overheads, profile.provenance.label));
  if (profile.connections) map.add("connections", to_value(*profile.connections));
  map.add("backward_ring", to_value(profile.backward_ring));
  if (profile.samples != MeasuredSamples{}) map.add("samples", samples_value(profile.samples));
  if (!profile.fits.empty()) map.add("fits", fits_value(profile.fits));
  return to_yaml(map.done());
}

}  // namespace hdpsim
