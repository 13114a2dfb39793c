#include "kernels/cuda/impl/local_world.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "kernels/spec/error.h"

namespace hdpsim::kernels::cuda {

LocalWorld::LocalWorld(std::vector<Queues*> queues, std::chrono::milliseconds limit)
    : limit_(limit), ranks_(queues.size()), matching_(queues.size()) {
  for (std::size_t rank = 0; rank < queues.size(); ++rank) ranks_[rank].queues = queues[rank];
}

// Queues the copy if both ends have started.
void LocalWorld::started(Message& message) {
  if (!message.sent || !message.received) return;
  if (!message.sizes_differ()) {
    Queues& queues = *at(message.to).queues;
    queues.wait(Queue::in, message.sender_ready);
    queues.wait(Queue::in, message.receiver_ready);
    if (*message.sent > 0) queues.copy(Queue::in, message.target, message.source, *message.sent);
    message.arrived = queues.record(Queue::in);
  }
  at(message.from).changed.notify_all();
  at(message.to).changed.notify_all();
}

void LocalWorld::require_here(int rank) const {
  if (!at(rank).here) throw DeviceError(fmt::format("rank {} has left after an error", rank));
}

Ticket LocalWorld::start(int rank, std::span<const Send> sends, std::span<const Receive> receives) {
  for (const Send& send : sends) require_message("to", send.peer, size(), send.data, send.bytes);
  for (const Receive& receive : receives) require_message("from", receive.peer, size(), receive.data, receive.bytes);
  const Lock lock(mutex_);
  require_here(rank);
  Rank& self = at(rank);
  const Event ready = self.queues->record(Queue::compute);
  const Ticket ticket = self.next_ticket++;
  auto& messages = self.exchanges[ticket];
  for (const Send& send : sends) {
    const MessagePointer& message = messages.emplace_back(matching_.match(rank, send.peer, true));
    message->sent = send.bytes;
    message->source = send.data;
    message->sender_ready = ready;
    started(*message);
  }
  for (const Receive& receive : receives) {
    const MessagePointer& message = messages.emplace_back(matching_.match(receive.peer, rank, false));
    message->received = receive.bytes;
    message->target = receive.data;
    message->receiver_ready = ready;
    started(*message);
  }
  return ticket;
}

bool LocalWorld::hopeless(const Message& message) const {
  return !message.arrived && (message.sizes_differ() || !at(message.from).here || !at(message.to).here);
}

const LocalWorld::Message* LocalWorld::first_unmatched(int rank) const {
  const Rank& self = at(rank);
  const Message* unmatched = nullptr;
  for (const MessagePointer& message : self.exchanges.at(*self.waiting)) {
    if (hopeless(*message)) return message.get();
    if (unmatched == nullptr && !message->arrived) unmatched = message.get();
  }
  return unmatched;
}

void LocalWorld::wait(int rank, Ticket ticket) {
  Lock lock(mutex_);
  require_here(rank);
  Rank& self = at(rank);
  if (!self.exchanges.contains(ticket)) {
    throw UnsupportedInput(fmt::format("rank {} waits for exchange {}, which is not under way", rank, ticket));
  }
  self.waiting = ticket;
  const auto deadline = std::chrono::steady_clock::now() + limit_;
  while (const Message* message = first_unmatched(rank)) {
    if (hopeless(*message)) fail(rank, fault_text(rank, *message));
    if (std::chrono::steady_clock::now() >= deadline) {
      fail(rank, fmt::format("{}, which has not come for {:g} s", wait_text(rank, *message),
                             std::chrono::duration<double>(limit_).count()));
    }
    self.changed.wait_until(lock, deadline);
  }
  for (const MessagePointer& message : self.exchanges.at(ticket)) self.queues->wait(Queue::compute, message->arrived);
  self.exchanges.erase(ticket);
  self.waiting.reset();
}

std::vector<Event> LocalWorld::queued_copies(const Rank& rank) {
  std::vector<Event> copies;
  for (const auto& [ticket, messages] : rank.exchanges) {
    for (const MessagePointer& message : messages) {
      if (message->arrived) copies.push_back(message->arrived);
    }
  }
  return copies;
}

std::vector<Event> LocalWorld::leave(int rank) {
  const Lock lock(mutex_);
  std::vector<Event> copies = queued_copies(at(rank));
  at(rank).exchanges.clear();
  remove(rank);
  return copies;
}

// Messages that only this rank has started end; those that only others have started fail.
void LocalWorld::remove(int rank) {
  at(rank).here = false;
  matching_.forget(rank);
  for (Rank& other : ranks_) other.changed.notify_all();
}

void LocalWorld::fail(int rank, const std::string& reason) {
  const std::string text = fmt::format("{}. State: {}", reason, state_text());
  Rank& self = at(rank);
  // The error may free the buffers of messages whose copies are queued: later work is ordered after these, as after a
  // successful wait.
  for (const Event& copy : queued_copies(self)) self.queues->wait(Queue::compute, copy);
  self.last_words = fmt::format(" ({})", reason);
  self.waiting.reset();
  remove(rank);
  throw DeviceError(text);
}

std::string LocalWorld::state_text() const {
  std::string text;
  for (int rank = 0; rank < size(); ++rank) {
    const Rank& state = at(rank);
    const Message* const message = state.here && state.waiting ? first_unmatched(rank) : nullptr;
    if (rank > 0) text += "; ";
    if (message != nullptr) {
      text += wait_text(rank, *message);
    } else {
      text += state.here ? fmt::format("rank {} waits for nobody", rank)
                         : fmt::format("rank {} has left{}", rank, state.last_words);
    }
  }
  return text;
}

LocalTransport::LocalTransport(std::shared_ptr<LocalWorld> world, int rank, Backend& backend, Queues& queues)
    : world_(std::move(world)), rank_(rank), backend_(backend), queues_(queues), sums_(backend) {}

LocalTransport::~LocalTransport() {
  const std::vector<Event> copies = world_->leave(rank_);
  try {
    for (const Event& copy : copies) queues_.wait(Queue::compute, copy);
    backend_.synchronize();
  } catch (const std::exception&) {  // From a device that refuses, which another call has reported.
  }
}

}  // namespace hdpsim::kernels::cuda
