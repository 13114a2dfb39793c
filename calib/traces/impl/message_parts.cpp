#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "calib/fit/fit.h"
#include "calib/traces/impl/link_fit.h"
#include "calib/traces/impl/trace_parts.h"
#include "sim/base/quantity_limits.h"
#include "sim/base/quantity_text.h"

namespace hdpsim::calib {
namespace {

constexpr std::size_t enough_messages = 4;
constexpr double enough_range_of_messages = 8;
/// Times the rate of its link that a collective may seem to reach; switches that reduce themselves save half the bytes.
constexpr double fastest_message = 4;

constexpr std::array<MessageKind, message_kind_count> message_kinds = {
    MessageKind::send_recv, MessageKind::all_reduce, MessageKind::all_gather, MessageKind::reduce_scatter,
    MessageKind::all_to_all};

/// The rate of one kind of message in a profile, as one type for all kinds.
template <class Visit>
void visit_rate(LinkProfile& link, MessageKind kind, const Visit& visit) {
  switch (kind) {
    case MessageKind::send_recv:
      return visit(link.send_recv);
    case MessageKind::all_reduce:
      return visit(link.all_reduce);
    case MessageKind::all_gather:
      return visit(link.all_gather);
    case MessageKind::reduce_scatter:
      return visit(link.reduce_scatter);
    case MessageKind::all_to_all:
      return visit(link.all_to_all);
  }
}

void set_step(SendRecvRate& /*rate*/, Duration /*step*/) {}
void set_step(CollectiveRate& rate, Duration step) {
  rate.step_latency = step;
}
Duration step_of(const SendRecvRate& /*rate*/) {
  return {};
}
Duration step_of(const CollectiveRate& rate) {
  return rate.step_latency;
}

class MessageParts {
 public:
  explicit MessageParts(TraceParts& parts) : parts_(parts) {}

  void messages(LinkKind link) {
    std::optional<LinkProfile>& known = link == LinkKind::nvlink ? parts_.result.nvlink : parts_.result.network;
    for (const MessageKind kind : message_kinds) {
      const std::string part = fmt::format("{} {}", link_kind_name(link), message_kind_name(kind));
      const std::vector<MessageTiming> timings = message_samples(parts_.recording, link, kind);
      if (timings.empty()) {
        parts_.keep(part, why_none(kind));
        continue;
      }
      if (!known) known.emplace();
      bool taken = false;
      visit_rate(*known, kind, [&](auto& rate) { taken = take_line(part, timings, line_rate_of(*known), rate); });
      if (taken) take_curves(timings);
    }
    if (known == LinkProfile{}) known.reset();
    complete(known);
  }

 private:
  [[nodiscard]] bool has_unplaced(MessageKind kind) const {
    return std::any_of(parts_.recording.messages.begin(), parts_.recording.messages.end(),
                       [&](const auto& item) { return item.first.kind == kind && !item.first.link; });
  }

  [[nodiscard]] std::string why_none(MessageKind kind) const {
    if (parts_.timed_alone) return "they were not measured";
    return has_unplaced(kind) ? "the trace does not tell which ranks are in one node: --gpus-per-node"
                              : "the traces have no such messages with their sizes";
  }

  // Whether all ranks of all these collectives were traced, so that their times have no waiting in them.
  [[nodiscard]] bool are_whole(const MessageTiming& kind) const {
    return std::all_of(parts_.recording.messages.begin(), parts_.recording.messages.end(), [&](const auto& item) {
      return item.first.kind != kind.kind || item.first.link != kind.link || !item.second.of_all_ranks.empty();
    });
  }

  [[nodiscard]] static Bandwidth line_rate_of(LinkProfile& link) {
    Bandwidth rate;
    for (const MessageKind kind : message_kinds) {
      visit_rate(link, kind, [&](const auto& known) {
        if (known) rate = std::max(rate, known->line_rate);
      });
    }
    return rate;
  }

