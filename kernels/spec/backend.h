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
#include "kernels/spec/layer.h"

namespace hdpsim::kernels {

enum class Element { fp32, bf16 };
[[nodiscard]] inline std::size_t element_bytes(Element element) {
  return element == Element::fp32 ? 4 : 2;
}

/// What a device is, for the provenance of a profile.
struct DeviceInfo {
  std::string name;                  ///< As the driver or /proc/cpuinfo says.
  std::int64_t multiprocessors = 1;  ///< Cores that one backend uses, on a CPU: 1.
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;  ///< Of the last level that all multiprocessors share.
  double clock_mhz = 0;          ///< Highest; 0 if unknown.
  std::string driver;            ///< These may be empty.
  std::string cuda;
  std::string instruction_set;  ///< "avx512", "sm_90a".
};

/// A look at the device while it works. What cannot be read is absent.
struct DeviceState {
  std::optional<double> clock_mhz;
  std::optional<double> power_w;
  std::optional<double> temperature_c;
  /// Median time of emptying the caches before the runs that were timed cold last. It follows what others leave of the
  /// memory's bandwidth, as cold kernels do.
  std::optional<double> emptying_s;
  bool throttled = false;  ///< The device says that it runs slower than it could, for heat or power.
};

/// Device memory that frees itself, aligned to 256 bytes.
using DeviceMemory = std::unique_ptr<void, std::function<void(void*)>>;

/// A point in a queue of a device.
struct Mark {
  std::chrono::steady_clock::time_point time;  ///< When it was reached, where that is known at once.
  std::shared_ptr<const void> event;           ///< Else what its backend knows it by.
};

/// One device and a queue of work on it: all that a transformer layer needs, for one kind of device.
///
/// Calls are queued in order and may return before the work is done (on a GPU they do; on a CPU they compute at once,
/// on the calling thread). One backend belongs to one thread. Pointers are to memory of this backend. Errors:
/// DeviceError where the machine refuses, UnsupportedInput where a kernel does not take the shape.
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
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;    ///< Waits.
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;  ///< Waits.
  /// upload() that does not wait: the host's memory may be used again at once.
  virtual void upload_queued(void* device, const void* host, std::size_t bytes) { upload(device, host, bytes); }
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  ///< Within the device, queued.
  virtual void synchronize() = 0;

  /// Whether calls return before the work is done.
  [[nodiscard]] virtual bool runs_ahead() const { return false; }
  /// The end of what has been queued so far.
  [[nodiscard]] virtual Mark mark() { return {std::chrono::steady_clock::now(), nullptr}; }
  /// When a mark of this device was reached, which it waits for; to a few microseconds.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point time_of(const Mark& mark) { return mark.time; }

  virtual void run(const AttentionForward& op) = 0;
  virtual void run(const AttentionDelta& op) = 0;
  virtual void run(const AttentionBackward& op) = 0;
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
  virtual void run(const MatrixProduct& op) = 0;

  /// Called between tiles of attention on a CPU, so that messages move while it computes; ignored by devices whose
  /// transports need no help.
  virtual void set_progress_hook(std::function<void()> hook) = 0;
  /// Attention launches leave this many multiprocessors to communication. Ignored by CPUs.
  virtual void set_sm_margin(int multiprocessors) = 0;

  /// Seconds of the device that each of `runs` executions of `work` takes. `work` only queues on this backend and is
  /// called `runs` times. On a GPU all runs are queued behind a gate before the first starts, so that launches cost
  /// nothing; `cold` empties the last-level cache before each run.
  [[nodiscard]] virtual std::vector<double> time(int runs, bool cold, const std::function<void()>& work) = 0;
};

}  // namespace hdpsim::kernels
