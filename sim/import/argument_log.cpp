#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/document/input_file.h"
#include "sim/document/limits.h"
#include "sim/import/argument.h"

namespace hdpsim {
namespace {

constexpr std::string_view begin_of_block = "--- arguments ---";
constexpr std::string_view end_of_block = "--- end of arguments ---";
constexpr std::string_view letters_of_names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// `text` without blanks at both ends, and how many there were at its beginning.
std::string_view trimmed(std::string_view text, std::size_t& at) {
  const std::size_t first = std::min(text.find_first_not_of(" \t\r"), text.size());
  at += first;
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

/// A line of the block: `  name ..... value`, dots up to column 50. Launchers put the rank before each line.
struct LogLine {
  std::string_view name;
  std::string_view value;
  std::size_t name_at = 0;
  std::size_t value_at = 0;
};

std::optional<LogLine> log_line(std::string_view line) {
  const std::size_t indent = line.find("  ");
  if (indent == std::string_view::npos) return std::nullopt;
  LogLine parts;
  parts.name_at = indent + 2;
  const std::size_t name_end = std::min(line.find_first_not_of(letters_of_names, parts.name_at), line.size());
  parts.name = line.substr(parts.name_at, name_end - parts.name_at);
  const std::size_t dots = line.find_first_not_of(' ', name_end);
  if (parts.name.empty() || dots == std::string_view::npos || dots == name_end) return std::nullopt;
  // A name of 47 letters and more has no dots, but two blanks.
  const std::size_t dots_end = line.find_first_not_of('.', dots);
  if (dots_end == std::string_view::npos || (dots_end == dots && dots < name_end + 2)) return std::nullopt;
  parts.value_at = dots_end;
  parts.value = trimmed(line.substr(dots_end), parts.value_at);
  return parts;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> torch_types = {
    {{"torch.float32", "fp32"}, {"torch.bfloat16", "bf16"}, {"torch.float16", "fp16"}}};

// What Python prints of a value, as an argument states it: `'p2p'` is p2p, `torch.bfloat16` is bf16,
// `<AttnBackend.flash: 1>` is flash.
std::string stated(std::string_view text) {
  for (const auto& [type, word] : torch_types) {
    if (text == type) return std::string(word);
  }
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  } else if (text.starts_with('<') && text.find('.') != std::string_view::npos) {
    text = text.substr(text.find('.') + 1);
    text = text.substr(0, text.find_first_of(":>"));
  }
  return std::string(text);
}

std::optional<Argument> logged_argument(const LogLine& line, const std::string& file, int number) {
  const auto position = [&](std::size_t at) { return Position{file, number, static_cast<int>(at) + 1}; };
  if (line.value.empty() || line.value == "None" || line.value == "[]") return std::nullopt;
  Argument argument;
  argument.written = std::string(line.name);
  argument.position = position(line.name_at);
  argument.is_switch = line.value == "True" || line.value == "False";
  argument.is_on = line.value != "False";
  if (argument.is_switch) return argument;
  const auto add = [&](std::string_view text, std::size_t at) {
    text = trimmed(text, at);
    argument.values.push_back({stated(text), position(at), {}});
  };
  if (line.value.front() != '[' || line.value.back() != ']') {
    add(line.value, line.value_at);
    return argument;
  }
  const std::string_view items = line.value.substr(1, line.value.size() - 2);
  for (std::size_t at = 0; at <= items.size();) {
    const std::size_t end = std::min(items.find(',', at), items.size());
    add(items.substr(at, end - at), line.value_at + 1 + at);
    at = end + 1;
  }
  return argument;
}

// What Megatron-LM sets by itself: with SwiGLU there is no GELU to fuse.
void leave_out_derived(std::vector<Argument>& arguments) {
  const auto is_on = [&](std::string_view name) {
    return std::any_of(arguments.begin(), arguments.end(), [&](const Argument& argument) {
      return argument.written == name && argument.is_switch && argument.is_on;
    });
  };
  if (!is_on("swiglu")) return;
  std::erase_if(arguments, [](const Argument& argument) { return argument.written == "bias_gelu_fusion"; });
}

}  // namespace

bool has_argument_block(std::string_view text) {
  return text.find(begin_of_block) != std::string_view::npos;
}

std::optional<std::string> read_log_head(const std::string& file, Diagnostics& diagnostics) {
  LineReader lines(file);
  std::string text;
  while (lines.next()) {
    text.append(lines.text()).push_back('\n');
    if (lines.text().find(end_of_block) != std::string_view::npos) return text;
    if (text.size() <= largest_yaml_bytes) continue;
    report_size(file, largest_yaml_bytes, diagnostics);
    return std::nullopt;
  }
  return text;
}

ArgumentList arguments_of_log(const std::string& file, std::string_view text) {
  ArgumentList list;
  list.states_defaults = true;
  bool inside = false;
  int number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    if (line.find(end_of_block) != std::string_view::npos) break;
    if (inside) {
      const auto parts = log_line(line);
      if (auto argument = parts ? logged_argument(*parts, file, number) : std::nullopt) {
        list.arguments.push_back(std::move(*argument));
      }
    }
    inside = inside || line.find(begin_of_block) != std::string_view::npos;
  }
  leave_out_derived(list.arguments);
  return list;
}

}  // namespace hdpsim
