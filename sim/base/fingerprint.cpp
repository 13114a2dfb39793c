#include "sim/base/fingerprint.h"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "sim/base/check.h"

namespace hdpsim {

std::uint64_t fingerprint(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::uint64_t fingerprint_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(1 << 16);
  std::uint64_t hash = fingerprint("");
  while (file.read(block.data(), std::ssize(block)), file.gcount() > 0) {
    hash = fingerprint({block.data(), static_cast<std::size_t>(file.gcount())}, hash);
  }
  if (!file.eof()) throw MachineError(fmt::format("cannot read {}", path.string()));
  return hash;
}

}  // namespace hdpsim
