#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "calib/fit/samples.h"
#include "sim/model/operation.h"

namespace hdpsim::calib {

/// A kernel that memory bounds, on tensors so large that it reads and writes `bytes` all told (rounded to whole rows).
struct MemoryBoundSubject {
  std::string kernel;
  std::int64_t bytes = 0;
};

/// One copy between the device and pinned host memory.
struct CopySubject {
  CopyKind kind = CopyKind::d2h;
  std::int64_t bytes = 0;
};

/// One message or collective over `ranks` ranks of this machine; `bytes` as in MessageTiming.
struct MessageSubject {
  MessageKind kind = MessageKind::send_recv;
  std::int64_t ranks = 2;
  std::int64_t bytes = 0;
};

/// How much slower one kernel runs while something else moves; the words of InterferenceTiming.
struct InterferenceSubject {
  std::string compute;
  std::string traffic;
  std::int64_t ctas = 0;
};

/// One thing to measure.
using Subject = std::variant<Attention, Gemm, MemoryBoundSubject, CopySubject, MessageSubject, InterferenceSubject>;

/// What one round made of a subject. Interference: `timing` holds the slowdown, a ratio, in place of seconds.
struct Measurement {
  Subject subject;
  int round = 0;  ///< Everything is measured once a round.
  Timing timing;
  /// What emptying the caches took between its runs: how fast memory was then. Absent where that is not known.
  std::optional<double> emptying_s = std::nullopt;
};

/// "attention", "gemm", "memory_bound", "copies", "messages", "interference".
[[nodiscard]] std::string_view family_of(const Subject& subject);
/// For people: "attention backward d128 h2/2 causal 1024".
[[nodiscard]] std::string label_of(const Subject& subject);

/// One JSON object on one line that reads back as an equal subject; equal subjects have equal texts.
[[nodiscard]] std::string subject_text(const Subject& subject);

/// (query, key) pairs of a launch, exactly.
[[nodiscard]] double area_of(const Attention& op);
/// Floating-point operations: 4 heads dim area, 2.5 times that backward.
[[nodiscard]] double work_of(const Attention& op);
[[nodiscard]] double work_of(const Gemm& op);

}  // namespace hdpsim::calib
