#include "sim/cluster/topology_matrix.h"

#include <fstream>
#include <sstream>
#include <string>

namespace hdpsim {
namespace {

constexpr int most_lines = 20;  // notes of a job system may precede it
constexpr std::size_t most_bytes = 64'000;

}  // namespace

std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\x1b') {
      plain += text[at];
      continue;
    }
    while (at < text.size() && text[at] != 'm') ++at;
  }
  return plain;
}

// Its header names the devices, and each row begins with one; `X` is the entry of a device with itself.
bool holds_topology_matrix(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(most_bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  std::istringstream lines(without_escapes(text));
  bool has_header = false;
  int count = 0;
  for (std::string line; count < most_lines && std::getline(lines, line); ++count) {
    std::istringstream words(line);
    std::string first;
    std::string second;
    words >> first >> second;
    if (has_header && first == "GPU0" && second == "X") return true;
    has_header = has_header || (first == "GPU0" && second != "X");
  }
  return false;
}

void refuse_topology_matrix(const std::filesystem::path& file, Diagnostics& diagnostics) {
  diagnostics.error(
      {file.string(), 0, 0},
      "this is the output of nvidia-smi topo -m, which names the ways between devices and not their rates",
      "name it in a cluster with its device: node: {nccl_topology: FILE}; NCCL's own file (NCCL_TOPO_DUMP_FILE) has "
      "the rates, too");
}

}  // namespace hdpsim
