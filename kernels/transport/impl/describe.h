#pragma once

#include <cstddef>
#include <string>

namespace hdpsim::kernels {

/// "65,536 B".
[[nodiscard]] std::string bytes_text(std::size_t bytes);
/// "rank 2 waits for 65,536 B from rank 1".
[[nodiscard]] std::string receive_text(int rank, std::size_t bytes, int peer);
/// "rank 1 waits for rank 2 to take 65,536 B".
[[nodiscard]] std::string send_text(int rank, std::size_t bytes, int peer);

/// UnsupportedInput if there is no such rank or a message has bytes but no memory.
void require_message(const char* what, int peer, int ranks, const void* data, std::size_t bytes);

}  // namespace hdpsim::kernels
