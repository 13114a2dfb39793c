#include "calib/fit/impl/link_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "calib/fit/impl/linear_fits.h"
#include "sim/base/quantity_limits.h"

namespace hdpsim::calib {
namespace {

std::vector<MessageSample> of_kind(const std::vector<MessageSample>& samples, LinkKind link, MessageKind kind) {
  std::vector<MessageSample> found;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(found),
               [&](const MessageSample& s) { return s.link == link && s.kind == kind; });
  return found;
}

/// The rate for a cost per byte. If even the largest sample does not show that cost, start-up hides it, and the rate of
/// that sample is the best estimate.
Bandwidth shown_rate(double byte_s, const std::vector<double>& bytes, const std::vector<double>& seconds) {
  constexpr double least_shown_share = 0.01;
  const auto largest = static_cast<std::size_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
  const bool is_shown = byte_s * bytes[largest] >= least_shown_share * seconds[largest];
  return bandwidth_of(is_shown ? byte_s : seconds[largest] / bytes[largest]);
}

template <class Rate>
void raise(Bandwidth& fastest, const std::optional<Rate>& rate) {
  if (rate) fastest = std::max(fastest, rate->bandwidth);
}

// States the link's rate. A kind of message that is further from it than a profile may state was disturbed.
template <class Rate>
void state_line_rate(std::optional<Rate>& rate, Bandwidth line_rate) {
  if (!rate) return;
  rate->line_rate = line_rate;
  const auto least = std::ceil(limits::least_link_efficiency * static_cast<double>(line_rate.bytes_per_second()));
  rate->bandwidth =
      std::clamp(rate->bandwidth, Bandwidth::bytes_per_second(static_cast<std::int64_t>(least)), line_rate);
}

}  // namespace

double bus_factor(MessageKind kind, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (kind) {
    case MessageKind::send_recv:
      return 1;
    case MessageKind::all_reduce:
      return 2 * (n - 1) / n;
    case MessageKind::all_gather:
    case MessageKind::reduce_scatter:
    case MessageKind::all_to_all:
      return (n - 1) / n;
  }
  return 1;
}

double ring_steps(MessageKind kind, std::int64_t ranks) {
  return static_cast<double>(kind == MessageKind::all_reduce ? 2 * (ranks - 1) : ranks - 1);
}

std::optional<SendRecvRate> send_recv_rate(const std::vector<MessageSample>& samples) {
  if (samples.empty()) return std::nullopt;
  std::vector<double> bytes;
  std::vector<double> seconds;
  for (const MessageSample& sample : samples) {
    bytes.push_back(static_cast<double>(sample.bytes.count()));
    seconds.push_back(sample.time.seconds());
  }
  const Line line = fit_line(bytes, seconds);
  return SendRecvRate{Duration::seconds(line.latency_s), shown_rate(line.byte_s, bytes, seconds), {}, ""};
}

std::optional<CollectiveRate> collective_rate(const std::vector<MessageSample>& samples) {
  if (samples.empty()) return std::nullopt;
  std::set<std::int64_t> rank_counts;
  for (const MessageSample& sample : samples) rank_counts.insert(sample.ranks);
  const bool has_steps = rank_counts.size() > 1;
  Equations equations;
  std::vector<double> bytes;
  for (const MessageSample& sample : samples) {
    const double bus_bytes = static_cast<double>(sample.bytes.count()) * bus_factor(sample.kind, sample.ranks);
    bytes.push_back(bus_bytes);
    equations.features.push_back({1, has_steps ? ring_steps(sample.kind, sample.ranks) : 0, bus_bytes});
    equations.seconds.push_back(sample.time.seconds());
  }
  const std::vector<double> coefficients = relative_least_squares(equations);
  const Bandwidth rate = shown_rate(coefficients[2], bytes, equations.seconds);
  return CollectiveRate{Duration::seconds(coefficients[0]), Duration::seconds(coefficients[1]), rate, {}, ""};
}

std::optional<LinkProfile> link_profile(const std::vector<MessageSample>& samples, LinkKind link) {
  LinkProfile profile;
  profile.send_recv = send_recv_rate(of_kind(samples, link, MessageKind::send_recv));
  profile.all_gather = collective_rate(of_kind(samples, link, MessageKind::all_gather));
  profile.reduce_scatter = collective_rate(of_kind(samples, link, MessageKind::reduce_scatter));
  profile.all_reduce = collective_rate(of_kind(samples, link, MessageKind::all_reduce));
  profile.all_to_all = collective_rate(of_kind(samples, link, MessageKind::all_to_all));
  if (profile == LinkProfile{}) return std::nullopt;

  const std::array collectives = {&profile.all_gather, &profile.reduce_scatter, &profile.all_reduce,
                                  &profile.all_to_all};
  Bandwidth fastest;
  raise(fastest, profile.send_recv);
  for (const auto* rate : collectives) raise(fastest, *rate);
  state_line_rate(profile.send_recv, fastest);
  for (auto* rate : collectives) state_line_rate(*rate, fastest);
  return profile;
}

}  // namespace hdpsim::calib
