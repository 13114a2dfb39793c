#include "sim/import/impl/shell_builtins.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "sim/import/impl/shell_arithmetic.h"

namespace hdpsim {

bool declares(const std::string& command) {
  return command == "export" || command == "declare" || command == "local" || command == "readonly" ||
         command == "typeset";
}

bool asks_machine(std::string_view command) {
  constexpr std::array<std::string_view, 12> all = {"command", "which", "type", "hash", "grep",    "egrep",
                                                    "pgrep",   "diff",  "cmp",  "nc",   "getopts", "nvidia-smi"};
  return std::find(all.begin(), all.end(), command) != all.end();
}

bool says_words(std::string_view command) {
  constexpr std::array<std::string_view, 5> all = {"echo", "printf", "cat", "logger", "tee"};
  return std::find(all.begin(), all.end(), command) != all.end();
}

std::optional<std::vector<std::string>> names_set_by_builtin(const ShellCommand& command) {
  const std::string& name = command.words.front().text;
  std::vector<std::string> names;
  if (name == "getopts" && command.words.size() > 2) return std::vector<std::string>{command.words[2].text, "OPTARG"};
  if (name == "printf") {
    if (command.words.size() < 3 || command.words[1].text != "-v") return std::nullopt;
    return std::vector{command.words[2].text};
  }
  const bool takes_names = name == "read" || name == "mapfile" || name == "readarray";
  if (!takes_names && name != "let") return std::nullopt;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    if (takes_names) {
      names.push_back(word);
      continue;
    }
    std::vector<std::string> set = names_set_by_arithmetic(word);
    std::move(set.begin(), set.end(), std::back_inserter(names));
  }
  return names;
}

}  // namespace hdpsim
