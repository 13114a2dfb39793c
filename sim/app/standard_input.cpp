#include "sim/app/standard_input.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>

#include "sim/base/check.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

using Block = std::array<char, 1 << 16>;

// The next bytes of standard input; none at its end.
std::string_view next_bytes(Block& block) {
  ssize_t count = 0;
  do {
    count = ::read(STDIN_FILENO, block.data(), block.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) throw MachineError(std::string("cannot read standard input: ") + std::strerror(errno));
  return {block.data(), static_cast<std::size_t>(count)};
}

std::string_view name_of(std::string_view begin) {
  if (begin.starts_with("\x93NUMPY")) return "stdin.npy";
  if (begin.starts_with("\x1f\x8b")) return "stdin.csv.gz";
  if (begin.starts_with("\x28\xb5\x2f\xfd")) return "stdin.csv.zst";
  if (begin.starts_with("BZh")) return "stdin.csv.bz2";
  if (begin.starts_with("\xfd"
                        "7zXZ"))
    return "stdin.csv.xz";
  return begin.starts_with('{') ? "stdin.jsonl" : "stdin.csv";
}

}  // namespace

StandardInput::StandardInput() : folder_("input") {
  const auto block = std::make_unique<Block>();
  std::string_view bytes = next_bytes(*block);
  path_ = folder_.path() / name_of(bytes);
  std::ofstream file(path_, std::ios::binary);
  for (; !bytes.empty(); bytes = next_bytes(*block)) {
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) break;
  }
  file.close();
  if (!file) throw MachineError("cannot write " + path_.string());
}

}  // namespace hdpsim::app
