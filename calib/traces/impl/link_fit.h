#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calib/fit/samples.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// The line of messages of one kind over one link, and what it was determined by.
struct FittedLine {
  Duration latency;
  Duration step_latency;     ///< Of collectives.
  Bandwidth bandwidth;       ///< Bus bandwidth, as nccl-tests defines it.
  bool has_latency = false;  ///< The sizes determine the latency, too: otherwise it is the one given.
};

/// The line of some messages of one kind. Where their sizes differ by less than a factor of 4 only the bandwidth comes
/// from them, given the latencies of `known` (none: zero). The latency of a step of a ring is distinguished only where
/// numbers of ranks differ; otherwise it is the known one, and the rest that of the collective. At least one message.
[[nodiscard]] FittedLine fit_line_of(const std::vector<MessageTiming>& messages, const FittedLine& known);

/// Why some messages of one kind, of which not all ranks were traced, do not determine the rate of their link; empty if
/// they can. A kernel of one rank lasts until the last rank has come: its time is that of a transfer where it grows
/// with the size as a transfer's does, or where it is about what `known` says. Messages that are nearly all latency
/// determine no rate either. At least one message.
[[nodiscard]] std::string why_no_rate(const std::vector<MessageTiming>& messages, const FittedLine& known);

/// The time of a message by such a line.
[[nodiscard]] double seconds_by(const FittedLine& line, const MessageTiming& message);

}  // namespace hdpsim::calib
