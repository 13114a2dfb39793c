#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "calib/measure/device.h"
#include "calib/measure/subject.h"
#include "kernels/spec/backend.h"
#include "sim/base/random.h"

namespace hdpsim::test {

/// The exact times of the kernels of a synthetic device.
struct SyntheticLaw {
  double launch_s = 5e-6;
  double flops = 100e9;       ///< Rate of attention over its exact area, and of matrix products.
  double bytes_per_s = 10e9;  ///< Rate of memory-bound kernels, and of messages.
  double row_s = 1e-9;        ///< Time of attention per row of a head: for queries, and for keys of the kv heads.
  double message_latency_s = 1e-5;
  double noise = 0;  ///< Relative standard deviation of single runs.
  std::uint64_t seed = 1;
};

/// A device whose kernels take the time of a law and compute nothing: its memory is never touched. Runs report one
/// after another to `on_run`, which may make them throttle.
class SyntheticBackend final : public kernels::Backend {
 public:
  explicit SyntheticBackend(const SyntheticLaw& law) : law_(law), noise_(law.seed, "synthetic") {}

  [[nodiscard]] kernels::Element element() const override { return kernels::Element::fp32; }
  [[nodiscard]] kernels::DeviceInfo info() const override {
    kernels::DeviceInfo info;
    info.name = "synthetic";
    info.memory_bytes = std::int64_t{1} << 36;
    info.cache_bytes = 1 << 20;
    return info;
  }
  [[nodiscard]] kernels::DeviceState state() override { return state_; }

  [[nodiscard]] kernels::DeviceMemory allocate(std::size_t bytes) override {
    allocated_ += bytes;
    return {::operator new(1), [](void* memory) { ::operator delete(memory); }};
  }
  void fill_bytes(void*, int, std::size_t) override {}
  void upload(void*, const void*, std::size_t) override {}
  void download(void*, const void*, std::size_t) override {}
  void copy(void*, const void*, std::size_t) override {}
  void synchronize() override {}

  void run(const kernels::AttentionForward& op) override { attention(op.heads, op.blocks, 4); }
  void run(const kernels::AttentionBackward& op) override { attention(op.heads, op.blocks, 10); }
  void run(const kernels::AttentionDelta& op) override {
    moves(op.rows * (2 * op.heads.heads * op.heads.dim + op.heads.heads));
  }
  void run(const kernels::RmsNormForward& op) override { moves(op.tokens * (2 * op.width + 1)); }
  void run(const kernels::RmsNormBackward& op) override { moves(op.tokens * (3 * op.width + 1)); }
  void run(const kernels::Rope& op) override { moves(op.tokens * (2 * op.heads * op.dim + 1)); }
  void run(const kernels::SwigluForward& op) override { moves(op.tokens * 3 * op.width); }
  void run(const kernels::SwigluBackward& op) override { moves(op.tokens * 5 * op.width); }
  void run(const kernels::Add& op) override { moves(3 * op.count); }
  void run(const kernels::EmbeddingForward& op) override { moves(op.tokens * (2 * op.width + 1)); }
  void run(const kernels::EmbeddingBackward& op) override { moves(op.tokens * 3 * op.width); }
  void run(const kernels::CrossEntropy& op) override { moves(op.tokens * (2 * op.vocabulary + 2)); }
  void run(const kernels::Adam& op) override { moves(8 * op.count); }
  void run(const kernels::Cast& op) override { moves(2 * op.count); }
  void run(const kernels::MatrixProduct& op) override {
    cost_s_ += law_.launch_s + 2.0 * static_cast<double>(op.m * op.n) * static_cast<double>(op.k) / law_.flops;
  }

  void set_progress_hook(std::function<void()>) override {}
  void set_sm_margin(int) override {}

  [[nodiscard]] std::vector<double> time(int runs, bool, const std::function<void()>& work) override {
    std::vector<double> seconds;
    for (int run = 0; run < runs; ++run) {
      cost_s_ = 0;
      work();
      seconds.push_back(noisy(cost_s_));
    }
    if (on_run) on_run(state_);
    return seconds;
  }

