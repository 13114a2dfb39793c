#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "calib/fit/samples.h"
#include "sim/model/operation.h"

namespace hdpsim::calib {

/// A memory-bound kernel on tensors so large that it reads and writes `bytes` in total (rounded to whole rows).
struct MemoryBoundSubject {
  std::string kernel;
  std::int64_t bytes = 0;
};

/// One copy between the device and pinned host memory.
struct CopySubject {
  CopyKind kind = CopyKind::d2h;
  std::int64_t bytes = 0;
};

/// One message or collective over `ranks` ranks, of one node or of several; `bytes` as in MessageTiming.
struct MessageSubject {
  MessageKind kind = MessageKind::send_recv;
  std::int64_t ranks = 2;
  std::int64_t bytes = 0;
  LinkKind link = LinkKind::nvlink;
};

/// The slowdown of one kernel while it overlaps with a transfer; the names are those of InterferenceTiming.
struct InterferenceSubject {
  std::string compute;
  std::string traffic;
  std::int64_t ctas = 0;
};

/// One thing to measure.
using Subject = std::variant<Attention, Gemm, MemoryBoundSubject, CopySubject, MessageSubject, InterferenceSubject>;

/// The result of one round of a subject. For interference `timing` holds the slowdown, a ratio, in place of seconds.
struct Measurement {
  Subject subject;
  int round = 0;  ///< Every subject is measured once per round.
  Timing timing;
  /// Time of emptying the caches between its runs, which shows how fast memory was then. Empty if it is not known.
  std::optional<double> emptying_s = std::nullopt;
};

/// The family of a subject: "attention", "gemm", "memory_bound", "copies", "messages", "interference".
[[nodiscard]] std::string_view family_of(const Subject& subject);
/// The subject for people: "attention backward d128 h2/2 causal 1024".
[[nodiscard]] std::string label_of(const Subject& subject);

/// One JSON object on one line that reads back as an equal subject; equal subjects have equal texts.
[[nodiscard]] std::string subject_text(const Subject& subject);

}  // namespace hdpsim::calib
