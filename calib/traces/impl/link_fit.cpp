#include "calib/traces/impl/link_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calib/fit/impl/linear_fits.h"
#include "calib/fit/impl/link_profile.h"
#include "calib/traces/impl/trace_parts.h"
#include "sim/base/quantity_text.h"

namespace hdpsim::calib {
namespace {

constexpr double enough_range = 4;
constexpr double enough_range_of_growth = 2;
/// Of a message's time, by the known line, that must be transfer to determine a rate.
constexpr double least_transfer = 0.1;
/// A transfer whose time is so many times that of the known line is believed only if it grows with the size: published
/// links of one type differ by less (the priors of sim/profile/physical_parameters.cpp).
constexpr double most_beyond_known = 3;

double bus_bytes(const MessageTiming& message) {
  return bus_factor(message.kind, message.ranks) * static_cast<double>(message.bytes);
}

double latency_of(const FittedLine& line, const MessageTiming& message) {
  const double steps = message.kind == MessageKind::send_recv ? 0 : ring_steps(message.kind, message.ranks);
  return line.latency.seconds() + steps * line.step_latency.seconds();
}

// A message that takes no longer than the known latencies gives no bandwidth, only that these latencies are too long.
FittedLine with_latencies_of(const FittedLine& known, const std::vector<MessageTiming>& messages) {
  FittedLine line = known;
  std::vector<double> byte_s;
  for (const MessageTiming& message : messages) {
    const double beyond =
        std::max(message.timing.median_s - latency_of(known, message), least_transfer * message.timing.median_s);
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

// The exponent of messages' times in their sizes, d ln(time) / d ln(bytes): 1 of a transfer, 0 of a latency.
struct Growth {
  double exponent = 0;
  double error = 0;  ///< Its standard error.
};

template <class Seconds>
Growth growth_of(const std::vector<MessageTiming>& messages, const Seconds& seconds) {
  const auto count = static_cast<double>(messages.size());
  double x_mean = 0;
  double y_mean = 0;
  for (const MessageTiming& message : messages) {
    x_mean += std::log(bus_bytes(message)) / count;
    y_mean += std::log(seconds(message)) / count;
  }
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (const MessageTiming& message : messages) {
    const double x = std::log(bus_bytes(message)) - x_mean;
    const double y = std::log(seconds(message)) - y_mean;
    xx += x * x;
    xy += x * y;
    yy += y * y;
  }
  const double rest = std::max(0.0, yy - xy * xy / xx);
  return {xy / xx, messages.size() > 2 ? std::sqrt(rest / (count - 2) / xx) : 0};
}

// Whether times surely grow by less than half of what those of transfers with the known latencies do.
bool ignore_sizes(const std::vector<MessageTiming>& messages, const FittedLine& known) {
  constexpr double least_exponent = 0.25;  // transfers that are nearly all latency determine nothing
  constexpr double errors = 2;
  const FittedLine line = with_latencies_of(known, messages);
  const Growth of_transfers = growth_of(messages, [&](const MessageTiming& m) { return seconds_by(line, m); });
  const Growth seen = growth_of(messages, [](const MessageTiming& m) { return m.timing.median_s; });
  return of_transfers.exponent > least_exponent && seen.exponent + errors * seen.error < of_transfers.exponent / 2;
}

std::string sizes_text(const std::vector<MessageTiming>& messages) {
  const auto smaller = [](const MessageTiming& a, const MessageTiming& b) { return a.bytes < b.bytes; };
  const auto [least, most] = std::minmax_element(messages.begin(), messages.end(), smaller);
  const auto one = [](const MessageTiming& message) {
    return fmt::format("{} took {}", bytes_text(Bytes(message.bytes)), seconds_text(message.timing.median_s));
  };
  return least->bytes == most->bytes ? one(*least) : fmt::format("{}, {}", one(*least), one(*most));
}

}  // namespace

std::string why_no_rate(const std::vector<MessageTiming>& messages, const FittedLine& known) {
  constexpr char remedy[] = "traces of all ranks tell what is transfer";
  std::vector<std::int64_t> sizes;
  std::vector<double> beyond_known;
  double transfer = 0;
  const bool is_known = known.bandwidth > Bandwidth{};
  for (const MessageTiming& message : messages) {
    sizes.push_back(message.bytes);
    if (!is_known) continue;
    beyond_known.push_back(message.timing.median_s / seconds_by(known, message));
    transfer = std::max(transfer, 1 - latency_of(known, message) / seconds_by(known, message));
  }
  if (is_known && transfer < least_transfer) {
    return fmt::format("too small to tell a rate: at most {}",
                       bytes_text(Bytes(*std::max_element(sizes.begin(), sizes.end()))));
  }
  const bool tells_growth = range_of(sizes) >= enough_range_of_growth;
  if (tells_growth && ignore_sizes(messages, known)) {
    return fmt::format("their times do not depend on their sizes ({}), so they waited for other ranks: {}",
                       sizes_text(messages), remedy);
  }
  if (tells_growth || !is_known) return {};
  const double beyond = median_of(beyond_known);
  if (beyond <= most_beyond_known) return {};
  return fmt::format("{:.2g} times the known time ({}), and sizes too alike to tell whether they waited: {}", beyond,
                     sizes_text(messages), remedy);
}

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
