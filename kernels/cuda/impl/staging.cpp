#include "kernels/cuda/impl/staging.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

namespace hdpsim::kernels::cuda {
namespace {

constexpr std::size_t smallest_table = std::size_t{64} << 10;
constexpr std::size_t smallest_scratch = std::size_t{16} << 20;

}  // namespace

Staging::Staging(cudaStream_t stream, std::function<void()> before_waiting)
    : stream_(stream), before_waiting_(std::move(before_waiting)) {
  for (Slot& slot : slots_) {
    slot.copied = make_event();
    reserve(slot, smallest_table);
  }
}

void Staging::reserve(Slot& slot, std::size_t bytes) {
  const std::size_t capacity = std::bit_ceil(bytes);
  slot.host = allocate_pinned(capacity);
  slot.device = allocate_device(capacity);
  slot.capacity = capacity;
}

const void* Staging::stage(const void* host, std::size_t bytes) {
  const std::span table(static_cast<const std::byte*>(host), bytes);
  const auto known = tables_.find(table);
  Slot& slot = slots_[known ? *known : put(table)];
  // Copied even if the device has the table: kernels may have counted in it.
  check(cudaMemcpyAsync(slot.device.get(), slot.host.get(), bytes, cudaMemcpyHostToDevice, stream_),
        "cudaMemcpyAsync of a staged table");
  check(cudaEventRecord(slot.copied.get(), stream_), "cudaEventRecord of a staged table");
  return slot.device.get();
}

std::size_t Staging::put(std::span<const std::byte> table) {
  const std::size_t oldest = tables_.oldest();
  Slot& slot = slots_[oldest];
  if (table.size() > slot.capacity) {
    wait_for_stream();  // readers of the old piece may still run
    reserve(slot, table.size());
  } else if (const cudaError_t state = cudaEventQuery(slot.copied.get()); state == cudaErrorNotReady) {
    wait_for_stream();
  } else {
    check(state, "cudaEventQuery of a staged table");
  }
  if (!table.empty()) std::memcpy(slot.host.get(), table.data(), table.size());
  tables_.put(oldest, table);
  return oldest;
}

void* Staging::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    wait_for_stream();  // readers of the old piece may still run
    scratch_.reset();
    scratch_bytes_ = 0;
    const std::size_t capacity = std::max(smallest_scratch, std::bit_ceil(bytes));
    scratch_ = allocate_device(capacity);
    scratch_bytes_ = capacity;
  }
  return scratch_.get();
}

void Staging::wait_for_stream() {
  before_waiting_();
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

}  // namespace hdpsim::kernels::cuda