  /// False if the messages waited, or are faster than they can be.
  template <class Rate>
  bool take_line(const std::string& part, const std::vector<MessageTiming>& timings, Bandwidth line_rate,
                 std::optional<Rate>& rate) {
    FittedLine before;
    if (rate) before = {rate->latency, step_of(*rate), rate->bandwidth, false};
    if (const std::string why = are_whole(timings.front()) ? "" : why_no_rate(timings, before); !why.empty()) {
      parts_.keep(part, why);
      return false;
    }
    const FittedLine line = fit_line_of(timings, before);
    const bool beyond_link = line_rate > Bandwidth{} && line.bandwidth > line_rate.scaled(fastest_message);
    if (beyond_link && parts_.timed_alone && has_curve(timings)) {
      take(part, "fitted", fmt::format("{:.4g} GB/s over all links of a node", line.bandwidth.gigabytes_per_second()),
           timings, line);
      return true;  // those ranks get their curve, and all others keep the line of one link
    }
    if (beyond_link) {
      parts_.keep(part, fmt::format("{:.4g} GB/s is more than its link can carry: is the unit of the times right?",
                                    line.bandwidth.gigabytes_per_second()));
      return false;
    }
    Rate fitted;
    fitted.latency = line.latency;
    set_step(fitted, line.step_latency);
    fitted.bandwidth = line.bandwidth;
    fitted.line_rate = line_rate;
    fitted.source = line.has_latency ? from_traces
                                     : fmt::format("bandwidth {}; latencies: {}", from_traces,
                                                   rate ? rate->source : "none is known");
    rate = fitted;
    take(part, line.has_latency ? "fitted" : "scaled",
         fmt::format("{:.4g} GB/s, latency {}{}", line.bandwidth.gigabytes_per_second(), duration_text(line.latency),
                     line.has_latency ? "" : " (kept)"),
         timings, line);
    return true;
  }

  void take(const std::string& part, const char* how, const std::string& value,
            const std::vector<MessageTiming>& timings, const FittedLine& line) {
    SampleSet ratios;
    std::int64_t samples = 0;
    for (const MessageTiming& timing : timings) {
      ratios.add(timing.timing.median_s / seconds_by(line, timing));
      samples += timing.timing.runs;
    }
    parts_.take(part, how, value, samples, timings.size(), ratios);
  }

  // Whether messages are of enough sizes for a curve.
  static bool has_curve(const std::vector<MessageTiming>& timings) {
    std::vector<std::int64_t> sizes;
    for (const MessageTiming& timing : timings) sizes.push_back(timing.bytes);
    return different(sizes) >= enough_messages && range_of(sizes) >= enough_range_of_messages;
  }

  /// Where sizes are many, messages among that many ranks get a curve of their own, as a calibration has it.
  void take_curves(const std::vector<MessageTiming>& timings) {
    std::map<std::int64_t, Samples> by_ranks;
    for (const MessageTiming& timing : timings) by_ranks[timing.ranks].messages.push_back(timing);
    for (auto& [ranks, samples] : by_ranks) {
      const MessageTiming& first = samples.messages.front();
      const auto is_replaced = [&first, ranks = ranks](const auto& known) {
        return known.link == first.link && known.kind == first.kind && known.ranks == ranks;
      };
      std::erase_if(parts_.result.fits.messages, is_replaced);
      std::erase_if(parts_.result.samples.messages, is_replaced);
      if (!has_curve(samples.messages)) continue;
      samples.circumstances = circumstances_of(parts_.start);
      const DeviceProfile fitted = fit_profile(samples, {.source = parts_.options.source, .seed = parts_.options.seed});
      parts_.result.fits.messages.push_back(fitted.fits.messages.front());
      const std::vector<MessageSample>& own = fitted.samples.messages;
      parts_.result.samples.messages.insert(parts_.result.samples.messages.end(), own.begin(), own.end());
    }
  }

  /// States the rate of a link that the starting profile lacks, and holds what was fitted to what a profile may state:
  /// messages between two devices are no faster than their link, and none is slower than a hundredth of it.
  static void complete(std::optional<LinkProfile>& link) {
    if (!link) return;
    Bandwidth line_rate = line_rate_of(*link);
    if (line_rate == Bandwidth{}) {
      for (const MessageKind kind : message_kinds) {
        visit_rate(*link, kind, [&](const auto& rate) {
          if (rate) line_rate = std::max(line_rate, rate->bandwidth);
        });
      }
    }
    for (const MessageKind kind : message_kinds) {
      visit_rate(*link, kind, [&](auto& rate) {
        if (!rate) return;
        if (rate->line_rate == Bandwidth{}) rate->line_rate = line_rate;
        rate->bandwidth = std::max(rate->bandwidth, rate->line_rate.scaled(limits::least_link_efficiency));
      });
    }
    if (link->send_recv) link->send_recv->line_rate = std::max(link->send_recv->line_rate, link->send_recv->bandwidth);
  }

  TraceParts& parts_;
};

}  // namespace

void take_messages(TraceParts& parts) {
  MessageParts messages(parts);
  for (const LinkKind link : {LinkKind::nvlink, LinkKind::network}) messages.messages(link);
}

}  // namespace hdpsim::calib