  [[nodiscard]] double noisy(double seconds) { return seconds * (1 + law_.noise * noise_.normal()); }
  [[nodiscard]] std::size_t allocated() const { return allocated_; }

  std::function<void(kernels::DeviceState&)> on_run;

 private:
  void moves(std::int64_t floats) { cost_s_ += law_.launch_s + 4.0 * static_cast<double>(floats) / law_.bytes_per_s; }
  void attention(const kernels::AttentionHeads& heads, std::span<const kernels::AttentionBlock> blocks, double factor) {
    double rows = 0;
    for (const kernels::AttentionBlock& block : blocks) {
      rows += static_cast<double>(block.queries * heads.heads + block.keys * heads.kv_heads);
    }
    const auto width = static_cast<double>(heads.heads * heads.dim);
    cost_s_ += law_.launch_s + factor * width * static_cast<double>(kernels::mask_area(blocks)) / law_.flops +
               law_.row_s * rows;
  }

  SyntheticLaw law_;
  RandomStream noise_;
  kernels::DeviceState state_;
  std::size_t allocated_ = 0;
  double cost_s_ = 0;
};

/// The whole device: its kernels, and messages between two ranks (latency, then bytes at a rate; no copies).
class SyntheticDevice final : public calib::Device {
 public:
  explicit SyntheticDevice(const SyntheticLaw& law = {}) : law_(law), backend_(law) {}

  [[nodiscard]] SyntheticBackend& backend() override { return backend_; }
  [[nodiscard]] calib::Circumstances circumstances() override {
    calib::Circumstances found;
    found.device = "CPU";
    found.device_name = "synthetic";
    found.memory_bytes = std::int64_t{1} << 36;
    found.peak_flops = 1.5 * law_.flops;
    found.memory_bandwidth = 1.5 * law_.bytes_per_s;
    found.peak_source = "a law";
    found.attention_tile_queries = 1;
    found.attention_tile_keys = 1;
    found.gemm_tile_m = 1;
    found.gemm_tile_n = 1;
    return found;
  }
  [[nodiscard]] calib::DeviceSpeed speed(const calib::Circumstances& circumstances) override {
    return {.peak_flops = circumstances.peak_flops,
            .peak_bandwidth = circumstances.memory_bandwidth,
            .usual_flops = law_.flops,
            .usual_bandwidth = law_.bytes_per_s,
            .cache_bytes = 1 << 20,
            .memory_bytes = circumstances.memory_bytes / 8};
  }
  /// Makes the next `times` checks report messages as not found.
  void disturb_messages(int times) { disturbed_ = times; }
  [[nodiscard]] bool is_as_found(const calib::Subject& subject) override {
    return !std::holds_alternative<calib::MessageSubject>(subject) || disturbed_-- <= 0;
  }
  /// Number of measurements during which neighbours worked.
  [[nodiscard]] int with_neighbours() const { return with_neighbours_; }
  [[nodiscard]] std::unique_ptr<calib::Neighbours> neighbours_at_work(const calib::Subject&) override {
    ++with_neighbours_;
    return std::make_unique<calib::Neighbours>();
  }
  [[nodiscard]] std::vector<std::int64_t> rank_counts() override { return {2}; }
  [[nodiscard]] std::vector<double> time(const calib::MessageSubject& message, int runs) override {
    std::vector<double> seconds;
    seconds.reserve(static_cast<std::size_t>(runs));
    const double exact = law_.message_latency_s + static_cast<double>(message.bytes) / law_.bytes_per_s;
    for (int run = 0; run < runs; ++run) seconds.push_back(backend_.noisy(exact));
    return seconds;
  }

 private:
  SyntheticLaw law_;
  SyntheticBackend backend_;
  int disturbed_ = 0;
  int with_neighbours_ = 0;
};

}  // namespace hdpsim::test
