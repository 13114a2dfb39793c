#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/spec/attention.h"
#include "kernels/spec/error.h"
#include "kernels/spec/expert_routing.h"
#include "kernels/spec/layer.h"
#include "kernels/spec/linear_attention.h"

namespace hdpsim::kernels {

enum class Element { fp32, bf16 };
[[nodiscard]] inline std::size_t element_bytes(Element element) {
  return element == Element::fp32 ? 4 : 2;
}

/// Description of a device, for the provenance of a profile.
struct DeviceInfo {
  std::string name;                  ///< As the driver or /proc/cpuinfo gives it.
  std::int64_t multiprocessors = 1;  ///< Cores that one backend uses; 1 on a CPU.
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;  ///< Size of the last level that all multiprocessors share.
  double clock_mhz = 0;          ///< Highest clock; 0 if unknown.
  std::string driver;            ///< This and the following may be empty.
  std::string cuda;
  std::string instruction_set;   ///< "avx512", "sm_90a".
  std::string matrix_library{};  ///< Of matrix products, and the processor that it takes this one for.
};

/// The state of a device while it works. Unreadable values are empty.
struct DeviceState {
  std::optional<double> clock_mhz;
  std::optional<double> power_w;
  std::optional<double> temperature_c;
  /// Median time of emptying the caches before the runs that were last timed cold. It shows how much memory bandwidth
  /// other programs leave, which also affects cold kernels.
  std::optional<double> emptying_s;
  bool throttled = false;  ///< The device reports that heat or power makes it slower than it could be.
};

/// Device memory that frees itself, aligned to 256 bytes.
using DeviceMemory = std::unique_ptr<void, std::function<void(void*)>>;

/// A point in a queue of a device.
struct Mark {
  std::chrono::steady_clock::time_point time;  ///< When it was reached, if that is known at once.
  std::shared_ptr<const void> event;           ///< Otherwise the backend's handle of it.
};

/// One device and a queue of work on it: all that a transformer layer needs, for one kind of device.
///
/// Calls are queued in order and may return before the work is done (on a GPU they do; on a CPU they compute at once,
/// on the calling thread). One backend belongs to one thread. Pointers are to memory of this backend. Errors:
/// DeviceError if the machine refuses, UnsupportedInput if a kernel does not support the shape.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual Element element() const = 0;
  [[nodiscard]] virtual DeviceInfo info() const = 0;
  [[nodiscard]] virtual DeviceState state() = 0;

  [[nodiscard]] virtual DeviceMemory allocate(std::size_t bytes) = 0;
  virtual void fill_bytes(void* data, int value, std::size_t bytes) = 0;
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;    ///< Waits for the copy.
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;  ///< Waits for the copy.
  /// An upload() that does not wait: the host's memory may be reused at once.
  virtual void upload_queued(void* device, const void* host, std::size_t bytes) { upload(device, host, bytes); }
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  ///< Within the device, queued.
  virtual void synchronize() = 0;

  /// Whether calls return before the work is done.
  [[nodiscard]] virtual bool runs_ahead() const { return false; }
  /// A mark at the end of all work queued so far.
  [[nodiscard]] virtual Mark mark() { return {std::chrono::steady_clock::now(), nullptr}; }
  /// When a mark of this device was reached, to a few microseconds. Waits for it.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point time_of(const Mark& mark) { return mark.time; }

  virtual void run(const AttentionForward& op) = 0;
  virtual void run(const AttentionDelta& op) = 0;
  virtual void run(const AttentionBackward& op) = 0;
  virtual void run(const LinearAttentionForward&) { refuse_mixing(); }
  virtual void run(const LinearAttentionBackward&) { refuse_mixing(); }
  virtual void run(const RmsNormForward& op) = 0;
  virtual void run(const RmsNormBackward& op) = 0;
  virtual void run(const Rope& op) = 0;
  virtual void run(const SwigluForward& op) = 0;
  virtual void run(const SwigluBackward& op) = 0;
  virtual void run(const Add& op) = 0;
  virtual void run(const EmbeddingForward& op) = 0;
  virtual void run(const EmbeddingBackward& op) = 0;
  virtual void run(const CrossEntropy& op) = 0;
  virtual void run(const LogSumExp&) { throw UnsupportedInput("this device computes no part of a vocabulary"); }
  virtual void run(const JoinLogSumExp&) { throw UnsupportedInput("this device computes no part of a vocabulary"); }
  virtual void run(const Adam& op) = 0;
  virtual void run(const Cast& op) = 0;
  virtual void run(const CopyColumns&) { throw UnsupportedInput("this device makes no keys through latents"); }
  virtual void run(const SiluForward&) { refuse_mixing(); }
  virtual void run(const SiluBackward&) { refuse_mixing(); }
  virtual void run(const GateForward&) { refuse_mixing(); }
  virtual void run(const GateBackward&) { refuse_mixing(); }
  virtual void run(const RouteForward&) { refuse_experts(); }
  virtual void run(const RouteBackward&) { refuse_experts(); }
  virtual void run(const SortCopies&) { refuse_experts(); }
  virtual void run(const SpreadTokens&) { refuse_experts(); }
  virtual void run(const SumCopies&) { refuse_experts(); }
  virtual void run(const WeightGradients&) { refuse_experts(); }
  virtual void run(const MatrixProduct& op) = 0;

  /// The hook is called between tiles of attention on a CPU, so that messages move while it computes; ignored by
  /// devices whose transports need no help.
  virtual void set_progress_hook(std::function<void()> hook) = 0;
  /// Attention launches leave this many multiprocessors to communication. Ignored by CPUs.
  virtual void set_sm_margin(int multiprocessors) = 0;

  /// Device seconds of each of `runs` executions of `work`. `work` only queues on this backend and is called `runs`
  /// times. On a GPU all runs are queued behind a gate before the first starts, so that launches cost no time; `cold`
  /// empties the last-level cache before each run.
  [[nodiscard]] virtual std::vector<double> time(int runs, bool cold, const std::function<void()>& work) = 0;

 private:
  [[noreturn]] static void refuse_mixing() { throw UnsupportedInput("this device has no linear attention"); }
  [[noreturn]] static void refuse_experts() { throw UnsupportedInput("this device has no experts"); }
};

}  // namespace hdpsim::kernels
