#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "sim/program/schedule.h"

namespace hdpsim {

/// The order of one stage under a schedule with a split backward that puts off weight gradients: they wait in the order
/// of their input gradients until the schedule runs them. Passes of slots from `slots` on are left out, so that a
/// schedule may count micro-batches that a short step does not have.
class SplitOrder {
 public:
  explicit SplitOrder(std::int64_t slots) : slots_(slots) {}

  void forward(std::int64_t slot, std::int64_t chunk) { add({slot, chunk, PassKind::forward}); }
  /// A forward pass at the same time as the backward pass that is added next.
  void forward_beside_next(std::int64_t slot, std::int64_t chunk) { add({slot, chunk, PassKind::forward, true}); }
  /// Puts off the weight gradient that belongs to it.
  void input_gradient(std::int64_t slot, std::int64_t chunk) {
    add({slot, chunk, PassKind::input_gradient});
    put_off_.push_back({slot, chunk, PassKind::weight_gradient});
  }
  /// Runs the weight gradient that has been put off longest.
  void weight_gradient() {
    add(put_off_.front());
    put_off_.pop_front();
  }
  /// Runs all weight gradients that were put off, except the last `stay`.
  void weight_gradients_but(std::int64_t stay) {
    while (std::ssize(put_off_) > stay) weight_gradient();
  }
  [[nodiscard]] std::vector<SlotPass> take() { return std::move(order_); }

 private:
  void add(const SlotPass& pass) {
    if (pass.slot < slots_) order_.push_back(pass);
  }

  std::int64_t slots_;
  std::deque<SlotPass> put_off_;
  std::vector<SlotPass> order_;
};

}  // namespace hdpsim
