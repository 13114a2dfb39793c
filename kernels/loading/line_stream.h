#pragma once

#include <cstdint>
#include <string_view>

namespace hdpsim::kernels {

/// Where the first line begins behind `count` bytes from `place` of a text, which goes on with its beginning where it
/// ends. Neither allocates nor throws. Requires a text and a place in it.
[[nodiscard]] std::uint64_t next_line(std::string_view text, std::uint64_t place, std::uint64_t count);

/// A 64-bit FNV-1a hash of bytes that arrive piece by piece.
class BytesHash {
 public:
  void add(std::string_view bytes);
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace hdpsim::kernels
