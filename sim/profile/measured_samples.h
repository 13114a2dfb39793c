#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"

namespace hdpsim {

/// The spread of the single measurements of a sample.
struct Spread {
  Duration p10;
  Duration p90;
  std::int64_t runs = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};

/// Copies between device and pinned host memory: alone, or while the other direction runs too.
enum class CopyKind { d2h, h2d, d2h_of_both, h2d_of_both };
inline constexpr std::size_t copy_kind_count = 4;
/// The name in files: d2h, h2d, d2h_of_both, h2d_of_both.
[[nodiscard]] std::string_view copy_kind_name(CopyKind kind);

enum class MessageKind { send_recv, all_reduce, all_gather, reduce_scatter, all_to_all };
inline constexpr std::size_t message_kind_count = 5;
/// The name in files, which is the enumerator's.
[[nodiscard]] std::string_view message_kind_name(MessageKind kind);

enum class LinkKind { nvlink, network };  ///< Within a node, or between nodes.
[[nodiscard]] std::string_view link_kind_name(LinkKind kind);

/// One timed kernel that is bound by memory, by its name: rms_norm_forward, adam.
struct MemoryBoundSample {
  std::string kernel;
  Bytes bytes;  ///< Total of bytes read and written.
  Duration time;
  std::optional<Spread> spread;
  friend bool operator==(const MemoryBoundSample&, const MemoryBoundSample&) = default;
};

struct CopySample {
  CopyKind kind = CopyKind::d2h;
  Bytes bytes;
  Duration time;
  std::optional<Spread> spread;
  friend bool operator==(const CopySample&, const CopySample&) = default;
};

/// One timed message or collective in the conventions of nccl-tests: `bytes` is the size column (what all ranks
/// together hold for all-gather, reduce-scatter and all-to-all; the buffer for all-reduce; the message for send/recv).
struct MessageSample {
  LinkKind link = LinkKind::nvlink;
  MessageKind kind = MessageKind::send_recv;
  std::int64_t ranks = 2;
  Bytes bytes;
  Duration time;
  std::optional<Spread> spread;
  friend bool operator==(const MessageSample&, const MessageSample&) = default;
};

/// How many times longer a kernel takes while it overlaps with a transfer.
struct Interference {
  std::string compute;    ///< gemm, attention, elementwise
  std::string traffic;    ///< d2h, h2d, both, p2p
  std::int64_t ctas = 0;  ///< Thread blocks of the transfer kernel; 0 for copy engines.
  double slowdown = 1;
  double slowdown_p10 = 1;
  double slowdown_p90 = 1;
  friend bool operator==(const Interference&, const Interference&) = default;
};

/// The difference between two measurements of the same thing, |a - b| / mean: no fit can be better.
struct NoiseFloor {
  std::string family;  ///< attention, gemm, memory_bound, copies, messages
  double mean = 0;
  double p90 = 0;
  double max = 0;
  std::int64_t pairs = 0;
  friend bool operator==(const NoiseFloor&, const NoiseFloor&) = default;
};

/// Samples that only a measured profile has; those of attention and matrix products are in their tables.
struct MeasuredSamples {
  std::vector<MemoryBoundSample> memory_bound;
  std::vector<CopySample> copies;
  std::vector<MessageSample> messages;
  std::vector<Interference> interference;
  std::vector<NoiseFloor> noise;
  friend bool operator==(const MeasuredSamples&, const MeasuredSamples&) = default;
};

}  // namespace hdpsim
