#include "sim/base/seal.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace hdpsim {
namespace {

// The text that replaces the closing brace of an object.
std::string closing(std::uint64_t checksum) {
  return fmt::format(R"(,"checksum":"{:016x}"}})", checksum);
}

}  // namespace

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

std::string Seal::closed(std::string_view object) const {
  HDPSIM_CHECK(object.size() > 2 && object.back() == '}', "only objects with members are sealed");
  return fmt::format("{}{}\n", object.substr(0, object.size() - 1), closing(fingerprint(object)));
}

std::optional<std::string> Seal::opened(std::string_view line) const {
  const std::size_t sealed = closing(0).size();
  if (line.size() <= sealed) return std::nullopt;
  std::string object = fmt::format("{}}}", line.substr(0, line.size() - sealed));
  if (!line.ends_with(closing(fingerprint(object)))) return std::nullopt;
  return object;
}

std::string damage_text(const Diagnostic& part) {
  return fmt::format("{}:{}:{}: {}", part.position.file, part.position.line, part.position.column, part.message);
}

std::string text_of_kept(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::vector<std::string_view> complete_lines(std::string_view text) {
  constexpr std::size_t most = 1'000'000;  // no journal has as many; a file of bare line ends would fill the memory
  std::vector<std::string_view> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos && lines.size() < most; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool take_sealed(const std::string& file, const std::vector<std::string_view>& lines, const Seal& seal,
                 const std::function<std::string(const std::string&, std::string_view)>& take, const TellDamage& tell) {
  bool all = true;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::optional<std::string> object = seal.opened(lines[i]);
    const std::string problem = object ? take(*object, lines[i]) : "this line is damaged";
    if (problem.empty()) continue;
    tell(Diagnostic{.position = Position{file, static_cast<int>(i) + 1, 1}, .message = problem, .help = {}});
    all = false;
  }
  return all;
}

}  // namespace hdpsim
