#include "calib/traces/message_fit.h"

#include <algorithm>

#include "calib/traces/impl/trace_parts.h"

namespace hdpsim::calib {

DeviceProfile fit_to_messages(const MeasuredMessages& messages, const DeviceProfile& start,
                              const TraceFitOptions& options) {
  Recording recording;
  recording.nccl = messages.nccl;
  std::int64_t devices = 1;
  for (const MessageTiming& timing : messages.timings) {
    MessageSamples& samples = recording.messages[{timing.kind, timing.ranks, timing.bytes, timing.link}];
    samples.seconds.add(timing.timing.median_s);
    samples.of_all_ranks.add(timing.timing.median_s);
    devices = std::max(devices, timing.ranks);
  }
  for (const TracedFile& each : messages.files) {
    RankRecording& rank = recording.ranks.emplace_back();
    rank.file = each.file;
    rank.kernels = each.kernels;
  }
  TraceParts parts{.recording = recording, .start = start, .options = options, .result = start, .timed_alone = true};
  take_messages(parts);
  parts.keep("all other parts", "nccl-tests measures messages alone");
  parts.state_provenance();
  parts.result.provenance.devices = devices;
  return std::move(parts.result);
}

}  // namespace hdpsim::calib
