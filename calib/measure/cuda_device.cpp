#include "calib/measure/device.h"
#include "kernels/spec/error.h"

#ifdef HDPSIM_WITH_CUDA

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "calib/measure/impl/workloads.h"
#include "calib/measure/summary.h"
#include "kernels/cuda/copies.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/peak.h"

namespace hdpsim::calib {
namespace {

constexpr std::int64_t largest_copy = std::int64_t{1} << 28;
// A kernel may find a part of its input in the second-level cache, however large its tensors are.
constexpr double cache_slack = 1.25;
constexpr int runs_a_slowdown = 5;  // launches whose median is compared, without traffic and with it

/// The device's name in clusters: "NVIDIA A100-SXM4-80GB" with 80 GiB is an A100-80GB.
std::string device_word(const kernels::DeviceInfo& info) {
  std::string name = info.name;
  if (name.starts_with("NVIDIA ")) name.erase(0, 7);
  const std::string model = name.substr(0, name.find_first_of(" -"));
  const double gib = std::ceil(static_cast<double>(info.memory_bytes) / static_cast<double>(std::int64_t{1} << 30));
  return fmt::format("{}-{:.0f}GB", model, gib);
}

kernels::TrafficKind traffic_of(const std::string& word) {
  if (word == "d2h") return kernels::TrafficKind::to_host;
  if (word == "h2d") return kernels::TrafficKind::to_device;
  if (word == "both") return kernels::TrafficKind::both_ways;
  return kernels::TrafficKind::peer;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index)
      : backend_(kernels::make_cuda_backend(index)), info_(backend_->info()), peak_(kernels::cuda_device_peak(index)) {}

  [[nodiscard]] kernels::Backend& backend() override { return *backend_; }

  [[nodiscard]] Circumstances circumstances() override {
    Circumstances found;
    found.device = device_word(info_);
    found.device_name = info_.name;
    found.multiprocessors = info_.multiprocessors;
    found.memory_bytes = info_.memory_bytes;
    found.peak_flops = peak_.flops;
    found.memory_bandwidth = peak_.memory_bandwidth;
    found.peak_source = peak_.source;
    found.driver = info_.driver;
    found.cuda = info_.cuda;
    found.clocks = info_.clock_mhz > 0 ? fmt::format("up to {:.0f} MHz, not fixed", info_.clock_mhz) : "not fixed";
    found.element_bytes = static_cast<std::int64_t>(kernels::element_bytes(backend_->element()));
    found.instruction_set = info_.instruction_set;
    return found;
  }

  [[nodiscard]] DeviceSpeed speed(const Circumstances& circumstances) override {
    return {.peak_flops = circumstances.peak_flops,
            .peak_bandwidth = cache_slack * circumstances.memory_bandwidth,
            .usual_flops = usual_share * circumstances.peak_flops,
            .usual_bandwidth = usual_share * circumstances.memory_bandwidth,
            .emptying_s = 2 * static_cast<double>(info_.cache_bytes) / circumstances.memory_bandwidth,
            .cache_bytes = info_.cache_bytes,
            .memory_bytes = info_.memory_bytes / memory_parts};
  }

  [[nodiscard]] std::vector<CopyKind> copy_kinds() override {
    return {CopyKind::d2h, CopyKind::h2d, CopyKind::d2h_of_both, CopyKind::h2d_of_both};
  }

  [[nodiscard]] std::vector<double> time(const CopySubject& copy, int runs) override {
    if (!copies_) copies_ = std::make_unique<kernels::CopyTimer>(*backend_, static_cast<std::size_t>(largest_copy));
    const bool to_host = copy.kind == CopyKind::d2h || copy.kind == CopyKind::d2h_of_both;
    const bool both = copy.kind == CopyKind::d2h_of_both || copy.kind == CopyKind::h2d_of_both;
    return copies_->time(to_host ? kernels::CopyDirection::to_host : kernels::CopyDirection::to_device,
                         static_cast<std::size_t>(copy.bytes), both, runs);
  }

  [[nodiscard]] std::vector<InterferenceSubject> interference() override {
    std::vector<InterferenceSubject> pairs;
    for (const char* compute : {"gemm", "attention", "elementwise"}) {
      for (const char* traffic : {"d2h", "h2d", "both"}) pairs.push_back({compute, traffic, 0});
      for (const std::int64_t ctas : {2, 4, 8, 16, 32}) {
        if (ctas < info_.multiprocessors) pairs.push_back({compute, "p2p", ctas});
      }
    }
    return pairs;
  }

  [[nodiscard]] std::vector<double> time(const InterferenceSubject& pair, int runs) override {
    const std::function<void()>& work = work_of(pair.compute);
    std::vector<double> slowdowns;
    for (int run = 0; run < runs; ++run) {
      const double quiet = summary(backend_->time(runs_a_slowdown, false, work)).median_s;
      const kernels::Traffic traffic(*backend_, traffic_of(pair.traffic), static_cast<int>(pair.ctas));
      slowdowns.push_back(summary(backend_->time(runs_a_slowdown, false, work)).median_s / quiet);
    }
    return slowdowns;
  }

 private:
  /// One launch of a kernel that fills the device for about a millisecond.
  [[nodiscard]] const std::function<void()>& work_of(const std::string& compute) {
    std::function<void()>& work = works_[compute];
    if (work) return work;
    if (compute == "gemm") {
      work = gemm_workload(*backend_, Gemm{8192, 8192, 4096}, 1);
    } else if (compute == "attention") {
      const Attention op{.blocks = {{8192, 8192, Mask::causal, 1}}, .heads = 32, .kv_heads = 8, .head_dim = 128};
      work = attention_workload(*backend_, op, 1);
    } else {
      work = memory_bound_workload(*backend_, {"swiglu_forward", std::int64_t{1} << 30}, 1);
    }
    return work;
  }

  std::unique_ptr<kernels::Backend> backend_;
  kernels::DeviceInfo info_;
  kernels::DevicePeak peak_;
  std::unique_ptr<kernels::CopyTimer> copies_;
  std::map<std::string, std::function<void()>> works_;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int index) {
  return std::make_unique<CudaDevice>(index);
}

int cuda_devices() {
  return kernels::cuda_device_count();
}

}  // namespace hdpsim::calib

#else

namespace hdpsim::calib {

std::unique_ptr<Device> make_cuda_device(int) {
  throw kernels::DeviceError("this hdpsim was built without CUDA: configure it with -DHDPSIM_CUDA=ON");
}

int cuda_devices() {
  return 0;
}

}  // namespace hdpsim::calib

#endif
