#include "kernels/transport/in_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "kernels/transport/impl/describe.h"
#include "kernels/transport/message_transport.h"

namespace hdpsim::kernels {
namespace {

using Clock = std::chrono::steady_clock;

// The bytes that one progress() copies: about 16 us, much shorter than a tile of attention.
constexpr std::size_t piece_bytes = std::size_t{256} << 10;

// How often a waiting rank checks again, yielding to others, before it sleeps: waking a sleeping thread takes longer
// than most messages.
constexpr int turns_before_sleep = 2000;

struct Message : SharedMessage {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::size_t claimed = 0;  // pieces up to here are copied or being copied
  std::size_t copied = 0;

  [[nodiscard]] bool complete() const { return matched() && !sizes_differ() && copied == *sent; }
  [[nodiscard]] int peer_of(int rank) const { return rank == from ? to : from; }
};
using MessagePointer = std::shared_ptr<Message>;

// The state that all ranks share. Everything except the copying of pieces happens under one lock.
class World {
 public:
  World(int ranks, std::chrono::milliseconds limit)
      : limit_(limit), ranks_(static_cast<std::size_t>(ranks)), matching_(ranks_.size()) {}

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }

  Ticket start(int rank, std::span<const Send> sends, std::span<const Receive> receives);
  void wait(int rank, Ticket ticket);
  void progress(int rank);
  void leave(int rank);

 private:
  struct Rank {
    bool here = true;
    std::string last_words;  // what a rank that has left was waiting for
    Ticket next_ticket = 1;
    std::optional<Ticket> waiting;
    std::map<Ticket, std::vector<MessagePointer>> exchanges;
    Clock::time_point moved;
    std::condition_variable changed;
  };
  using Lock = std::unique_lock<std::mutex>;

