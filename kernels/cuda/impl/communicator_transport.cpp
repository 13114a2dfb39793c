#include "kernels/cuda/impl/communicator_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "kernels/spec/error.h"
#include "kernels/transport/impl/describe.h"

namespace hdpsim::kernels::cuda {
namespace {

// How often the watch checks: often enough to meet a limit within a few percent, and seldom enough to cost nothing.
std::chrono::milliseconds interval_of(std::chrono::milliseconds limit) {
  return std::clamp(limit / 20, std::chrono::milliseconds(1), std::chrono::milliseconds(100));
}

}  // namespace

std::optional<std::string> ExchangeWatch::stuck(Clock::time_point now) {
  while (!operations_.empty() && happened_(operations_.front().done)) operations_.pop_front();
  if (operations_.empty()) return std::nullopt;
  Operation& oldest = operations_.front();
  if (!happened_(oldest.ready)) return std::nullopt;
  if (!oldest.runnable_since) oldest.runnable_since = now;
  if (now - *oldest.runnable_since < limit_) return std::nullopt;
  return oldest.text;
}

CommunicatorTransport::CommunicatorTransport(std::unique_ptr<Communicator> communicator, Backend& backend,
                                             Queues& queues, std::chrono::milliseconds limit)
    : communicator_(std::move(communicator)),
      queues_(queues),
      rank_(communicator_->rank()),
      size_(communicator_->size()),
      limit_(limit),
      barrier_word_(backend.allocate(sizeof(float))),
      watch_(limit, [this](const Event& event) { return queues_.happened(event); }) {
  backend.fill_bytes(barrier_word_.get(), 0, sizeof(float));
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

CommunicatorTransport::~CommunicatorTransport() {
  watcher_.request_stop();
  watcher_.join();
  const std::lock_guard lock(mutex_);
  // During an error the other ranks may never come: their messages must not hold up this rank.
  if (!failure_ && std::uncaught_exceptions() > 0) communicator_->abort();
}

void CommunicatorTransport::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !failure_) {
    if (const auto reason = fault()) {
      fail(*reason);
      return;
    }
    ended_.wait_for(lock, stop, interval_of(limit_), [] { return false; });
  }
}

std::optional<std::string> CommunicatorTransport::fault() {
  try {
    if (auto failure = communicator_->failure()) return failure;
    if (const auto text = watch_.stuck(ExchangeWatch::Clock::now())) {
      return fmt::format("{}, and nothing has moved for {:g} s", *text, std::chrono::duration<double>(limit_).count());
    }
  } catch (const DeviceError& error) {
    return error.what();
  }
  return std::nullopt;
}

void CommunicatorTransport::fail(const std::string& reason) {
  failure_ = reason;
  communicator_->abort();
}

void CommunicatorTransport::require_whole() const {
  if (failure_) throw DeviceError(*failure_);
}

void CommunicatorTransport::progress() {
  const std::lock_guard lock(mutex_);
  require_whole();
}

Event CommunicatorTransport::queue(const std::string& text, const std::function<void(Communicator&)>& operation) {
  const std::lock_guard lock(mutex_);
  require_whole();
  Event ready = queues_.record(Queue::compute);
  queues_.wait(Queue::out, ready);
  try {
    operation(*communicator_);
  } catch (const DeviceError& error) {
    fail(fmt::format("{}: {}", text, error.what()));
    throw DeviceError(*failure_);
  }
  Event done = queues_.record(Queue::out);
  watch_.add(text, std::move(ready), done);
  return done;
}

std::string CommunicatorTransport::exchange_text(std::span<const Send> sends, std::span<const Receive> receives) const {
  std::vector<std::string> parts;
  for (const Receive& receive : receives) parts.push_back(receive_text(rank_, receive.bytes, receive.peer));
  for (const Send& send : sends) parts.push_back(send_text(rank_, send.bytes, send.peer));
  constexpr std::size_t most = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, parts.size()); ++i) text += (i > 0 ? "; " : "") + parts[i];
  if (parts.size() > most) text += fmt::format("; and {} messages more", parts.size() - most);
  return text;
}

Ticket CommunicatorTransport::start(std::span<const Send> sends, std::span<const Receive> receives) {
  for (const Send& send : sends) require_message("to", send.peer, size_, send.data, send.bytes);
  for (const Receive& receive : receives) require_message("from", receive.peer, size_, receive.data, receive.bytes);
  const Ticket ticket = next_ticket_++;
  exchanges_[ticket] = queue(exchange_text(sends, receives),
                             [&](Communicator& communicator) { communicator.exchange(sends, receives); });
  return ticket;
}

void CommunicatorTransport::wait(Ticket ticket) {
  const auto exchange = exchanges_.find(ticket);
  if (exchange == exchanges_.end()) {
    throw UnsupportedInput(fmt::format("rank {} waits for exchange {}, which is not under way", rank_, ticket));
  }
  const std::lock_guard lock(mutex_);
  require_whole();
  queues_.wait(Queue::compute, exchange->second);
  exchanges_.erase(exchange);
}

void CommunicatorTransport::collective(const char* name, const std::function<void(Communicator&)>& operation) {
  const Event done = queue(fmt::format("rank {} waits for the others in {}", rank_, name), operation);
  const std::lock_guard lock(mutex_);
  queues_.wait(Queue::compute, done);
}

void CommunicatorTransport::all_reduce(float* data, std::size_t count) {
  if (count == 0) return;
  collective("all_reduce", [&](Communicator& communicator) { communicator.all_reduce(data, count); });
}

void CommunicatorTransport::all_gather(const void* mine, void* all, std::size_t bytes_per_rank) {
  if (bytes_per_rank == 0) return;
  collective("all_gather", [&](Communicator& communicator) { communicator.all_gather(mine, all, bytes_per_rank); });
}

void CommunicatorTransport::reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) {
  if (count_per_rank == 0) return;
  collective("reduce_scatter",
             [&](Communicator& communicator) { communicator.reduce_scatter(all, mine, count_per_rank); });
}

void CommunicatorTransport::all_to_all(const void* from, void* to, std::size_t bytes_per_rank) {
  if (bytes_per_rank == 0) return;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < size_; ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * bytes_per_rank;
    sends.push_back({peer, static_cast<const std::byte*>(from) + offset, bytes_per_rank});
    receives.push_back({peer, static_cast<std::byte*>(to) + offset, bytes_per_rank});
  }
  collective("all_to_all", [&](Communicator& communicator) { communicator.exchange(sends, receives); });
}

void CommunicatorTransport::barrier() {
  auto* const word = static_cast<float*>(barrier_word_.get());
  collective("barrier", [&](Communicator& communicator) { communicator.all_reduce(word, 1); });
}

}  // namespace hdpsim::kernels::cuda
