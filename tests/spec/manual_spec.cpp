#include <fmt/format.h>

#include <set>
#include <sstream>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

const fs::path pages = fs::path(HDPSIM_SOURCE_DIR) / "sim/app/commands";

// The commands that the overview links to.
std::set<std::string> commands_of(const std::string& overview) {
  std::set<std::string> commands;
  std::istringstream lines(overview);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| [")) commands.insert(line.substr(3, line.find(']') - 3));
  }
  return commands;
}

TEST_CASE("the page of every command is what its help says", "[manual]") {
  const Workplace here;
  const std::string overview = here.hdpsim("manual --markdown").out;
  CHECK(overview == golden("../../sim/app/commands/README.md", overview));
  const std::set<std::string> commands = commands_of(overview);
  CHECK(commands.size() > 10);
  std::set<std::string> files = {"README.md"};
  for (const std::string& command : commands) {
    CAPTURE(command);
    const Outcome page = here.run("manual --markdown " + command);
    CHECK(page.out == golden(fmt::format("../../sim/app/commands/{}.md", command), page.out));
    files.insert(command + ".md");
  }
  const std::vector<std::string> there = files_in(pages);
  CHECK(std::set<std::string>(there.begin(), there.end()) == files);
  CHECK(here.hdpsim("manual --markdown nonsense").code == 2);
}

TEST_CASE("every help has an example", "[manual]") {
  const Workplace here;
  std::vector<std::string> commands = {""};
  for (const std::string& command : commands_of(here.hdpsim("manual --markdown").out)) commands.push_back(command);
  for (const char* below : {"trace describe", "trace fit", "trace generate", "trace convert", "cluster show"}) {
    commands.emplace_back(below);
  }
  for (const std::string& command : commands) {
    CAPTURE(command);
    CHECK(here.run(command + " --help").out.find("  hdpsim " + command) != std::string::npos);
  }
}

}  // namespace
}  // namespace hdpsim::spec
