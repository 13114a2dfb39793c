#include "sim/profiler/impl/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <unordered_map>
#include <variant>

#include "sim/base/quantity_limits.h"
#include "sim/profiler/impl/work_times.h"

namespace hdpsim {
namespace {

constexpr std::int64_t most_ranks = 10'000'000;
constexpr double mostly = 0.9;    // share of its time from which on a kernel counts as overlapped with a message
constexpr double hardly = 0.01;   // and up to which as alone
constexpr double settled_us = 5;  // a kernel that was launched so long before waits for no launch

KernelClass class_of(const RankTrace& trace, const RankKernel& kernel) {
  return trace.names[kernel.name].kind.kind;
}

bool is_computing(KernelClass kind) {
  return kind != KernelClass::collective && kind != KernelClass::copy && kind != KernelClass::fill;
}

/// Time in which other kernels overlap with each, in shares of its own.
struct Neighbours {
  std::vector<float> messages;
  std::vector<float> kernels;
};

/// Stretches of time in which at least one of some kernels runs, in order and apart.
class Busy {
 public:
  void add(double begin, double end) {
    if (!covered_.empty() && begin <= covered_.back().second) {
      covered_.back().second = std::max(covered_.back().second, end);
    } else {
      covered_.emplace_back(begin, end);
    }
  }
  /// The time of it between two moments. Begins must not fall from call to call.
  [[nodiscard]] double within(double begin, double end) {
    while (first_ < covered_.size() && covered_[first_].second <= begin) ++first_;
    double sum = 0;
    for (std::size_t i = first_; i < covered_.size() && covered_[i].first < end; ++i) {
      sum += std::min(end, covered_[i].second) - std::max(begin, covered_[i].first);
    }
    return sum;
  }

 private:
  std::vector<std::pair<double, double>> covered_;
  std::size_t first_ = 0;
};

/// One launch of an operation: the kernels of its class with the same external id.
struct Launch {
  std::uint32_t shape = 0;
  std::int64_t kernels = 0;
  double seconds = 0;
  double with_messages = 0;
  bool shared = false;  ///< Another kernel overlapped with it.
};

bool belongs(const OperationShape& shape, KernelClass kind) {
  if (std::holds_alternative<TracedProduct>(shape)) return kind == KernelClass::product;
  if (std::holds_alternative<TracedTraffic>(shape)) return kind == KernelClass::memory_bound;
  const auto* attention = std::get_if<TracedAttention>(&shape);
  return attention != nullptr && kind == (attention->direction == Direction::forward ? KernelClass::attention_forward
                                                                                     : KernelClass::attention_backward);
}

class RankAnalysis {
 public:
  RankAnalysis(RankTrace& trace, std::int64_t gpus_per_node, Recording& recording, MessagesOfGroups& groups)
      : trace_(trace), gpus_per_node_(gpus_per_node), recording_(recording), groups_(groups) {
    const auto earlier = [](const auto& a, const auto& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    };
    std::stable_sort(trace_.kernels.begin(), trace_.kernels.end(), earlier);
    std::stable_sort(trace_.calls.begin(), trace_.calls.end(), earlier);
  }

  void run(const std::string& file) {
    find_neighbours();
    launches();
    messages();
    copies();
    gaps();
    issues();
    recording_.inputs += trace_.inputs;
    recording_.ranks.push_back(rank(file));
  }

 private:
  void find_neighbours() {
    Busy talking;
    for (const RankKernel& kernel : trace_.kernels) {
      if (class_of(trace_, kernel) == KernelClass::collective) talking.add(kernel.begin, kernel.end);
    }
    neighbours_.messages.resize(trace_.kernels.size());
    neighbours_.kernels.resize(trace_.kernels.size());
    double computed_until = -std::numeric_limits<double>::infinity();
    std::size_t last = trace_.kernels.size();
    for (std::size_t i = 0; i < trace_.kernels.size(); ++i) {
      const RankKernel& kernel = trace_.kernels[i];
      if (!is_computing(class_of(trace_, kernel))) continue;
      const double length = std::max(kernel.end - kernel.begin, 1e-9);
      neighbours_.messages[i] = static_cast<float>(talking.within(kernel.begin, kernel.end) / length);
      const double shared = std::min(computed_until, kernel.end) - kernel.begin;
      if (shared > 0) {
        neighbours_.kernels[i] = static_cast<float>(shared / length);
        const RankKernel& before = trace_.kernels[last];
        neighbours_.kernels[last] += static_cast<float>(shared / std::max(before.end - before.begin, 1e-9));
      }
      if (kernel.end > computed_until) {
        computed_until = kernel.end;
        last = i;
      }
    }
  }

