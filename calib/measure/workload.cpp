#include "calib/measure/workload.h"

#include <algorithm>

#include "calib/measure/impl/tensors.h"
#include "calib/measure/impl/workloads.h"
#include "calib/measure/summary.h"
#include "kernels/spec/error.h"
#include "sim/base/check.h"

namespace hdpsim::calib {
namespace {

// A tensor that a cache holds moves faster than memory does; up to this multiple of the cache no bound is known.
constexpr std::int64_t caches_until_out_of_reach = 4;

/// The least time on a device of this speed. Zero for transfers, whose peak is not known here.
struct LeastPossible {
  const DeviceSpeed& speed;
  double operator()(const Attention& op) const { return flops_of(op).count() / speed.peak_flops; }
  double operator()(const Gemm& op) const { return flops_of(op).count() / speed.peak_flops; }
  double operator()(const MemoryBoundSubject& op) const {
    const bool cached = op.bytes < caches_until_out_of_reach * speed.cache_bytes;
    return cached ? 0 : static_cast<double>(op.bytes) / speed.peak_bandwidth;
  }
  template <class Traffic>
  double operator()(const Traffic&) const {
    return 0;
  }
};

struct Timed {
  Device& device;
  std::uint64_t seed;

  std::function<std::vector<double>(int)> operator()(const Attention& op) const {
    return queued(attention_workload(device.backend(), op, seed), starts_cold(device, op));
  }
  std::function<std::vector<double>(int)> operator()(const Gemm& op) const {
    return queued(gemm_workload(device.backend(), op, seed), starts_cold(device, op));
  }
  std::function<std::vector<double>(int)> operator()(const MemoryBoundSubject& op) const {
    return queued(memory_bound_workload(device.backend(), op, seed), starts_cold(device, op));
  }
  template <class Traffic>
  std::function<std::vector<double>(int)> operator()(const Traffic& op) const {
    return [&to = device, op](int runs) { return to.time(op, runs); };
  }

 private:
  [[nodiscard]] std::function<std::vector<double>(int)> queued(std::function<void()> work, bool cold) const {
    return [&backend = device.backend(), work = std::move(work), cold](int runs) {
      return backend.time(runs, cold, work);
    };
  }
};

struct Memory {
  std::int64_t element;
  std::int64_t operator()(const Attention& op) const {
    std::int64_t rows = 0;
    for (const AttentionBlock& block : op.blocks) rows += block.count * (block.queries + block.keys);
    // q, o, d_o in elements and d_q in fp32 per query; the same per key if there are as many key-value heads.
    return rows * op.heads * (op.head_dim * (3 * element + 4) + 8);
  }
  std::int64_t operator()(const Gemm& op) const { return element * (op.m * op.k + op.n * op.k + op.m * op.n); }
  std::int64_t operator()(const MemoryBoundSubject& op) const { return op.bytes; }
  std::int64_t operator()(const CopySubject& op) const { return 2 * op.bytes; }
  std::int64_t operator()(const MessageSubject& op) const { return 2 * op.ranks * op.bytes; }
  std::int64_t operator()(const InterferenceSubject&) const { return 0; }
};

}  // namespace

std::vector<double> Device::time(const CopySubject& copy, int) {
  throw kernels::DeviceError("this device has no copies to time: " + std::string(copy_kind_name(copy.kind)));
}

std::vector<double> Device::time(const MessageSubject& message, int) {
  throw kernels::DeviceError("this device has no messages to time: " + std::string(message_kind_name(message.kind)));
}

std::vector<double> Device::time(const InterferenceSubject& pair, int) {
  throw kernels::DeviceError("this device has no traffic to overlap with " + pair.compute);
}

Repeatable prepare(Device& device, const DeviceSpeed& speed, const Subject& subject, std::uint64_t seed) {
  HDPSIM_CHECK(speed.peak_flops > 0 && speed.peak_bandwidth > 0, "a device without peaks");
  return {.time = std::visit(Timed{device, seed}, subject),
          .state =
              [&backend = device.backend(), is_message = std::holds_alternative<MessageSubject>(subject)] {
                kernels::DeviceState state = backend.state();
                if (is_message) state.emptying_s.reset();  // ranks have backends of their own
                return state;
              },
          .between_s = starts_cold(device, subject) ? speed.emptying_s : 0,
          .least_possible_s = std::visit(LeastPossible{speed}, subject)};
}

bool starts_cold(const Device& device, const Subject& subject) {
  if (std::holds_alternative<MessageSubject>(subject)) return device.messages_start_cold();
  return !std::holds_alternative<CopySubject>(subject) && !std::holds_alternative<InterferenceSubject>(subject);
}

std::int64_t memory_of(const Subject& subject, kernels::Element element) {
  return std::visit(Memory{static_cast<std::int64_t>(kernels::element_bytes(element))}, subject);
}

double launch_seconds(Device& device) {
  constexpr int runs = 100;
  kernels::Backend& backend = device.backend();
  Tensors tensors(backend, 1);
  const kernels::Add smallest = {
      .count = 1, .a = tensors.elements(1), .b = tensors.elements(1), .y = tensors.results(1)};
  std::vector<double> seconds = backend.time(runs, false, [&] { backend.run(smallest); });
  std::sort(seconds.begin(), seconds.end());
  return percentile(seconds, 0.5);
}

}  // namespace hdpsim::calib