  [[nodiscard]] Lock acquire();
  static void acquire(Lock& lock);

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  void moved(const Message& message);
  bool move_piece(Lock& lock, int rank);
  [[nodiscard]] const Message* first_incomplete(int rank) const;
  [[nodiscard]] bool hopeless(const Message& message) const;
  void leave(Lock& lock, int rank);
  [[noreturn]] void fail(Lock& lock, int rank, const std::string& reason);
  [[nodiscard]] std::string state_text() const;

  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::vector<Rank> ranks_;
  Matching<Message> matching_;
};

// The lock is held for less time than a thread takes to wake up.
void World::acquire(Lock& lock) {
  for (int turn = 0; turn < turns_before_sleep; ++turn) {
    if (lock.try_lock()) return;
    std::this_thread::yield();
  }
  lock.lock();
}

World::Lock World::acquire() {
  Lock lock(mutex_, std::defer_lock);
  acquire(lock);
  return lock;
}

// Notifies both ends of a message.
void World::moved(const Message& message) {
  if (!message.matched()) return;
  for (const int end : {message.from, message.to}) {
    at(end).moved = Clock::now();
    at(end).changed.notify_all();
  }
}

Ticket World::start(int rank, std::span<const Send> sends, std::span<const Receive> receives) {
  for (const Send& send : sends) require_message("to", send.peer, size(), send.data, send.bytes);
  for (const Receive& receive : receives) require_message("from", receive.peer, size(), receive.data, receive.bytes);
  const Lock lock = acquire();
  Rank& self = at(rank);
  if (!self.here) throw DeviceError(fmt::format("rank {} has left after an error", rank));
  const Ticket ticket = self.next_ticket++;
  auto& messages = self.exchanges[ticket];
  for (const Send& send : sends) {
    MessagePointer message = matching_.match(rank, send.peer, true);
    message->sent = send.bytes;
    message->source = static_cast<const std::byte*>(send.data);
    moved(*messages.emplace_back(std::move(message)));
  }
  for (const Receive& receive : receives) {
    MessagePointer message = matching_.match(receive.peer, rank, false);
    message->received = receive.bytes;
    message->target = static_cast<std::byte*>(receive.data);
    moved(*messages.emplace_back(std::move(message)));
  }
  return ticket;
}

// Copies the next piece of any message of the rank; false if there is none. Only a rank's own thread changes its list
// of messages, so it is safe to release the lock for the copy.
bool World::move_piece(Lock& lock, int rank) {
  for (const auto& [ticket, messages] : at(rank).exchanges) {
    for (const MessagePointer& message : messages) {
      if (hopeless(*message) || !message->matched() || message->claimed == *message->sent) continue;
      const std::size_t begin = message->claimed;
      const std::size_t bytes = std::min(piece_bytes, *message->sent - begin);
      message->claimed += bytes;
      lock.unlock();
      std::memcpy(message->target + begin, message->source + begin, bytes);
      acquire(lock);
      message->copied += bytes;
      moved(*message);
      return true;
    }
  }
  return false;
}

bool World::hopeless(const Message& message) const {
  return !message.complete() && (message.sizes_differ() || !at(message.from).here || !at(message.to).here);
}

void World::progress(int rank) {
  Lock lock = acquire();
  move_piece(lock, rank);
}

const Message* World::first_incomplete(int rank) const {
  const Rank& self = at(rank);
  const Message* incomplete = nullptr;
  for (const MessagePointer& message : self.exchanges.at(*self.waiting)) {
    if (hopeless(*message)) return message.get();
    if (incomplete == nullptr && !message->complete()) incomplete = message.get();
  }
  return incomplete;
}

void World::wait(int rank, Ticket ticket) {
  Lock lock = acquire();
  Rank& self = at(rank);
  if (!self.here) throw DeviceError(fmt::format("rank {} has left after an error", rank));
  if (!self.exchanges.contains(ticket)) {
    throw UnsupportedInput(fmt::format("rank {} waits for exchange {}, which is not under way", rank, ticket));
  }
  self.waiting = ticket;
  self.moved = Clock::now();
  int idle_turns = 0;
  while (const Message* message = first_incomplete(rank)) {
    if (hopeless(*message)) fail(lock, rank, fault_text(rank, *message));
    if (move_piece(lock, rank)) {
      idle_turns = 0;
      continue;
    }
    if (++idle_turns <= turns_before_sleep) {
      lock.unlock();
      std::this_thread::yield();
      acquire(lock);
      continue;
    }
    if (Clock::now() >= self.moved + limit_) {
      fail(lock, rank,
           fmt::format("{}, and nothing has moved for {:g} s", wait_text(rank, *message),
                       std::chrono::duration<double>(limit_).count()));
    }
    self.changed.wait_until(lock, self.moved + limit_);
  }
  self.waiting.reset();
  self.exchanges.erase(ticket);
}

void World::leave(int rank) {
  Lock lock(mutex_);
  leave(lock, rank);
}

void World::leave(Lock& lock, int rank) {
  Rank& self = at(rank);
  if (!self.here) return;
  self.here = false;
  for (Rank& other : ranks_) other.changed.notify_all();
  // Peers may be copying from or to memory of this rank, which it is about to free.
  self.changed.wait(lock, [&] {
    for (const auto& [ticket, messages] : self.exchanges) {
      for (const MessagePointer& message : messages) {
        if (message->claimed != message->copied) return false;
      }
    }
    return true;
  });
  self.exchanges.clear();
}

void World::fail(Lock& lock, int rank, const std::string& reason) {
  const std::string text = fmt::format("{}. State: {}", reason, state_text());
  at(rank).last_words = fmt::format(" ({})", reason);
  at(rank).waiting.reset();
  leave(lock, rank);
  throw DeviceError(text);
}

std::string World::state_text() const {
  std::string text;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank > 0) text += "; ";
    const Rank& state = at(rank);
    if (!state.here) {
      text += fmt::format("rank {} has left{}", rank, state.last_words);
    } else if (const Message* message = state.waiting ? first_incomplete(rank) : nullptr) {
      text += wait_text(rank, *message);
    } else {
      text += fmt::format("rank {} waits for nobody", rank);
    }
  }
  return text;
}

class InProcessTransport final : public MessageTransport {
 public:
  InProcessTransport(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ~InProcessTransport() override { world_->leave(rank_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_->size(); }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override {
    return world_->start(rank_, sends, receives);
  }
  void wait(Ticket ticket) override { world_->wait(rank_, ticket); }
  void progress() override { world_->progress(rank_); }

 private:
  std::shared_ptr<World> world_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_in_process_transports(int ranks, std::chrono::milliseconds limit) {
  if (ranks < 1) throw UnsupportedInput(fmt::format("transport: {} ranks", ranks));
  const auto world = std::make_shared<World>(ranks, limit);
  std::vector<std::unique_ptr<Transport>> transports;
  transports.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) transports.push_back(std::make_unique<InProcessTransport>(world, rank));
  return transports;
}

void run_ranks(std::vector<std::unique_ptr<Transport>>& transports, const std::function<void(Transport&)>& work) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](std::unique_ptr<Transport>& transport) {
    try {
      work(*transport);
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      transport.reset();  // Ranks that wait for this one learn that it has left.
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(transports.size());
    for (auto& transport : transports) threads.emplace_back(run, std::ref(transport));
  }
  if (!first) return;
  transports.clear();
  std::rethrow_exception(first);
}

void run_ranks(int ranks, const std::function<void(Transport&)>& work, std::chrono::milliseconds limit) {
  auto transports = make_in_process_transports(ranks, limit);
  run_ranks(transports, [&](Transport& transport) {
    work(transport);
    auto& own = transports[static_cast<std::size_t>(transport.rank())];
    own.reset();  // Ranks that still wait for this one learn that it has left.
  });
}

}  // namespace hdpsim::kernels