  void count(std::size_t i, bool has_shape) {
    const RankKernel& kernel = trace_.kernels[i];
    const RankName& name = trace_.names[kernel.name];
    const double seconds = us * (kernel.end - kernel.begin);
    const auto add = [&](ClassTime& time) {
      ++time.kernels;
      time.seconds += seconds;
      if (has_shape) time.with_shape_s += seconds;
    };
    add(recording_.classes[static_cast<std::size_t>(name.kind.kind)]);
    if (name.kind.kind == KernelClass::unknown) {
      add(recording_.unclassified[name.text]);
    } else if (!name.kind.word.empty()) {
      add(recording_.words[fmt::format("{}: {}", kernel_class_name(name.kind.kind), name.kind.word)]);
    }
  }

  void launches() {
    std::unordered_map<std::int64_t, std::size_t> of_id;
    std::vector<Launch> found;
    for (std::size_t i = 0; i < trace_.kernels.size(); ++i) {
      const RankKernel& kernel = trace_.kernels[i];
      const KernelClass kind = class_of(trace_, kernel);
      if (kind == KernelClass::collective) continue;  // counted with what is known of it
      const auto id = trace_.shape_of_id.find(kernel.external_id);
      const bool has_shape = id != trace_.shape_of_id.end() && belongs(trace_.shapes[id->second], kind);
      count(i, has_shape);
      if (!has_shape) continue;
      const auto [at, is_new] = of_id.try_emplace(kernel.external_id, found.size());
      if (is_new) found.push_back({.shape = id->second});
      Launch& launch = found[at->second];
      const double seconds = us * (kernel.end - kernel.begin);
      ++launch.kernels;
      launch.seconds += seconds;
      launch.with_messages += seconds * neighbours_.messages[i];
      launch.shared = launch.shared || neighbours_.kernels[i] > hardly;
    }
    for (const Launch& launch : found) add(launch);
  }

  void add(const Launch& launch) {
    if (launch.shared || !(launch.seconds > 0)) return;
    const auto add_to = [&](KernelSamples& samples) {
      const double share = launch.with_messages / launch.seconds;
      if (share <= hardly) samples.alone.add(launch.seconds);
      if (share >= mostly) samples.overlapped.add(launch.seconds);
      samples.kernels = std::max(samples.kernels, static_cast<double>(launch.kernels));
    };
    const OperationShape& shape = trace_.shapes[launch.shape];
    if (const auto* product = std::get_if<TracedProduct>(&shape)) add_to(recording_.products[*product]);
    if (const auto* attention = std::get_if<TracedAttention>(&shape)) add_to(recording_.attention[*attention]);
    // Of several kernels nobody knows which one moved the operation's bytes.
    const auto* traffic = std::get_if<TracedTraffic>(&shape);
    if (traffic != nullptr && launch.kernels == 1) add_to(recording_.traffic[*traffic]);
  }

  [[nodiscard]] const NamedMessage& message_of(const RankKernel& kernel) const {
    const NamedMessage& own = trace_.messages[kernel.message];
    if (own.bytes > 0 && own.ranks > 0) return own;
    const auto of_operation = trace_.message_of_id.find(kernel.external_id);
    return of_operation == trace_.message_of_id.end() ? own : trace_.messages[of_operation->second];
  }

  void messages() {
    std::map<std::pair<TracedMessage, std::string>, std::vector<float>> own;
    for (std::size_t i = 0; i < trace_.kernels.size(); ++i) {
      const RankKernel& kernel = trace_.kernels[i];
      if (class_of(trace_, kernel) != KernelClass::collective) continue;
      const NamedMessage& message = message_of(kernel);
      const bool is_known = message.kind && message.bytes > 0 && message.bytes <= limits::message.most.count() &&
                            message.ranks > 1 && message.ranks <= most_ranks && kernel.end > kernel.begin;
      count(i, is_known);
      if (!is_known) continue;
      const TracedMessage traced{*message.kind, message.ranks, message.bytes,
                                 link_among(message.group_ranks, message.ranks, gpus_per_node_)};
      own[{traced, message.group}].push_back(static_cast<float>(us * (kernel.end - kernel.begin)));
    }
    for (auto& [key, seconds] : own) groups_[key].push_back(std::move(seconds));
  }

