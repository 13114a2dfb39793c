#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/profile/measured_samples.h"
#include "sim/profile/trace_record.h"
#include "sim/profiler/kernel_class.h"
#include "sim/profiler/operation_shape.h"
#include "sim/profiler/profiler_readers.h"

namespace hdpsim {

/// Figures of the same thing, measured again and again. Up to 4,096 of them are kept, evenly spread over all that were
/// added, so that memory does not grow with a trace.
class SampleSet {
 public:
  void add(double sample);
  /// How many were added.
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] double mean() const;
  /// The value that a share of the kept ones does not exceed, linear between them. Requires one (checked).
  [[nodiscard]] double quantile(double share) const;
  [[nodiscard]] const std::vector<double>& kept() const { return kept_; }

 private:
  static constexpr std::size_t most = 4096;
  std::vector<double> kept_;
  std::int64_t count_ = 0;
  std::int64_t every_ = 1;  ///< Of so many that are added, one is kept.
  double sum_ = 0;
};

/// Times of kernels of one shape, in seconds: those during which nothing else ran on the device, and those that
/// overlapped with a collective or message for nine tenths of their time.
struct KernelSamples {
  SampleSet alone;
  SampleSet overlapped;
  double kernels = 1;  ///< That an operation launched, in the mean.
};

/// One kind of message or collective. `bytes` in the convention of nccl-tests: what all ranks together hold for
/// all-gather, reduce-scatter and all-to-all, the buffer for all-reduce, the message for send/recv.
struct TracedMessage {
  MessageKind kind = MessageKind::send_recv;
  std::int64_t ranks = 2;
  std::int64_t bytes = 0;
  std::optional<LinkKind> link;  ///< Empty: the trace does not say which ranks take part.
  friend auto operator<=>(const TracedMessage&, const TracedMessage&) = default;
};

/// The times of one kind of message. A kernel waits for late ranks, so that not all of it is transfer.
struct MessageSamples {
  SampleSet seconds;       ///< Of all kernels, waiting included.
  SampleSet of_all_ranks;  ///< The least over all ranks of a group, where each of them has a trace.
  /// The estimate of the transfer alone: the median over collectives of which all ranks have a trace; otherwise the
  /// median, or the lowest decile where the ninth is more than a fifth above the first, for then ranks wait.
  [[nodiscard]] double transfer_s() const;
};

struct TracedCopy {
  CopyKind kind = CopyKind::d2h;
  std::int64_t bytes = 0;
  friend auto operator<=>(const TracedCopy&, const TracedCopy&) = default;
};

/// The kernels of one class.
struct ClassTime {
  std::int64_t kernels = 0;
  double seconds = 0;
  double with_shape_s = 0;  ///< Of those whose shapes, or bytes and ranks, the trace states.
};

/// What a device did at any time: the first of these that applies. Kernels count before messages, so that messages and
/// copies have only the time that they are exposed.
enum class DeviceActivity : std::uint8_t {
  attention_forward,
  attention_backward,
  product,
  memory_bound,
  unknown,
  send_recv,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  other_collective,
  copy,
  idle,
};
inline constexpr std::size_t device_activities = 13;
[[nodiscard]] std::string_view device_activity_name(DeviceActivity activity);

/// What the device of one trace did from its first kernel to its last.
struct RankRecording {
  std::string file;
  std::int64_t kernels = 0;
  double span_s = 0;
  std::array<double, device_activities> seconds{};  ///< Sums to the span.
  std::vector<double> steps_s;                      ///< Durations of the steps that the profiler marked (ProfilerStep).
};

/// What some traces say, one trace for each rank.
struct Recording {
  std::vector<RankRecording> ranks;
  std::vector<ProfiledDevice> devices;  ///< Different ones.
  std::string nccl;
  std::map<TracedProduct, KernelSamples> products;
  std::map<TracedAttention, KernelSamples> attention;
  std::map<TracedTraffic, KernelSamples> traffic;
  std::map<TracedMessage, MessageSamples> messages;
  std::map<TracedCopy, SampleSet> copies;  ///< From or to pinned memory, while none went the other way.
  SampleSet gaps;                          ///< From one kernel of a stream to the next, where that was queued before.
  SampleSet issues;                        ///< Between two launches of a thread of the host that does not wait.
  std::array<ClassTime, kernel_classes> classes{};
  std::map<std::string, ClassTime, std::less<>> words;         ///< By class and word: "memory-bound: norm".
  std::map<std::string, ClassTime, std::less<>> unclassified;  ///< By the kernel's name.
  std::int64_t inputs = 0;                                     ///< Operations whose inputs were recorded.
  std::int64_t graphs = 0;                                     ///< Launches of CUDA graphs.
  [[nodiscard]] double kernel_s() const;
};

struct RecordingOptions {
  /// GPUs of a node, which decide whether a message stays within a node. Empty: the devices that a trace lists.
  std::optional<std::int64_t> gpus_per_node;
  ReportShare report = [](double) {};  ///< Of all files together.
  /// Whether the operators of CPUs count as kernels in a trace that has none of a GPU. Then only RankRecording has what
  /// they did: no samples.
  bool counts_operators = false;
};

/// Reads traces of PyTorch's profiler, or of Nsight Systems where the name ends in .csv or .csv.gz
/// (profiler_readers.h), one of each rank, one after the other: memory is that of the kernels and launches of one
/// trace, some 100 bytes each, and of the samples. InputError: what these readers report; a trace without any kernel of
/// a GPU, unless operators count and it has some; one that is given twice; more than 20 million kernels or operations
/// in one.
[[nodiscard]] Recording read_recording(const std::vector<std::filesystem::path>& files,
                                       const RecordingOptions& options = {});

}  // namespace hdpsim
