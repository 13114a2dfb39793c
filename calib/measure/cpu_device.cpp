#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

#include "calib/measure/device.h"
#include "calib/measure/impl/message_timer.h"
#include "kernels/cpu/core_peak.h"
#include "kernels/cpu/cores.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/transport/in_process.h"

namespace hdpsim::calib {
namespace {

// The peaks of a processor are measured on a machine that others may use at the same time: a better moment may exceed
// them by this much.
constexpr double flops_slack = 1.15;
// A copy loads the lines that it writes; kernels that read more than they write move that much more of their own bytes.
constexpr double bandwidth_slack = 2;
// A smaller share is a momentary disturbance, and no basis for a plan.
constexpr double least_available = 0.1;
// Cores that share a cache hand over several times as fast as those that do not.
constexpr double same_distance = 1.6;

/// Rounds a peak that was measured on a shared machine: more digits would be meaningless.
double three_digits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

/// Processor seconds of this thread.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int cores() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

/// One end of messages, used by one thread at a time.
struct MessageRank {
  std::unique_ptr<kernels::Backend> backend = kernels::make_cpu_backend();
  MessageBuffers buffers{*backend};
};

class WorkingCores final : public Neighbours {
 public:
  explicit WorkingCores(kernels::BusyCores& cores) : cores_(cores) { cores_.work(); }
  WorkingCores(const WorkingCores&) = delete;
  WorkingCores& operator=(const WorkingCores&) = delete;
  ~WorkingCores() override { cores_.rest(); }

 private:
  kernels::BusyCores& cores_;
};

class CpuDevice final : public Device {
 public:
  [[nodiscard]] kernels::Backend& backend() override { return *backend_; }

  [[nodiscard]] Circumstances circumstances() override {
    const kernels::DeviceInfo info = backend_->info();
    Circumstances found;
    found.device = cpu_device_type;
    found.device_name = info.name;
    found.devices = cores();
    found.multiprocessors = 1;
    found.memory_bytes = info.memory_bytes / cores();
    const auto begin = std::chrono::steady_clock::now();
    const double worked = thread_seconds();
    found.peak_flops = three_digits(kernels::fma_peak_flops());
    found.memory_bandwidth = three_digits(kernels::copy_bandwidth());
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    available_ = std::clamp((thread_seconds() - worked) / passed.count(), least_available, 1.0);
    found.hand_over_s = hand_over_seconds();
    found.peak_source = fmt::format("one core, measured: fused multiply-add on registers ({}, fp32), copy in memory",
                                    info.instruction_set);
    const kernels::CpuAttentionTile tile = kernels::attention_tile();
    found.attention_tile_queries = tile.queries;
    found.attention_tile_keys = tile.keys;
    found.attention_gradient_tile_queries = tile.gradient_queries;
    found.attention_gradient_tile_keys = tile.gradient_keys;
    found.gemm_tile_m = gemm_tile;
    found.gemm_tile_n = gemm_tile;
    found.clocks = info.clock_mhz > 0 ? fmt::format("up to {:.0f} MHz, not fixed", info.clock_mhz) : "not fixed";
    found.element_bytes = static_cast<std::int64_t>(kernels::element_bytes(backend_->element()));
    // OpenBLAS has kernels for the processors that it knows. On a younger one it may take those of an old one.
    found.instruction_set = fmt::format("{}, {}", info.instruction_set, info.matrix_library);
    return found;
  }

  [[nodiscard]] DeviceSpeed speed(const Circumstances& circumstances) override {
    const kernels::DeviceInfo info = backend_->info();
    hand_over_s_ = circumstances.hand_over_s;
    return {.peak_flops = flops_slack * circumstances.peak_flops,
            .peak_bandwidth = bandwidth_slack * circumstances.memory_bandwidth,
            .usual_flops = usual_share * circumstances.peak_flops,
            .usual_bandwidth = usual_share * circumstances.memory_bandwidth,
            .available = available_,
            .shared = true,
            .emptying_s = emptying_seconds(),
            .cache_bytes = info.cache_bytes,
            .memory_bytes = circumstances.memory_bytes / memory_parts};
  }

  /// Under a hypervisor the cores of this machine migrate: neighbours now, on two chips a minute later. The times of
  /// messages between them then differ by a factor of two: small ones are slower, and large ones, which have two
  /// caches, are faster.
  [[nodiscard]] bool is_as_found(const Subject& subject) override {
    if (!std::holds_alternative<MessageSubject>(subject) || hand_over_s_ == 0) return true;
    const double ratio = hand_over_seconds() / hand_over_s_;
    return ratio < same_distance && 1 / ratio < same_distance;
  }

  [[nodiscard]] std::unique_ptr<Neighbours> neighbours_at_work(const Subject& subject) override {
    if (cores() == 1 || std::holds_alternative<MessageSubject>(subject)) return nullptr;
    if (!others_) others_ = std::make_unique<kernels::BusyCores>(cores());
    return std::make_unique<WorkingCores>(*others_);
  }

  [[nodiscard]] bool messages_start_cold() const override { return true; }

  /// Powers of two: as many threads as there are cores, each rank on a core of its own.
  [[nodiscard]] std::vector<std::int64_t> rank_counts() override {
    std::vector<std::int64_t> counts;
    for (int ranks = 2; ranks <= std::min(cores(), most_ranks); ranks *= 2) counts.push_back(ranks);
    return counts;
  }

  /// Caches start empty, as they do for kernels: keys, values and gradients of a real model do not stay in them.
  [[nodiscard]] std::vector<double> time(const MessageSubject& message, int runs) override {
    const auto ranks = static_cast<std::size_t>(message.ranks);
    if (transports_.size() != ranks) transports_ = kernels::make_in_process_transports(static_cast<int>(ranks));
    while (ranks_.size() < ranks) ranks_.emplace_back();
    std::vector<std::vector<MessageInterval>> intervals(ranks);
    kernels::run_ranks(transports_, [&](kernels::Transport& transport) {
      const auto index = static_cast<std::size_t>(transport.rank());
      kernels::stay_on_core(transport.rank());
      MessageRank& rank = ranks_[index];
      const auto empty_caches = [&rank] { (void)rank.backend->time(1, true, [] {}); };
      intervals[index] = time_message(transport, message, rank.buffers, runs, empty_caches);
    });
    return durations_of(intervals);
  }

 private:
  /// The hand-over time of the two most distant cores that exchange messages; 0 if there is only one.
  [[nodiscard]] double hand_over_seconds() {
    double longest = 0;
    for (int core = 1; core < std::min(cores(), most_ranks); ++core) {
      longest = std::max(longest, kernels::hand_over_seconds(core - 1, core));
    }
    return longest;
  }

  /// Measured on the wall clock.
  [[nodiscard]] double emptying_seconds() {
    constexpr int runs = 3;
    const auto nothing = [] {};
    (void)backend_->time(1, true, nothing);
    const auto begin = std::chrono::steady_clock::now();
    (void)backend_->time(runs, true, nothing);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / runs;
  }

  static constexpr std::int64_t gemm_tile = 16;  // approximate tile of OpenBLAS's kernels
  static constexpr int most_ranks = 16;
  double available_ = 1;
  double hand_over_s_ = 0;  ///< Hand-over time at the begin of the calibration.
  std::unique_ptr<kernels::Backend> backend_ = kernels::make_cpu_backend();
  std::unique_ptr<kernels::BusyCores> others_;                   ///< Made with the first kernel, if other cores exist.
  std::vector<std::unique_ptr<kernels::Transport>> transports_;  ///< Transports of the latest message.
  std::vector<MessageRank> ranks_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace hdpsim::calib
