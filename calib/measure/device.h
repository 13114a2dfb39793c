#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "calib/measure/subject.h"
#include "kernels/spec/backend.h"

namespace hdpsim::calib {

/// The share of the peaks that kernels roughly achieve.
inline constexpr double usual_share = 0.6;
/// One of these parts of the memory is for one measurement.
inline constexpr std::int64_t memory_parts = 8;

/// Limits that no kernel on this device can exceed, and rates that kernels roughly achieve. Rates per second.
struct DeviceSpeed {
  double peak_flops = 0;      ///< A measured rate above it is refused.
  double peak_bandwidth = 0;  ///< The same for tensors that no cache can hold.
  double usual_flops = 0;     ///< For estimates of how long a measurement will take.
  double usual_bandwidth = 0;
  /// The part of the time that the device gives to this program: other programs of a shared machine take the rest.
  double available = 1;
  bool shared = false;    ///< Shared with other programs, which disturb measurements for seconds at a time.
  double emptying_s = 0;  ///< Time of emptying the caches once.
  std::int64_t cache_bytes = 0;
  std::int64_t memory_bytes = 0;  ///< Memory that one measurement may use.
};

/// Keeps the other devices of the machine busy as long as it lives.
class Neighbours {
 public:
  Neighbours() = default;
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  virtual ~Neighbours() = default;
};

/// A device to calibrate: its kernels, and the traffic that it can time. Unsupported subjects are missing from its
/// lists. Errors: kernels::DeviceError.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual kernels::Backend& backend() = 0;
  /// The circumstances without date and commit, which the device does not know.
  [[nodiscard]] virtual Circumstances circumstances() = 0;
  /// The speed of this device under these circumstances, whose peaks an earlier execution may have measured.
  [[nodiscard]] virtual DeviceSpeed speed(const Circumstances& circumstances) = 0;

  /// False while the device differs from its circumstances, so that a timing of the subject would be invalid. Called
  /// before and after each measurement.
  [[nodiscard]] virtual bool is_as_found(const Subject&) { return true; }

  /// Held while the subject is timed: in training no device computes alone, and devices then share resources. Null if
  /// that makes no difference.
  [[nodiscard]] virtual std::unique_ptr<Neighbours> neighbours_at_work(const Subject&) { return nullptr; }

  [[nodiscard]] virtual std::vector<CopyKind> copy_kinds() { return {}; }
  [[nodiscard]] virtual std::vector<double> time(const CopySubject& copy, int runs);
  /// Rank counts, each at least 2, over which messages can be timed.
  [[nodiscard]] virtual std::vector<std::int64_t> rank_counts() { return {}; }
  [[nodiscard]] virtual std::vector<double> time(const MessageSubject& message, int runs);
  /// True if caches are emptied before each message; nccl-tests does not do that.
  [[nodiscard]] virtual bool messages_start_cold() const { return false; }
  [[nodiscard]] virtual std::vector<InterferenceSubject> interference() { return {}; }
  /// Returns slowdowns, not seconds.
  [[nodiscard]] virtual std::vector<double> time(const InterferenceSubject& pair, int runs);
};

/// The type of device, by the name that clusters and profiles use, of make_cpu_device().
inline constexpr std::string_view cpu_device_type = "CPU";

/// One core of this machine's processor, while all others compute, with messages between threads. Measures the peaks,
/// which takes about a second.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device();
/// A GPU. kernels::DeviceError if there is none, or if the program was built without CUDA.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int index);
/// Number of GPUs that can be used; 0 if the program was built without CUDA or no driver answers.
[[nodiscard]] int cuda_devices();

}  // namespace hdpsim::calib
