#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/app/command.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/sane.h"
#include "tests/fuzz/scratch_files.h"

namespace hdpsim::fuzz {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// What is printed goes to a file while there is one of these.
class CaughtOutput {
 public:
  CaughtOutput() : path_(scratch() / "output"), terminal_(dup(STDOUT_FILENO)) {
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)std::fflush(stdout);
    dup2(file, STDOUT_FILENO);
    close(file);
  }
  CaughtOutput(const CaughtOutput&) = delete;
  CaughtOutput& operator=(const CaughtOutput&) = delete;
  ~CaughtOutput() {
    (void)std::fflush(stdout);
    dup2(terminal_, STDOUT_FILENO);
    close(terminal_);
  }
  [[nodiscard]] std::string text() const { return text_of(path_); }

 private:
  fs::path path_;
  int terminal_;
};

/// Every number of the document, wherever it stands: the least is a root, -1; no link carries more than its rate.
void require_numbers(const Json& json) {
  if (json.is_number()) require_number(json.get<double>(), -1, "number");
  if (!json.is_structured()) return;
  for (const Json& part : json) require_numbers(part);
  if (!json.is_object()) return;
  for (const char* const key : {"used", "utilisation"}) {
    require(json.value(key, 0.0) <= 1 + 1e-6, "link", json.dump());
  }
}

void require_printed(const std::string& text, bool is_json) {
  if (!is_json) {
    require(text.find("nan") == std::string::npos && text.find("inf ") == std::string::npos, "table", text);
    return;
  }
  require_json(text);
  require_numbers(Json::parse(text));
}

Outcome run_comm(std::vector<std::string> arguments) {
  const bool is_json = std::find(arguments.begin(), arguments.end(), "json") != arguments.end();
  app::CommandLine line("hdpsim", "");
  app::Session session;
  session.data_folder = HDPSIM_SOURCE_DIR;
  app::add_comm_command(line.top(), session);
  arguments.insert(arguments.begin(), "comm");
  try {
    (void)line.parse(std::move(arguments));
  } catch (const app::WrongCommandLine&) {
    return Outcome::refused;
  }
  if (!session.action) return Outcome::refused;
  const CaughtOutput caught;
  require(session.action() == 0, "exit code", "not 0");
  require_printed(caught.text(), is_json);
  return Outcome::accepted;
}

/// One argument a line.
Outcome run_arguments(std::string_view input) {
  constexpr std::size_t most = 40;
  std::vector<std::string> arguments;
  std::istringstream lines{std::string(input)};
  for (std::string line; std::getline(lines, line) && arguments.size() < most;) arguments.push_back(line);
  return run_comm(std::move(arguments));
}

Outcome run_comm_on_cluster(std::string_view input) {
  const std::string file = file_with("cluster.yaml", input);
  for (const char* const what : {"all_reduce", "alltoall", "permutation"}) {
    const Outcome outcome = run_comm({what, "--cluster", file, "-g", "16", "-f", "32", "--format", "json"});
    if (outcome != Outcome::accepted) return outcome;
  }
  return Outcome::accepted;
}

Outcome run_beside_measured(std::string_view input) {
  const std::string file = file_with("nccl.txt", input);
  return run_comm({"all_reduce", "-g", "2", "--compare", file, "--format", "json"});
}

}  // namespace

std::vector<Target> comm_targets() {
  return {
      {"comm", ".args", 8, longest_simulation, {}, run_arguments},
      {"comm_cluster", ".yaml", 4, longest_simulation, {"tests/fuzz/corpus/cluster_run"}, run_comm_on_cluster},
      {"comm_measured",
       ".txt",
       5,
       longest_simulation,
       {"tests/fuzz/corpus/nccl_tests/all_reduce.txt", "tests/fuzz/corpus/nccl_tests/json.txt"},
       run_beside_measured},
  };
}

}  // namespace hdpsim::fuzz
