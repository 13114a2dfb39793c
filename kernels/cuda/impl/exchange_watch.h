#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "kernels/cuda/impl/queues.h"

namespace hdpsim::kernels::cuda {

/// Notices stuck communication. Operations of one stream run one after another; one is stuck when everything before it
/// has happened, and nothing more for the limit. Waiting for slow kernels before it does not count.
class ExchangeWatch {
 public:
  using Clock = std::chrono::steady_clock;

  ExchangeWatch(std::chrono::milliseconds limit, std::function<bool(const Event&)> happened)
      : limit_(limit), happened_(std::move(happened)) {}

  /// Adds an operation that may start at `ready` and ends at `done`; `text` names what it waits for if it is stuck.
  void add(std::string text, Event ready, Event done) {
    operations_.push_back({std::move(text), std::move(ready), std::move(done), {}});
  }
  /// The text of the operation that is stuck at `now`; empty if none is. Call it more often than the limit.
  [[nodiscard]] std::optional<std::string> stuck(Clock::time_point now);
  /// Operations that had not ended when stuck() was last called.
  [[nodiscard]] std::size_t under_way() const { return operations_.size(); }

 private:
  struct Operation {
    std::string text;
    Event ready;
    Event done;
    std::optional<Clock::time_point> runnable_since;
  };

  std::chrono::milliseconds limit_;
  std::function<bool(const Event&)> happened_;
  std::deque<Operation> operations_;
};

}  // namespace hdpsim::kernels::cuda
