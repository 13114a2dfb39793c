#pragma once

#include "sim/profile/impl/field_words.h"
#include "sim/profile/impl/measured_fields.h"
#include "sim/profile/impl/step_fit_fields.h"
#include "sim/profile/impl/trace_record_fields.h"

namespace hdpsim {

// The fields of a device profile's file, each stated once: FieldReader reads them and FieldWriter writes them, in this
// order. `io` is either of the two, or FieldKeys, which declares them for the schema; what messages call a map is the
// name of its definition there. What a file may state in another way, and what must hold between fields, is the
// reader's business (profile_checks.h).

template <class Io>
void fields(Io& io, typename Io::template Of<Provenance>& p) {
  io.meaning(
      "where the figures come from: measurements of a device, publications, data sheets, or a fit to measured steps");
  io.choice("label", "label", p.label, label_words());
  io.text("source", p.source);
  io.meaning("the word by which clusters name the device");
  io.text("device", p.device);
  io.meaning(
      "whose figures of training imply the rates, which need not be those of the device: no study takes the profile "
      "unless it names it");
  io.optional_text("implied_by", p.implied_by);
  io.meaning("devices that were measured");
  io.count_or_default("devices", p.devices);
  io.optional_text("device_name", p.device_name);
  io.optional_text("driver", p.driver);
  io.optional_text("cuda", p.cuda);
  io.optional_text("nccl", p.nccl);
  io.optional_text("clocks", p.clocks);
  io.optional_text("date", p.date);
  io.optional_text("commit", p.commit);
  io.meaning("of a profile with the label `fitted`: to which steps, from which profile");
  io.optional_part("fit", "the fit to steps", p.fit);
  io.meaning("of a profile with the label `traced`: which traces, and what came from them");
  io.optional_part("traces", "the record of traces", p.traces);
}

template <class Io>
void fields(Io& io, typename Io::template Of<Datasheet>& d) {
  io.meaning("dense bf16 products");
  io.quantity("peak", d.peak);
  io.quantity("memory_bandwidth", d.memory_bandwidth);
  io.quantity("memory", d.memory);
  io.count("multiprocessors", d.multiprocessors);
  io.source(d.source);
}

template <class Io>
void fields(Io& io, typename Io::template Of<AttentionSample>& s, const AttentionCurve& curve) {
  io.one_line();
  io.count("queries", s.queries);
  io.count("keys", s.keys);
  io.count_or_default("count", s.count);
  io.timing_of_work(s.time, s.spread, [&] { return sample_work(curve, s); });
}

template <class Io>
void fields(Io& io, typename Io::template Of<PackedSample>& s, const AttentionCurve& curve) {
  io.one_line();
  io.documents("documents", s.documents);
  io.timing_of_work(s.time, s.spread, [&] { return sample_work(curve, s); });
}

template <class Io>
void fields(Io& io, typename Io::template Of<AttentionCurve>& c) {
  io.meaning("which keys a query sees");
  io.choice("mask", "mask", c.causal, mask_words());
  io.choice("direction", "direction", c.backward, direction_words());
  io.count("head_dim", c.head_dim);
  io.count("heads", c.heads);
  io.count_or_default("kv_heads", c.kv_heads);
  io.tile("tile", {"queries", "keys"}, c.tile_queries, c.tile_keys);
  io.time("launch", c.launch);
  io.source(c.source);
  io.list("samples", {"an attention sample", "sample", !io.has("packed")}, c.samples, c);
  io.list("packed", {"a packed sample", "sample"}, c.packed, c);
}

template <class Io>
void fields(Io& io, typename Io::template Of<GemmWorkSample>& s) {
  constexpr double least = 1e-6;
  io.one_line();
  io.number("gflop", s.gflop, {least, 1e12});
  io.number("efficiency", s.efficiency, {least, 1});
}

template <class Io>
void fields(Io& io, typename Io::template Of<GemmShapeSample>& s, const GemmTable& /*table*/, double speed) {
  io.one_line();
  io.count("m", s.m);
  io.count("n", s.n);
  io.count("k", s.k);
  io.timing_of_work(
      s.time, s.spread, [&] { return sample_work(s); }, speed);
}

/// `speed` is how many times faster than the data sheet's peak products of this type may be.
template <class Io>
void fields(Io& io, typename Io::template Of<GemmTable>& g, double speed) {
  io.tile("tile", {"m", "n"}, g.tile_m, g.tile_n);
  io.time("launch", g.launch);
  io.meaning("the rate of the largest products");
  io.quantity("full_rate", g.full_rate);
  io.source(g.source);
  io.list("by_work", {"a sample by work", "sample"}, g.by_work);
  io.list("by_shape", {"a sample by shape", "sample"}, g.by_shape, g, speed);
}

template <class Io>
void fields(Io& io, typename Io::template Of<KernelBandwidth>& k) {
  io.one_line();
  io.choice("kernel", "memory-bound kernel", k.kernel, memory_kernel_words());
  io.quantity("bandwidth", k.bandwidth);
}

template <class Io>
void fields(Io& io, typename Io::template Of<MemoryBoundRate>& m) {
  io.time("latency", m.latency);
  io.quantity("bandwidth", m.bandwidth);
  io.meaning("kernels that reach another bandwidth");
  io.list("kernels", {"a bandwidth of a kernel", "kernel"}, m.kernels);
  io.source(m.source);
}

template <class Io>
void fields(Io& io, typename Io::template Of<SendRecvRate>& r) {
  io.time("latency", r.latency);
  io.quantity("bandwidth", r.bandwidth);
  io.quantity("line_rate", r.line_rate);
  io.source(r.source);
}

template <class Io>
void fields(Io& io, typename Io::template Of<CollectiveRate>& r) {
  io.time("latency", r.latency);
  io.time("step_latency", r.step_latency);
  io.quantity("bandwidth", r.bandwidth);
  io.quantity("line_rate", r.line_rate);
  io.source(r.source);
}

template <class Io>
void fields(Io& io, typename Io::template Of<LinkProfile>& link) {
  io.part_unless_measured("send_recv", "'send_recv'", link.send_recv);
  io.optional_part("all_gather", "a collective", link.all_gather);
  io.optional_part("reduce_scatter", "a collective", link.reduce_scatter);
  io.optional_part("all_reduce", "a collective", link.all_reduce);
  io.optional_part("all_to_all", "a collective", link.all_to_all);
  io.optional_part("dispatch", "a collective", link.dispatch);
}

template <class Io>
void fields(Io& io, typename Io::template Of<HostCopies>& h) {
  io.time("latency", h.latency);
  io.quantity("d2h", h.d2h);
  io.quantity("h2d", h.h2d);
  io.quantity("d2h_both", h.d2h_both);
  io.quantity("h2d_both", h.h2d_both);
  io.source(h.source);
}

template <class Io>
void fields(Io& io, typename Io::template Of<Overhead>& o) {
  io.time("time", o.time);
  io.source(o.source);
}

template <class Io>
void fields(Io& io, typename Io::template Of<Slowdown>& s) {
  io.number("factor", s.factor, {1, 1e12});
  io.source(s.source);
}

template <class Io>
void fields(Io& io, typename Io::template Of<Overheads>& o) {
  io.part_unless_measured("per_step", "'per_step'", o.per_step);
  io.part_unless_measured("per_micro_batch", "'per_micro_batch'", o.per_micro_batch);
  io.part_unless_measured("kernel_launch", "'kernel_launch'", o.kernel_launch);
  io.optional_part("host_issue", "'host_issue'", o.host_issue);
  io.optional_part("compute_beside_communication", "'compute_beside_communication'", o.compute_beside_communication);
}

template <class Io>
void fields(Io& io, typename Io::template Of<CommunicatorCost>& c) {
  io.one_line();
  io.time("base", c.base);
  io.time("per_rank", c.per_rank);
}

template <class Io>
void fields(Io& io, typename Io::template Of<ConnectionCosts>& c) {
  io.optional_quantity("first_contact", c.first_contact);
  io.optional_quantity("memory_per_peer", c.memory_per_peer);
  io.optional_part("communicator", "'communicator'", c.communicator);
  io.source(c.source);
}

template <class Io>
void fields(Io& io, typename Io::template Of<BackwardRing>& r) {
  io.choice("dkv_bytes_per_element", "key-value gradient of so many bytes:", r.dkv_bytes_per_element,
            Words<std::int64_t>{{"2", 2}, {"4", 4}});
  io.source(r.source);
}

template <class Io>
void fields(Io& io, typename Io::template Of<DeviceProfile>& p) {
  io.schema("hdpsim.profile/1");
  io.meaning("where the figures come from");
  io.part("provenance", "the provenance", p.provenance);
  io.know(p);
  io.meaning("what the kernels take and make; bf16 unless stated");
  io.choice_or_default("elements", "type of elements", p.element_bytes, Words<std::int64_t>{{"bf16", 2}, {"fp32", 4}});
  io.meaning("what the device's data sheet says");
  io.part("datasheet", "the data sheet", p.datasheet);
  io.know(p);
  io.meaning("times of attention kernels, a curve for each mask, direction and shape of heads");
  io.list("attention", {"an attention curve", "curve"}, p.attention);
  for (std::size_t i = 0; i < other_attentions; ++i) {
    io.meaning("the same of another implementation of attention");
    io.list(other_attention_key(static_cast<OtherAttention>(i)), {"an attention curve", "curve"}, p.other_attention[i]);
  }
  io.meaning("times of matrix products in bf16");
  io.optional_part("gemm", "'gemm'", p.gemm, 1.0);
  constexpr std::array<const char*, fp8_tables> meanings = {"times of matrix products in fp8 with one scale a tensor",
                                                            "the same with a scale for every 128 columns",
                                                            "the same with one for every 32 columns"};
  for (std::size_t i = 0; i < fp8_tables; ++i) {
    io.meaning(meanings[i]);
    io.optional_part(fp8_table_key(i), "'gemm'", p.gemm_fp8[i], fp8_speed);
  }
  io.meaning("kernels that take as long as their bytes");
  io.optional_part("memory_bound", "'memory_bound'", p.memory_bound);
  io.meaning("what software reaches on links within and between nodes");
  io.group("links", "'links'", [&](Io& links) {
    links.optional_part("nvlink", "'nvlink'", p.nvlink);
    links.optional_part("network", "'network'", p.network);
  });
  io.meaning("copies between a device and its host, alone and in both directions at once");
  io.optional_part("host_copies", "'host_copies'", p.host_copies);
  io.meaning("time that no kernel and no message explains");
  io.part_unless_measured("overheads", "'overheads'", p.overheads);
  io.meaning("what setting up connections costs");
  io.optional_part("connections", "'connections'", p.connections);
  io.meaning("what a backward ring sends");
  io.part_or_default("backward_ring", "'backward_ring'", p.backward_ring);
  io.measured_part("samples", "'samples'", p.samples);
  io.measured_part("fits", "'fits'", p.fits);
}

}  // namespace hdpsim
