#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace hdpsim::kernels {

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
