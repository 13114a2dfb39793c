#include "kernels/cuda/impl/exchange_watch.h"

namespace hdpsim::kernels::cuda {

std::optional<std::string> ExchangeWatch::stuck(Clock::time_point now) {
  while (!operations_.empty() && happened_(operations_.front().done)) operations_.pop_front();
  if (operations_.empty()) return std::nullopt;
  Operation& oldest = operations_.front();
  if (!happened_(oldest.ready)) return std::nullopt;
  if (!oldest.runnable_since) oldest.runnable_since = now;
  if (now - *oldest.runnable_since < limit_) return std::nullopt;
  return oldest.text;
}

}  // namespace hdpsim::kernels::cuda
