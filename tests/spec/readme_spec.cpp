#include <fmt/format.h>

#include <optional>
#include <regex>
#include <sstream>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/not_run.h"

namespace hdpsim::spec {
namespace {

// The commands of all ```sh blocks, continued lines joined, comments left out.
std::vector<std::string> commands_in(const std::string& text) {
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

/// A command that calls hdpsim.
struct Call {
  std::string before;  // mpirun, where it is called by that
  std::string arguments;
};

// Nothing if another program is called.
std::optional<Call> call_of_hdpsim(const std::string& command) {
  const std::string by_mpirun = "mpirun ";
  const std::size_t name_at = command.find(" hdpsim ");
  if (command.starts_with(by_mpirun) && name_at != std::string::npos) {
    const std::string options = command.substr(by_mpirun.size(), name_at - by_mpirun.size());
    return Call{mpirun(options), command.substr(name_at + std::string(" hdpsim ").size())};
  }
  for (const std::string name : {"hdpsim ", "build/release/hdpsim ", "./build/release/hdpsim "}) {
    if (command.starts_with(name)) return Call{"", command.substr(name.size())};
  }
  return std::nullopt;
}

// One step or a few seconds show that a command works; all of them take longer.
void shorten(std::string& arguments) {
  const auto has = [&](const char* text) { return arguments.find(text) != std::string::npos; };
  if (arguments.starts_with("study ") || arguments.starts_with("tune ")) arguments += " --set data.steps=1";
  if (arguments.starts_with("replay ")) {
    arguments = std::regex_replace(arguments, std::regex("--steps [0-9]+"), "--steps 3");
  }
  if (arguments.starts_with("execute configs/")) {
    if (!has("--steps ")) arguments += " --steps 1";
    arguments = std::regex_replace(arguments, std::regex("--repeat [0-9]+"), "--repeat 1");
    arguments += " --set data.tokens_per_step=128 --set data.context=128 --set mesh.capacity=64";
  }
  if (arguments.starts_with("calibrate ")) {
    arguments = std::regex_replace(arguments, std::regex("--time-limit [0-9]+s"), "--time-limit " + brief_time_limit());
  }
}

TEST_CASE("commands of sh blocks are found", "[readme]") {
  CHECK(commands_in("x\n```sh\n# no\na b  # c\nd \\\n  e\n```\nf\n```yaml\ng\n```\n") ==
        std::vector<std::string>{"a b ", "d   e"});
}

// Runs the hdpsim commands of all sh blocks of a page in their order; how many these are.
int run_commands_of(const std::string& page, const Workplace& here) {
  const fs::path source = HDPSIM_SOURCE_DIR;
  REQUIRE(fs::exists(source / page));
  const std::string no_mpi = mpi_missing();
  int hdpsim_commands = 0;
  for (const std::string& command : commands_in(test::text_of(source / page))) {
    CAPTURE(page, command);
    if (command.starts_with("./scripts/") || command.starts_with("scripts/")) {
      CHECK(fs::exists(source / command.substr(0, command.find(' '))));
    } else if (auto call = call_of_hdpsim(command)) {
      if (!call->before.empty() && !no_mpi.empty()) {
        test::say_not_run(command + ": " + no_mpi);
        continue;
      }
      shorten(call->arguments);
      here.run(call->arguments, call->before);
      ++hdpsim_commands;
    }
  }
  return hdpsim_commands;
}

// The commands of pages that are read one after another, in a workplace of their own.
void check_commands_of(const std::vector<std::string>& pages) {
  const Workplace here;
  int hdpsim_commands = 0;
  for (const std::string& page : pages) hdpsim_commands += run_commands_of(page, here);
  CHECK(hdpsim_commands > 0);
}

TEST_CASE("every command of README works", "[readme]") {
  check_commands_of({"README.md"});
}

TEST_CASE("every command of the pages of studies works", "[readme]") {
  check_commands_of({"configs/studies/README.md", "configs/studies/COMMANDS.md", "configs/studies/REFERENCE.md",
                     "configs/studies/ANSWERS.md"});
}

TEST_CASE("every command of the page of calibration works", "[readme]") {
  check_commands_of({"calib/README.md"});
}

TEST_CASE("every command of the page of validation works", "[readme]") {
  check_commands_of({"configs/validation/README.md"});
}

}  // namespace
}  // namespace hdpsim::spec
