#include "kernels/ring/ring_instructions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {
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

void RingSteps::join(const RingPlace& place, const AttentionHeads& heads) {
  if (under_way_) throw std::logic_error("a ring is left with an exchange under way");
  place_ = place;
  heads_ = heads;
  most_kv_ = documents().most_rows() * kv_width(heads);
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

void* RingSteps::reserve(Buffer& buffer, std::size_t bytes) {
  if (bytes > buffer.bytes || !buffer.memory) {
    backend_.synchronize();
    buffer.memory.reset();
    buffer.memory = backend_.allocate(bytes);
    buffer.bytes = bytes;
  }
  return buffer.memory.get();
}

float* RingSteps::reserve_fp32(Buffer& buffer, std::int64_t count) {
  return static_cast<float*>(reserve(buffer, bytes_of(count)));
}

const void* RingSteps::kv(int step) {
  if (step == 0) return is_backward_ ? backward_.kv : forward_.kv;
  return reserve(kv_[static_cast<std::size_t>(step % 2)], elements(most_kv_));
}

// In a ring of one the gradient stays in the caller's tensor.
float* RingSteps::d_kv(int step) {
  if (steps() == 1) return backward_.d_kv;
  return reserve_fp32(d_kv_[static_cast<std::size_t>(step % 2)], most_kv_);
}

// The LSE over no keys. No pattern of equal bytes is -inf, so it is uploaded, once.
const float* RingSteps::minus_infinity(std::int64_t count) {
  const std::size_t before = minus_infinity_.bytes;
  float* const data = reserve_fp32(minus_infinity_, count);
  if (minus_infinity_.bytes != before) {
    const std::vector<float> values(static_cast<std::size_t>(count), -std::numeric_limits<float>::infinity());
    backend_.upload(data, values.data(), bytes_of(count));
  }
  return data;
}

void RingSteps::exchange(int step) {
  if (under_way_ || arrived_for_ >= 0) {
    throw std::logic_error(fmt::format("exchange {} starts before the one before it has ended", step));
  }
  std::vector<Send> sends;
  std::vector<Receive> receives;
  const int next = member(place_.position + 1);
  const int previous = member(place_.position + steps() - 1);
  if (step < steps()) {
    sends.push_back({next, kv(step - 1), elements(kv_count(step - 1))});
    void* const place = reserve(kv_[static_cast<std::size_t>(step % 2)], elements(most_kv_));
    receives.push_back({previous, place, elements(kv_count(step))});
  }
  if (is_backward_ && step >= 2) {
    float* const place = step == steps() + 1 ? backward_.d_kv : reserve_fp32(arriving_, most_kv_);
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
    throw DeviceError(fmt::format("ring attention {}, exchange {} of {}, ring of ranks {}: {}",
                                  is_backward_ ? "backward" : "forward", step_, last_exchange(),
                                  fmt::join(*place_.members, " "), error.what()));
  }
  if (is_backward_ && step_ >= 2 && step_ <= steps()) arrived_for_ = step_ - 1;
}

// Adds the gradient that earlier ranks have summed for the keys of a step to this rank's.
void RingSteps::add_arrived() {
  const int step = std::exchange(arrived_for_, -1);
  if (step < 0) return;
  float* const sum = d_kv(step);
  backend_.run(Add{.count = kv_count(step), .a = sum, .b = arriving_.memory.get(), .y = sum, .fp32 = true});
}

void RingSteps::attend(int step) {
  is_backward_ ? attend_backward(step) : attend_forward(step);
}

std::vector<AttentionBlock> RingSteps::blocks(int step, const Reach& reach) const {
  if (steps() > 1 && (reach.window > 0 || reach.chunk > 0)) {
    throw std::logic_error("tokens that do not see all tokens before them are on a ring");
  }
  return limited(documents().blocks(place_.position, source(step)), reach);
}

// All rows see keys in the first step, which therefore need not accumulate where the element is fp32.
void RingSteps::attend_forward(int step) {
  if (!rounds_at_the_end()) return launch_forward(step, forward_.o, step > 0);
  launch_forward(step, step == 0 ? begin_sum() : sum_.memory.get(), true);
  if (step + 1 < steps()) return;
  backend_.run(Cast{.count = rows() * output_width(heads_), .from = sum_.memory.get(), .to = forward_.o});
}

// The initial values: o = 0, lse = -inf.
void* RingSteps::begin_sum() {
  const std::int64_t statistics = rows() * heads_.heads;
  const std::int64_t numbers = rows() * output_width(heads_);
  float* const sum = reserve_fp32(sum_, numbers);
  backend_.fill_bytes(sum, 0, bytes_of(numbers));
  backend_.copy(forward_.lse, minus_infinity(statistics), bytes_of(statistics));
  return sum;
}

void RingSteps::launch_forward(int step, void* o, bool accumulate) {
  const std::vector<AttentionBlock> of_step = blocks(step, forward_.reach);
  if (of_step.empty()) return;
  AttentionForward launched = forward_launch(launch(of_step), forward_, kv(step));
  launched.o.data = o;
  launched.accumulate = accumulate;
  if (step == 0) launched.sinks = forward_.sinks;
  backend_.run(launched);
}

void RingSteps::attend_backward(int step) {
  if (step == 0) begin_backward(backend_, heads_, rows(), backward_, reserve_fp32(delta_, rows() * heads_.heads));
  float* const d_keys = d_kv(step);
  backend_.fill_bytes(d_keys, 0, bytes_of(kv_count(step)));
  const std::vector<AttentionBlock> of_step = blocks(step, backward_.reach);
  if (of_step.empty()) return;
  AttentionBackward launched =
      backward_launch(launch(of_step), backward_, kv(step), d_keys, static_cast<const float*>(delta_.memory.get()));
  if (step == 0) launched.sinks = backward_.sinks;
  if (step == 0) launched.d_sinks = backward_.d_sinks;
  backend_.run(launched);
}

}  // namespace hdpsim::kernels
