#include <fmt/format.h>

#include <optional>
#include <sstream>

#include "tests/spec/command.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

// The commands of all ```sh blocks, continued lines joined, comments left out.
std::vector<std::string> commands_of(const std::string& text) {
  std::vector<std::string> commands;
  std::istringstream lines(text);
  std::string continued;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = !inside && line == "```sh";
      continue;
    }
    if (!inside) continue;
    if (line.ends_with("\\")) {
      continued += line.substr(0, line.size() - 1);
      continue;
    }
    line = continued + line.substr(0, line.find(" #"));
    continued.clear();
    if (!line.empty() && line[0] != '#') commands.push_back(line);
  }
  return commands;
}

// What follows the name of the program, or nothing if another one is called.
std::optional<std::string> arguments_of_hdpsim(const std::string& command) {
  for (const std::string name : {"hdpsim ", "build/release/hdpsim ", "./build/release/hdpsim "}) {
    if (command.starts_with(name)) return command.substr(name.size());
  }
  return std::nullopt;
}

TEST_CASE("commands of sh blocks are found", "[readme]") {
  CHECK(commands_of("x\n```sh\n# no\na b  # c\nd \\\n  e\n```\nf\n```yaml\ng\n```\n") ==
        std::vector<std::string>{"a b ", "d   e"});
}

TEST_CASE("every command of README works", "[readme]") {
  const fs::path source = HDPSIM_SOURCE_DIR;
  REQUIRE(fs::exists(source / "README.md"));
  const Workplace here;
  int hdpsim_commands = 0;
  for (const std::string& command : commands_of(text_of_file(source / "README.md"))) {
    CAPTURE(command);
    if (command.starts_with("./scripts/") || command.starts_with("scripts/")) {
      CHECK(fs::exists(source / command.substr(0, command.find(' '))));
    } else if (auto arguments = arguments_of_hdpsim(command)) {
      // One step shows that the command works; all of them take longer.
      if (arguments->starts_with("study ")) *arguments += " --set data.steps=1";
      const Outcome outcome = here.hdpsim(*arguments);
      CAPTURE(outcome.err);
      CHECK(outcome.code == 0);
      ++hdpsim_commands;
    }
  }
  CHECK(hdpsim_commands > 0);
}

}  // namespace
}  // namespace hdpsim::spec
