#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hdpsim::kernels {

/// "65,536 B".
[[nodiscard]] std::string bytes_text(std::size_t bytes);
/// "rank 2 waits for 65,536 B from rank 1".
[[nodiscard]] std::string receive_text(int rank, std::size_t bytes, int peer);
/// "rank 1 waits for rank 2 to take 65,536 B".
[[nodiscard]] std::string send_text(int rank, std::size_t bytes, int peer);

/// A message between ranks that share memory, which one of them may have started before the other.
struct SharedMessage {
  int from = 0;
  int to = 0;
  std::optional<std::size_t> sent;      ///< Bytes, once the sender has started it.
  std::optional<std::size_t> received;  ///< Bytes, once the receiver has started it.

  [[nodiscard]] bool matched() const { return sent && received; }
  [[nodiscard]] bool sizes_differ() const { return matched() && *sent != *received; }
};
/// What a rank that has started its side waits for: receive_text or send_text.
[[nodiscard]] std::string wait_text(int rank, const SharedMessage& message);
/// Why a message will never arrive: its sizes differ, or the rank that this one waits for has left.
[[nodiscard]] std::string fault_text(int rank, const SharedMessage& message);

/// UnsupportedInput if there is no such rank or a message has bytes but no memory.
void require_message(const char* what, int peer, int ranks, const void* data, std::size_t bytes);

/// Matches the two ends of messages: for each ordered pair of ranks in the order in which they were started. A Message
/// is a SharedMessage.
template <class Message>
class Matching {
 public:
  explicit Matching(std::size_t ranks) : ranks_(ranks), waiting_(ranks * ranks) {}

  /// The message that the other end has started first, or a new one.
  [[nodiscard]] std::shared_ptr<Message> match(int from, int to, bool sending) {
    auto& waiting = waiting_[static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to)];
    if (!waiting.empty() && waiting.front()->sent.has_value() != sending) {
      std::shared_ptr<Message> message = std::move(waiting.front());
      waiting.pop_front();
      return message;
    }
    auto message = std::make_shared<Message>();
    message->from = from;
    message->to = to;
    waiting.push_back(message);
    return message;
  }

  /// Forgets the messages that a rank or its peers have started and that are not matched.
  void forget(int rank) {
    for (auto& waiting : waiting_) {
      std::erase_if(waiting, [rank](const auto& message) { return message->from == rank || message->to == rank; });
    }
  }

 private:
  std::size_t ranks_;
  // The messages that one of the two has started: all sends or all receives.
  std::vector<std::deque<std::shared_ptr<Message>>> waiting_;
};

}  // namespace hdpsim::kernels