  void copies() {
    for (const char* direction : {"DtoH", "HtoD"}) {
      Busy other_way;
      const auto goes = [&](const RankKernel& kernel, std::string_view where) {
        return class_of(trace_, kernel) == KernelClass::copy &&
               trace_.names[kernel.name].text.find(where) != std::string::npos;
      };
      const bool to_host = std::string_view(direction) == "DtoH";
      for (const RankKernel& kernel : trace_.kernels) {
        if (goes(kernel, to_host ? "HtoD" : "DtoH")) other_way.add(kernel.begin, kernel.end);
      }
      for (const RankKernel& kernel : trace_.kernels) {
        const bool is_pinned = trace_.names[kernel.name].text.find("Pageable") == std::string::npos;
        if (!goes(kernel, direction) || !is_pinned || kernel.bytes == 0 || kernel.end <= kernel.begin) continue;
        if (other_way.within(kernel.begin, kernel.end) > hardly * (kernel.end - kernel.begin)) continue;
        recording_.copies[{to_host ? CopyKind::d2h : CopyKind::h2d, kernel.bytes}].add(us *
                                                                                       (kernel.end - kernel.begin));
      }
    }
  }

  // Only where the next kernel was launched well before the one before it ended, the time between them is the device's.
  void gaps() {
    std::unordered_map<std::int64_t, double> launched;
    for (const RankCall& call : trace_.calls) {
      if (call.kind == RankCall::Kind::launch && call.correlation >= 0) launched[call.correlation] = call.end;
    }
    std::unordered_map<std::int32_t, double> ended;
    for (const RankKernel& kernel : trace_.kernels) {
      if (!is_computing(class_of(trace_, kernel))) continue;
      const auto before = ended.find(kernel.stream);
      const auto call = launched.find(kernel.correlation);
      if (before != ended.end() && call != launched.end() && call->second + settled_us <= before->second) {
        recording_.gaps.add(us * std::max(0.0, kernel.begin - before->second));
      }
      ended[kernel.stream] = kernel.end;
    }
  }

  // A thread that waits for the device, or for data, issues nothing: intervals with a call that waits, and those far
  // above the median, do not count.
  void issues() {
    std::unordered_map<std::int64_t, RankCall> last;
    std::vector<double> intervals;
    for (const RankCall& call : trace_.calls) {
      if (call.kind == RankCall::Kind::graph) ++recording_.graphs;
      const auto before = last.find(call.thread);
      const bool both_launch =
          before != last.end() && before->second.kind == RankCall::Kind::launch && call.kind == RankCall::Kind::launch;
      if (both_launch) intervals.push_back(us * (call.begin - before->second.begin));
      last[call.thread] = call;
    }
    if (intervals.empty()) return;
    constexpr double far = 20;
    const auto middle = intervals.begin() + std::ssize(intervals) / 2;
    std::nth_element(intervals.begin(), middle, intervals.end());
    const double most = far * *middle;
    for (const double interval : intervals) {
      if (interval <= most) recording_.issues.add(interval);
    }
  }

  [[nodiscard]] DeviceActivity activity_of(const RankKernel& kernel) const {
    const KernelClass own = class_of(trace_, kernel);
    return activity_of_kernel(own, own == KernelClass::collective ? message_of(kernel).kind : std::nullopt);
  }

  [[nodiscard]] RankRecording rank(const std::string& file) const {
    RankRecording rank;
    rank.file = file;
    rank.kernels = std::ssize(trace_.kernels);
    rank.steps_s = trace_.steps_s;
    std::vector<Work> work;
    work.reserve(trace_.kernels.size());
    double end = trace_.kernels.front().end;
    for (const RankKernel& kernel : trace_.kernels) {
      work.push_back({kernel.begin, kernel.end, activity_of(kernel)});
      end = std::max(end, kernel.end);
    }
    rank.seconds = WorkTimes(work).between(trace_.kernels.front().begin, end);  // sorted by their begins
    for (const double seconds : rank.seconds) rank.span_s += seconds;
    return rank;
  }

  RankTrace& trace_;
  std::int64_t gpus_per_node_;
  Recording& recording_;
  MessagesOfGroups& groups_;
  Neighbours neighbours_;
};

}  // namespace

std::optional<LinkKind> link_among(const std::string& group_ranks, std::int64_t ranks, std::int64_t gpus_per_node) {
  if (gpus_per_node > 0 && ranks > gpus_per_node) return LinkKind::network;
  if (gpus_per_node <= 1) return std::nullopt;
  std::vector<std::int64_t> nodes;
  for (const char* at = group_ranks.c_str(); *at != '\0';) {
    if (*at < '0' || *at > '9') {
      ++at;
      continue;
    }
    char* end = nullptr;
    nodes.push_back(std::strtoll(at, &end, 10) / gpus_per_node);
    at = end;
  }
  if (nodes.empty()) return std::nullopt;
  const bool one = std::all_of(nodes.begin(), nodes.end(), [&](std::int64_t node) { return node == nodes.front(); });
  return one ? LinkKind::nvlink : LinkKind::network;
}

void analyse(RankTrace& trace, const std::string& file, std::int64_t gpus_per_node, Recording& recording,
             MessagesOfGroups& groups) {
  RankAnalysis(trace, gpus_per_node, recording, groups).run(file);
}

}  // namespace hdpsim
