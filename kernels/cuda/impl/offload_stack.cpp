#include "kernels/cuda/impl/offload_stack.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/spec/error.h"

namespace hdpsim::kernels::cuda {

SlabPool::SlabPool(void* memory, std::size_t count, std::size_t bytes)
    : memory_(static_cast<std::byte*>(memory)), bytes_(bytes), emptied_(count) {
  for (std::size_t slab = count; slab > 0; --slab) free_.push_back(slab - 1);
}

std::size_t SlabPool::take() {
  const std::size_t slab = free_.back();
  free_.pop_back();
  return slab;
}

void SlabPool::give_back(std::size_t slab) {
  free_.push_back(slab);
}

void* SlabPool::memory(std::size_t slab) const {
  return memory_ + slab * bytes_;
}

OffloadStack::OffloadStack(Queues& queues, SlabPool& slabs, const std::vector<void*>& slots, std::size_t slot_bytes)
    : queues_(queues), slabs_(slabs), slot_bytes_(slot_bytes) {
  for (void* const memory : slots) slots_.push_back({.memory = memory, .computed = nullptr, .copied = nullptr});
}

OffloadStack::~OffloadStack() {
  drop();
}

OffloadStack::Slot& OffloadStack::slot_of(int layer) {
  return slots_[static_cast<std::size_t>(layer) % slots_.size()];
}

const std::vector<std::size_t>& OffloadStack::slabs_of(int layer) const {
  return held_[static_cast<std::size_t>(layer)];
}

int OffloadStack::offloaded_layers() const {
  return std::max(0, layers_ - static_cast<int>(slots_.size()));
}

void OffloadStack::drop() {
  for (const auto& layer : held_) {
    for (const std::size_t slab : layer) slabs_.give_back(slab);
  }
  held_.clear();
  phase_ = Phase::idle;
  open_ = false;
}

void OffloadStack::begin(int layers, std::size_t bytes_per_layer) {
  if (layers < 1) throw UnsupportedInput(fmt::format("offload: a pass of {} layers", layers));
  if (bytes_per_layer > slot_bytes_) {
    throw UnsupportedInput(
        fmt::format("offload: {} bytes a layer, but its device memory has {}", bytes_per_layer, slot_bytes_));
  }
  drop();
  layers_ = layers;
  bytes_ = bytes_per_layer;
  const std::size_t slabs_of_layer = (bytes_ + slabs_.slab_bytes() - 1) / slabs_.slab_bytes();
  const std::size_t needed = static_cast<std::size_t>(offloaded_layers()) * slabs_of_layer;
  if (needed > slabs_.free()) {
    throw DeviceError(fmt::format(
        "offload: the activations of {} layers of {} bytes need {} slabs of {} bytes of pinned host memory; {} "
        "of {} are free: raise the budget of host memory or offload fewer layers",
        offloaded_layers(), bytes_, needed, slabs_.slab_bytes(), slabs_.free(), slabs_.count()));
  }
  held_.resize(static_cast<std::size_t>(offloaded_layers()));
  for (auto& slabs : held_) {
    for (std::size_t i = 0; i < slabs_of_layer; ++i) slabs.push_back(slabs_.take());
  }
  phase_ = Phase::forward;
  layer_ = 0;
}

void OffloadStack::require(bool in_order, const char* call) const {
  if (in_order) return;
  throw UnsupportedInput(fmt::format("offload: {} out of order, at layer {} of {}", call, layer_, layers_));
}

void* OffloadStack::begin_forward() {
  require(phase_ == Phase::forward && !open_ && layer_ < layers_, "begin_forward()");
  open_ = true;
  const Slot& slot = slot_of(layer_);
  queues_.wait(Queue::compute, slot.copied);
  return slot.memory;
}

void OffloadStack::end_forward() {
  require(phase_ == Phase::forward && open_, "end_forward()");
  open_ = false;
  slot_of(layer_).computed = queues_.record(Queue::compute);
  if (layer_ < offloaded_layers()) copy_out(layer_);
  if (++layer_ == layers_) {
    phase_ = Phase::backward;
    --layer_;
  }
}

void* OffloadStack::begin_backward() {
  require(phase_ == Phase::backward && !open_ && layer_ >= 0, "begin_backward()");
  open_ = true;
  const Slot& slot = slot_of(layer_);
  queues_.wait(Queue::compute, slot.copied);
  return slot.memory;
}

void OffloadStack::end_backward() {
  require(phase_ == Phase::backward && open_, "end_backward()");
  open_ = false;
  slot_of(layer_).computed = queues_.record(Queue::compute);
  const int next = layer_ - static_cast<int>(slots_.size());  // takes the place of this one
  if (next >= 0) copy_in(next);
  if (--layer_ < 0) phase_ = Phase::idle;
}

void OffloadStack::copy_out(int layer) {
  Slot& slot = slot_of(layer);
  queues_.wait(Queue::out, slot.computed);
  std::size_t done = 0;
  for (const std::size_t slab : slabs_of(layer)) {
    const std::size_t bytes = std::min(slabs_.slab_bytes(), bytes_ - done);
    queues_.wait(Queue::out, slabs_.emptied(slab));
    queues_.copy(Queue::out, slabs_.memory(slab), static_cast<const std::byte*>(slot.memory) + done, bytes);
    done += bytes;
  }
  slot.copied = queues_.record(Queue::out);
}

void OffloadStack::copy_in(int layer) {
  Slot& slot = slot_of(layer);
  queues_.wait(Queue::in, slot.computed);
  std::size_t done = 0;
  for (const std::size_t slab : slabs_of(layer)) {
    const std::size_t bytes = std::min(slabs_.slab_bytes(), bytes_ - done);
    queues_.copy(Queue::in, static_cast<std::byte*>(slot.memory) + done, slabs_.memory(slab), bytes);
    slabs_.emptied(slab) = queues_.record(Queue::in);
    slabs_.give_back(slab);
    done += bytes;
  }
  held_[static_cast<std::size_t>(layer)].clear();
  slot.copied = queues_.record(Queue::in);
}

}  // namespace hdpsim::kernels::cuda
