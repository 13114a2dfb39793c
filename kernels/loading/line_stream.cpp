#include "kernels/loading/line_stream.h"

namespace hdpsim::kernels {

std::uint64_t next_line(std::string_view text, std::uint64_t place, std::uint64_t count) {
  if (count == 0) return place;
  const std::uint64_t last = (place + count - 1) % text.size();
  const std::size_t end = text.find('\n', last);
  return end == std::string_view::npos || end + 1 == text.size() ? 0 : end + 1;
}

void BytesHash::add(std::string_view bytes) {
  for (const char byte : bytes) value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
}

}  // namespace hdpsim::kernels
