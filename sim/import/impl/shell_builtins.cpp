#include "sim/import/impl/shell_builtins.h"

#include <iterator>
#include <utility>

#include "sim/import/impl/shell_arithmetic.h"

namespace hdpsim {

bool declares(const std::string& command) {
  return command == "export" || command == "declare" || command == "local" || command == "readonly" ||
         command == "typeset";
}

std::optional<std::vector<std::string>> names_set_by_builtin(const ShellCommand& command) {
  const std::string& name = command.words.front().text;
  std::vector<std::string> names;
  if (name == "eval") return names;
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
