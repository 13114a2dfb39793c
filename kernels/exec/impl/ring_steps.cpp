#include "kernels/exec/impl/ring_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <utility>
#include <vector>

#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

std::size_t bytes_of(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace

RingSteps::~RingSteps() {
  if (!under_way_) return;
  try {
    transport_.wait(ticket_);
  } catch (const std::exception&) {  // The error that ended the pass is the one to report.
  }
}

void RingSteps::join(const Share& share) {
  HDPSIM_CHECK(!under_way_, "a ring is left with an exchange under way");
  share_ = &share;
  most_kv_ = share.documents.most_rows() * kv_width();
}

void RingSteps::begin(const RingForward& op) {
  is_backward_ = false;
  forward_ = op;
}

void RingSteps::begin(const RingBackward& op) {
  is_backward_ = true;
  backward_ = op;
  arrived_for_ = -1;
}

float* RingSteps::reserve(Buffer& buffer, std::int64_t floats) {
  if (floats > buffer.floats || !buffer.memory) {
    backend_.synchronize();
    buffer.memory.reset();
    buffer.memory = backend_.allocate(bytes_of(floats));
    buffer.floats = floats;
  }
  return static_cast<float*>(buffer.memory.get());
}

const float* RingSteps::kv(int step) {
  if (step == 0) return static_cast<const float*>(is_backward_ ? backward_.kv : forward_.kv);
  return reserve(kv_[static_cast<std::size_t>(step % 2)], most_kv_);
}

// In a ring of one the gradient stays where it is wanted.
float* RingSteps::d_kv(int step) {
  if (steps() == 1) return backward_.d_kv;
  return reserve(d_kv_[static_cast<std::size_t>(step % 2)], most_kv_);
}

void RingSteps::exchange(int step) {
  HDPSIM_CHECK(!under_way_ && arrived_for_ < 0, "exchange {} starts before the one before it has ended", step);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  const int next = member(share_->position + 1);
  const int previous = member(share_->position + steps() - 1);
  if (step < steps()) {
    sends.push_back({next, kv(step - 1), bytes_of(kv_count(step - 1))});
    receives.push_back(
        {previous, reserve(kv_[static_cast<std::size_t>(step % 2)], most_kv_), bytes_of(kv_count(step))});
  }
  if (is_backward_ && step >= 2) {
    float* const place = step == steps() + 1 ? backward_.d_kv : reserve(arriving_, most_kv_);
    sends.push_back({next, d_kv(step - 2), bytes_of(kv_count(step - 2))});
    receives.push_back({previous, place, bytes_of(kv_count(step - 1))});
  }
  ticket_ = transport_.start(sends, receives);
  under_way_ = true;
  step_ = step;
}

void RingSteps::wait() {
  if (!std::exchange(under_way_, false)) return;
  try {
    transport_.wait(ticket_);
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("ring attention {}, exchange {}, ring of ranks {}: {}",
                                  is_backward_ ? "backward" : "forward", step_, fmt::join(share_->members, " "),
                                  error.what()));
  }
  if (is_backward_ && step_ >= 2 && step_ <= steps()) arrived_for_ = step_ - 1;
}

// What the ranks before this one have found for the keys of a step joins what this one has found.
void RingSteps::add_arrived() {
  const int step = std::exchange(arrived_for_, -1);
  if (step < 0) return;
  float* const sum = d_kv(step);
  backend_.run(Add{.count = kv_count(step), .a = sum, .b = arriving_.memory.get(), .y = sum, .fp32 = true});
}

void RingSteps::attend(int step) {
  is_backward_ ? attend_backward(step) : attend_forward(step);
}

// All rows see keys in the first step, which therefore need not accumulate.
void RingSteps::attend_forward(int step) {
  const auto blocks = share_->documents.blocks(share_->position, source(step));
  if (blocks.empty()) return;
  const float* const keys = kv(step);
  const std::int64_t width = heads_.heads * heads_.dim;
  backend_.run(AttentionForward{.heads = heads_,
                                .blocks = blocks,
                                .q = {forward_.q, width},
                                .k = {keys, kv_width()},
                                .v = {keys + kv_width() / 2, kv_width()},
                                .o = {forward_.o, width},
                                .lse = forward_.lse,
                                .lse_stride = share_->rows(),
                                .accumulate = step > 0});
}

// What every launch of the pass needs.
void RingSteps::prepare_backward() {
  const std::int64_t rows = share_->rows();
  const std::int64_t width = heads_.heads * heads_.dim;
  float* const delta = reserve(delta_, rows * heads_.heads);
  backend_.run(AttentionDelta{
      .heads = heads_, .rows = rows, .o = {backward_.o, width}, .d_o = {backward_.d_o, width}, .delta = delta});
  backend_.fill_bytes(backward_.d_q, 0, bytes_of(rows * width));
}

void RingSteps::attend_backward(int step) {
  if (step == 0) prepare_backward();
  float* const d_keys = d_kv(step);
  backend_.fill_bytes(d_keys, 0, bytes_of(kv_count(step)));
  const auto blocks = share_->documents.blocks(share_->position, source(step));
  if (blocks.empty()) return;
  const float* const keys = kv(step);
  const std::int64_t width = heads_.heads * heads_.dim;
  backend_.run(AttentionBackward{.heads = heads_,
                                 .blocks = blocks,
                                 .q = {backward_.q, width},
                                 .k = {keys, kv_width()},
                                 .v = {keys + kv_width() / 2, kv_width()},
                                 .d_o = {backward_.d_o, width},
                                 .lse = backward_.lse,
                                 .delta = static_cast<const float*>(delta_.memory.get()),
                                 .lse_stride = share_->rows(),
                                 .d_q = {backward_.d_q, width},
                                 .d_k = {d_keys, kv_width()},
                                 .d_v = {d_keys + kv_width() / 2, kv_width()},
                                 .deterministic = true});
}

}  // namespace hdpsim::kernels::exec
