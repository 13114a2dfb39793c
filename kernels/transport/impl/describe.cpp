#include "kernels/transport/impl/describe.h"

#include <fmt/format.h>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {

std::string bytes_text(std::size_t bytes) {
  std::string text = std::to_string(bytes);
  for (std::size_t left = text.size(); left > 3; left -= 3) text.insert(left - 3, 1, ',');
  return text + " B";
}

std::string receive_text(int rank, std::size_t bytes, int peer) {
  return fmt::format("rank {} waits for {} from rank {}", rank, bytes_text(bytes), peer);
}

std::string send_text(int rank, std::size_t bytes, int peer) {
  return fmt::format("rank {} waits for rank {} to take {}", rank, peer, bytes_text(bytes));
}

std::string wait_text(int rank, const SharedMessage& message) {
  if (message.to == rank) return receive_text(rank, message.received.value_or(0), message.from);
  return send_text(rank, message.sent.value_or(0), message.to);
}

std::string fault_text(int rank, const SharedMessage& message) {
  if (message.sizes_differ()) {
    return fmt::format("rank {} sends {} where rank {} expects {}", message.from, bytes_text(*message.sent), message.to,
                       bytes_text(*message.received));
  }
  return fmt::format("{}, which has left", wait_text(rank, message));
}

void require_message(const char* what, int peer, int ranks, const void* data, std::size_t bytes) {
  if (peer < 0 || peer >= ranks) {
    throw UnsupportedInput(fmt::format("transport: a message {} rank {}, but there are {} ranks", what, peer, ranks));
  }
  if (data == nullptr && bytes > 0) {
    throw UnsupportedInput(fmt::format("transport: {} {} rank {} without memory", bytes_text(bytes), what, peer));
  }
}

}  // namespace hdpsim::kernels
