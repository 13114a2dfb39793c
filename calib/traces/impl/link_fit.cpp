#include "calib/traces/impl/link_fit.h"

#include <algorithm>

#include "calib/fit/impl/link_profile.h"
#include "calib/fit/impl/quantities.h"
#include "calib/traces/impl/trace_parts.h"
#include "calib/traces/impl/trace_samples.h"

namespace hdpsim::calib {
namespace {

constexpr double enough_range = 4;

double bus_bytes(const MessageTiming& message) {
  return bus_factor(message.kind, message.ranks) * static_cast<double>(message.bytes);
}

double latency_of(const FittedLine& line, const MessageTiming& message) {
  const double steps = message.kind == MessageKind::send_recv ? 0 : ring_steps(message.kind, message.ranks);
  return line.latency.seconds() + steps * line.step_latency.seconds();
}

// A message that takes no longer than the known latencies tells nothing of the bandwidth but that they are too long.
FittedLine with_latencies_of(const FittedLine& known, const std::vector<MessageTiming>& messages) {
  FittedLine line = known;
  std::vector<double> byte_s;
  for (const MessageTiming& message : messages) {
    constexpr double least_share = 0.1;
    const double beyond =
        std::max(message.timing.median_s - latency_of(known, message), least_share * message.timing.median_s);
    byte_s.push_back(beyond / bus_bytes(message));
  }
  line.bandwidth = bandwidth_of(median_of(std::move(byte_s)));
  line.has_latency = false;
  return line;
}

// The latency that was fitted at one number of ranks holds the steps of a ring, of which the known one is taken out.
void split_steps(FittedLine& line, Duration known_step, const MessageTiming& message) {
  if (message.kind == MessageKind::send_recv) return;
  const auto steps = static_cast<std::int64_t>(ring_steps(message.kind, message.ranks));
  if (steps == 0 || line.step_latency > Duration{}) return;
  line.step_latency = std::min(known_step, Duration::picoseconds(line.latency.picoseconds() / steps));
  line.latency = line.latency - steps * line.step_latency;
}

}  // namespace

FittedLine fit_line_of(const std::vector<MessageTiming>& messages, const FittedLine& known) {
  std::vector<std::int64_t> sizes;
  std::vector<MessageSample> samples;
  for (const MessageTiming& message : messages) {
    sizes.push_back(message.bytes);
    samples.push_back({message.link, message.kind, message.ranks, Bytes(message.bytes),
                       Duration::seconds(message.timing.median_s), std::nullopt});
  }
  if (range_of(sizes) < enough_range) return with_latencies_of(known, messages);
  FittedLine line;
  line.has_latency = true;
  if (messages.front().kind == MessageKind::send_recv) {
    const std::optional<SendRecvRate> rate = send_recv_rate(samples);
    line.latency = rate->latency;
    line.bandwidth = rate->bandwidth;
    return line;
  }
  const std::optional<CollectiveRate> rate = collective_rate(samples);
  line.latency = rate->latency;
  line.step_latency = rate->step_latency;
  line.bandwidth = rate->bandwidth;
  const bool one_number = std::all_of(messages.begin(), messages.end(), [&](const MessageTiming& message) {
    return message.ranks == messages.front().ranks;
  });
  if (one_number) split_steps(line, known.step_latency, messages.front());
  return line;
}

double seconds_by(const FittedLine& line, const MessageTiming& message) {
  return latency_of(line, message) + bus_bytes(message) / static_cast<double>(line.bandwidth.bytes_per_second());
}

}  // namespace hdpsim::calib
