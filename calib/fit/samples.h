#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/operation.h"
#include "sim/profile/measured_samples.h"

namespace hdpsim::calib {

/// Statistics of the repetitions of one measurement, in seconds.
struct Timing {
  double median_s = 0;
  double p10_s = 0;
  double p90_s = 0;
  double cv = 0;  ///< Standard deviation over mean.
  std::int64_t runs = 0;
  friend bool operator==(const Timing&, const Timing&) = default;
};

/// One attention launch: op.blocks are its documents.
struct AttentionTiming {
  Attention op;
  Timing timing;
};

struct GemmTiming {
  Gemm op;
  Timing timing;
};

/// One kernel that is bound by memory, by its name (rms_norm_forward, swiglu_backward, adam, ...).
struct MemoryBoundTiming {
  std::string kernel;
  std::int64_t bytes = 0;  ///< Total of bytes read and written.
  Timing timing;
};

using hdpsim::CopyKind;
using hdpsim::LinkKind;
using hdpsim::MessageKind;
using hdpsim::NoiseFloor;

struct CopyTiming {
  CopyKind kind = CopyKind::d2h;
  std::int64_t bytes = 0;
  Timing timing;
};

/// One collective in the conventions of nccl-tests: `bytes` is the size column (what all ranks together hold for
/// all-gather and reduce-scatter; what each rank sends for all-to-all; the buffer for all-reduce; the message for
/// send/recv).
struct MessageTiming {
  MessageKind kind = MessageKind::send_recv;
  LinkKind link = LinkKind::nvlink;
  std::int64_t ranks = 2;
  std::int64_t bytes = 0;
  Timing timing;
};

/// How many times longer a kernel of a family takes while it overlaps with a transfer.
struct InterferenceTiming {
  std::string compute;    ///< gemm, attention, elementwise
  std::string traffic;    ///< d2h, h2d, both, p2p
  std::int64_t ctas = 0;  ///< Thread blocks of the transfer kernel, 0 for copy engines.
  double slowdown = 1;
  double slowdown_p10 = 1;
  double slowdown_p90 = 1;
};

/// The device and the circumstances, for the provenance of the profile.
struct Circumstances {
  std::string device;  ///< The name that clusters use: "H200-141GB", "CPU".
  std::string device_name;
  std::int64_t devices = 1;
  std::int64_t multiprocessors = 1;
  std::int64_t memory_bytes = 0;
  /// Peak of matrix products in the kernels' element type: data sheet, or the measured FMA peak of a CPU.
  double peak_flops = 0;
  double memory_bandwidth = 0;  ///< B/s: data sheet, or measured by a copy if there is none.
  std::string peak_source;
  double hand_over_s = 0;          ///< A cache line from core to core and back, on a CPU of several cores; else 0.
  std::int64_t element_bytes = 2;  ///< Bytes of an element that kernels read and write: bf16 2, fp32 4.
  std::int64_t attention_tile_queries = 128;
  std::int64_t attention_tile_keys = 128;
  /// Tile of the products that sum gradients of keys and values; 0: the same as for all products.
  std::int64_t attention_gradient_tile_queries = 0;
  std::int64_t attention_gradient_tile_keys = 0;
  std::int64_t gemm_tile_m = 128;
  std::int64_t gemm_tile_n = 128;
  std::string driver, cuda, nccl, clocks, instruction_set, date, commit;
};

/// All that a calibration measured: the input of the fit.
struct Samples {
  Circumstances circumstances;
  std::vector<AttentionTiming> attention;
  std::vector<GemmTiming> gemm;
  std::vector<MemoryBoundTiming> memory_bound;
  std::vector<CopyTiming> copies;
  std::vector<MessageTiming> messages;
  std::vector<InterferenceTiming> interference;
  std::vector<NoiseFloor> noise;
  double launch_s = 0;  ///< Time of an empty kernel.
};

}  // namespace hdpsim::calib
