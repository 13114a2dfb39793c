#pragma once

#include <cstddef>
#include <optional>
#include <string>

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

}  // namespace hdpsim::kernels
