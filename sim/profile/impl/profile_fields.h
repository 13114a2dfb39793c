#pragma once

#include "sim/profile/impl/measured_fields.h"
#include "sim/profile/impl/record_fields.h"
#include "sim/profile/profile_file.h"

namespace hdpsim {

// The fields of a device profile's file, each declared once (field_list.h), in the order of the file. What messages
// call a map is the name of its definition in the schema. What must hold between fields is in profile_checks.h.

inline void declare(Fields<Provenance>& f) {
  using P = Provenance;
  f.choice(
      "label", "label", &P::label, words_of<ProfileLabel>(profile_labels, profile_label_name),
      "where the figures come from: measurements of a device, publications, data sheets, or a fit to measured steps");
  f.text("source", &P::source);
  f.text("device", &P::device, "the word by which clusters name the device");
  f.optional_text(
      "implied_by", &P::implied_by,
      "whose figures of training imply the rates, which need not be those of the device: no study takes the "
      "profile unless it names it");
  f.optional_count("devices", &P::devices, "devices that were measured");
  f.optional_text("device_name", &P::device_name);
  f.optional_text("driver", &P::driver);
  f.optional_text("cuda", &P::cuda);
  f.optional_text("nccl", &P::nccl);
  f.optional_text("clocks", &P::clocks);
  f.optional_text("date", &P::date);
  f.optional_text("commit", &P::commit);
  f.optional_part("fit", "the fit to steps", &P::fit,
                  "of a profile with the label `fitted`: to which steps, from which profile");
  f.optional_part("traces", "the record of traces", &P::traces,
                  "of a profile with the label `traced`: which traces, and what came from them");
  f.check(check_provenance);
}

inline void declare(Fields<Datasheet>& f) {
  f.quantity("peak", &Datasheet::peak, "dense bf16 products");
  f.quantity("memory_bandwidth", &Datasheet::memory_bandwidth);
  f.quantity("memory", &Datasheet::memory);
  f.count("multiprocessors", &Datasheet::multiprocessors);
  f.source(&Datasheet::source);
}

inline void declare(Fields<AttentionSample>& f) {
  f.one_line();
  f.count("queries", &AttentionSample::queries);
  f.count("keys", &AttentionSample::keys);
  f.optional_count("count", &AttentionSample::count);
  f.timing_or_rate();
}

inline void declare(Fields<PackedSample>& f) {
  f.one_line();
  f.documents("documents", &PackedSample::documents);
  f.timing_or_rate();
}

inline void declare(Fields<AttentionCurve>& f) {
  using C = AttentionCurve;
  f.choice("mask", "mask", &C::causal, mask_words(), "which keys a query sees");
  f.choice("direction", "direction", &C::backward, direction_words());
  f.count("head_dim", &C::head_dim);
  f.count("heads", &C::heads);
  f.optional_count("kv_heads", &C::kv_heads);
  f.tile("tile", {"queries", "keys"}, &C::tile_queries, &C::tile_keys);
  f.choice("heads_in_tile", "heads whose queries share a tile", &C::packs_heads, heads_in_tile_words(),
           "whose queries are the rows of a tile: those of one head, or of the group of heads that share keys", false);
  f.time("launch", &C::launch);
  f.source(&C::source);
  f.sustained();
  f.list("samples", {"an attention sample", "sample"}, &C::samples);
  f.list("packed", {"a packed sample", "sample"}, &C::packed);
  f.check(check_attention);
}

inline void declare(Fields<GemmWorkSample>& f) {
  constexpr double least = 1e-6;
  f.one_line();
  f.number("gflop", &GemmWorkSample::gflop, {}, {least, 1e12});
  f.number("efficiency", &GemmWorkSample::efficiency, {}, {least, 1});
}

inline void declare(Fields<GemmShapeSample>& f) {
  f.one_line();
  f.count("m", &GemmShapeSample::m);
  f.count("n", &GemmShapeSample::n);
  f.count("k", &GemmShapeSample::k);
  f.timing_or_rate();
}

inline void declare(Fields<GemmTable>& f) {
  f.tile("tile", {"m", "n"}, &GemmTable::tile_m, &GemmTable::tile_n);
  f.time("launch", &GemmTable::launch);
  f.quantity("full_rate", &GemmTable::full_rate, "the rate of the largest products");
  f.source(&GemmTable::source);
  f.sustained();
  f.list("by_work", {"a sample by work", "sample"}, &GemmTable::by_work);
  f.list("by_shape", {"a sample by shape", "sample"}, &GemmTable::by_shape);
  f.check(check_gemm);
}

inline void declare(Fields<KernelBandwidth>& f) {
  f.one_line();
  f.choice("kernel", "memory-bound kernel", &KernelBandwidth::kernel,
           words_of<MemoryKernel>(memory_kernels, memory_kernel_name));
  f.quantity("bandwidth", &KernelBandwidth::bandwidth);
}

inline void declare(Fields<MemoryBoundRate>& f) {
  f.time("latency", &MemoryBoundRate::latency);
  f.quantity("bandwidth", &MemoryBoundRate::bandwidth);
  f.list("kernels", {"a bandwidth of a kernel", "kernel"}, &MemoryBoundRate::kernels,
         "kernels that reach another bandwidth");
  f.source(&MemoryBoundRate::source);
}

inline void declare(Fields<SendRecvRate>& f) {
  f.time("latency", &SendRecvRate::latency);
  f.quantity("bandwidth", &SendRecvRate::bandwidth);
  f.quantity("line_rate", &SendRecvRate::line_rate);
  f.source(&SendRecvRate::source);
  f.check(check_send_recv);
}

inline void declare(Fields<CollectiveRate>& f) {
  f.time("latency", &CollectiveRate::latency);
  f.time("step_latency", &CollectiveRate::step_latency);
  f.quantity("bandwidth", &CollectiveRate::bandwidth);
  f.quantity("line_rate", &CollectiveRate::line_rate);
  f.source(&CollectiveRate::source);
}

inline void declare(Fields<LinkProfile>& f) {
  f.optional_part("send_recv", "'send_recv'", &LinkProfile::send_recv, {}, Need::unless_measured);
  f.optional_part("all_gather", "a collective", &LinkProfile::all_gather);
  f.optional_part("reduce_scatter", "a collective", &LinkProfile::reduce_scatter);
  f.optional_part("all_reduce", "a collective", &LinkProfile::all_reduce);
  f.optional_part("all_to_all", "a collective", &LinkProfile::all_to_all);
  f.optional_part("dispatch", "a collective", &LinkProfile::dispatch);
}

inline void declare(Fields<HostCopies>& f) {
  f.time("latency", &HostCopies::latency);
  f.quantity("d2h", &HostCopies::d2h);
  f.quantity("h2d", &HostCopies::h2d);
  f.quantity("d2h_both", &HostCopies::d2h_both);
  f.quantity("h2d_both", &HostCopies::h2d_both);
  f.source(&HostCopies::source);
}

inline void declare(Fields<Overhead>& f) {
  f.time("time", &Overhead::time);
  f.source(&Overhead::source);
}

inline void declare(Fields<Slowdown>& f) {
  f.number("factor", &Slowdown::factor, {}, {1, 1e12});
  f.source(&Slowdown::source);
}

inline void declare(Fields<DeviceSpread>& f) {
  f.number("cv", &DeviceSpread::cv, {}, {0, 1});
  f.source(&DeviceSpread::source);
}

inline void declare(Fields<Overheads>& f) {
  using O = Overheads;
  f.part("per_step", "'per_step'", &O::per_step, {}, Need::unless_measured);
  f.part("per_micro_batch", "'per_micro_batch'", &O::per_micro_batch, {}, Need::unless_measured);
  f.part("kernel_launch", "'kernel_launch'", &O::kernel_launch, {}, Need::unless_measured);
  f.optional_part("host_issue", "'host_issue'", &O::host_issue);
  f.optional_part("host_loop", "'host_loop'", &O::host_loop);
  f.optional_part("host_narrow", "'host_narrow'", &O::host_narrow);
  f.optional_part("host_dispatch", "'host_dispatch'", &O::host_dispatch);
  f.optional_part("compute_beside_communication", "'compute_beside_communication'", &O::compute_beside_communication);
}

inline void declare(Fields<CommunicatorCost>& f) {
  f.one_line();
  f.time("base", &CommunicatorCost::base);
  f.time("per_rank", &CommunicatorCost::per_rank);
}

inline void declare(Fields<ConnectionCosts>& f) {
  f.optional_quantity("first_contact", &ConnectionCosts::first_contact);
  f.optional_quantity("memory_per_peer", &ConnectionCosts::memory_per_peer);
  f.optional_part("communicator", "'communicator'", &ConnectionCosts::communicator);
  f.source(&ConnectionCosts::source);
  f.check(check_connections);
}

inline void declare(Fields<BackwardRing>& f) {
  f.choice("dkv_bytes_per_element", "key-value gradient of so many bytes:", &BackwardRing::dkv_bytes_per_element,
           {{"2", 2}, {"4", 4}});
  f.source(&BackwardRing::source);
}

inline void declare(Fields<DeviceProfile>& f) {
  using P = DeviceProfile;
  f.schema("hdpsim.profile/1");
  f.like();
  f.part("provenance", "the provenance", &P::provenance, "where the figures come from");
  f.choice("elements", "type of elements", &P::element_bytes, {{"bf16", 2}, {"fp32", 4}},
           "what the kernels take and make; bf16 unless stated", false);
  f.part("datasheet", "the data sheet", &P::datasheet, "what the device's data sheet says");
  f.list("attention", {"an attention curve", "curve"}, &P::attention,
         "times of attention kernels, a curve for each mask, direction and shape of heads");
  for (std::size_t i = 0; i < other_attentions; ++i) {
    f.list(
        other_attention_key(static_cast<OtherAttention>(i)),
        {"an attention curve", "curve"}, [i](P & profile) -> auto& { return profile.other_attention[i]; },
        "the same of another implementation of attention");
  }
  f.optional_part("gemm", "'gemm'", &P::gemm, "times of matrix products in bf16");
  for (std::size_t i = 0; i < narrow_tables.size(); ++i) {
    f.optional_part(
        narrow_tables.at(i).key, "'gemm'", [i](P & profile) -> auto& { return profile.gemm_narrow.at(i); },
        narrow_tables.at(i).meaning);
  }
  f.optional_part("memory_bound", "'memory_bound'", &P::memory_bound, "kernels that take as long as their bytes");
  f.group(
      "links", "'links'", Need::never,
      [](Fields<P>& links) {
        links.optional_part("nvlink", "'nvlink'", &P::nvlink);
        links.optional_part("network", "'network'", &P::network);
      },
      "what software reaches on links within and between nodes");
  f.optional_part("host_copies", "'host_copies'", &P::host_copies,
                  "copies between a device and its host, alone and in both directions at once");
  f.optional_part("spread", "'spread'", &P::spread,
                  "how unlike devices of the type are: the coefficient of variation of their rates of products");
  f.part("overheads", "'overheads'", &P::overheads, "time that no kernel and no message explains",
         Need::unless_measured);
  f.optional_part("connections", "'connections'", &P::connections, "what setting up connections costs");
  f.part("backward_ring", "'backward_ring'", &P::backward_ring, "what a backward ring sends", Need::never);
  f.part("samples", "'samples'", &P::samples, "only of a profile with the label `measured`", Need::only_measured);
  f.part("fits", "'fits'", &P::fits, "only of a profile with the label `measured`", Need::only_measured);
  f.check(check_profile);
}

}  // namespace hdpsim
