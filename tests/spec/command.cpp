#include "tests/spec/command.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Workplace::Workplace() {
  std::string name = (fs::temp_directory_path() / "hdpsim_spec_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  folder_ = name;
  for (const char* shared : {"configs", "traces", "calib"}) {
    fs::create_directory_symlink(fs::path(HDPSIM_SOURCE_DIR) / shared, folder_ / shared);
  }
}

Workplace::~Workplace() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Workplace::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name, std::ios::binary) << text;
}

std::string Workplace::read(const std::string& name) const {
  return text_of_file(folder_ / name);
}

Outcome Workplace::hdpsim(const std::string& arguments, const std::string& before) const {
  const std::string redirected = arguments.find('>') == std::string::npos ? ">.stdout" : "";
  const std::string command =
      fmt::format("cd '{}'; {} '{}' {} {} 2>.stderr", folder_.string(), before, HDPSIM_BINARY, arguments, redirected);
  const int status = std::system(command.c_str());
  return {exit_code(status), text_of_file(folder_ / ".stdout"), text_of_file(folder_ / ".stderr")};
}

Background::Background(const Workplace& workplace, const std::string& arguments) : process_(fork()) {
  if (process_ < 0) throw std::runtime_error("cannot fork");
  if (process_ > 0) return;
  // The shell becomes hdpsim, so its number stays.
  const std::string command =
      fmt::format("cd '{}' && exec '{}' {} >/dev/null 2>&1", workplace.folder().string(), HDPSIM_BINARY, arguments);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  std::abort();  // there is no shell
}

void Background::send(int signal) const {
  kill(process_, signal);
}

int Background::wait() {
  int status = 0;
  waitpid(process_, &status, 0);
  return exit_code(status);
}

bool Background::ended() const {
  siginfo_t state{};
  const int failed = waitid(P_PID, static_cast<id_t>(process_), &state, WEXITED | WNOHANG | WNOWAIT);
  return failed == 0 && state.si_pid == process_;
}

void wait_until(const std::function<bool()>& holds) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds() && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void run_through_kills(const Workplace& here, const std::string& arguments, const std::string& begun,
                       const Kills& kills) {
  CAPTURE(kills.seed);
  RandomStream random(kills.seed, "kills");
  const auto command = [&] { return arguments + (fs::exists(here.folder() / begun) ? " --resume" : ""); };
  int killed = 0;
  for (int attempt = 0; attempt < kills.times; ++attempt) {
    Background run(here, fmt::format("{} --jobs {}", command(), attempt % 2 == 0 ? 1 : 3));
    std::this_thread::sleep_for(kills.from + std::chrono::milliseconds(random.below((kills.to - kills.from).count())));
    run.send(SIGKILL);
    killed += run.wait() == 128 + SIGKILL ? 1 : 0;
  }
  CHECK(killed > 0);
  REQUIRE(here.hdpsim(command()).code == 0);
}

std::string mpirun(const std::string& options) {
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none "
         "--mca mpi_yield_when_idle 1 --mca btl self,vader,tcp " +
         options;
}

std::string mpi_missing() {
  if (std::system("command -v mpirun >/dev/null") != 0) return "there is no mpirun here";
  // One of two processes whose other is not there.
  const Outcome alone = Workplace().hdpsim("study configs/studies/tiny.yaml", "export OMPI_COMM_WORLD_SIZE=2;");
  return alone.err.find("built without MPI") == std::string::npos ? "" : "the program was built without MPI";
}

std::string text_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string golden(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(HDPSIM_SOURCE_DIR) / "tests/golden" / name;
  if (std::getenv("HDPSIM_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  return text_of_file(path);
}

std::int64_t line_count(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

void check_same_file(const Workplace& here, const std::string& one, const std::string& other) {
  CAPTURE(one, other);
  const std::string text = here.read(one);
  CHECK_FALSE(text.empty());
  CHECK((text == here.read(other)));  // not printed: they are long
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != ".hdpsim") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hdpsim::spec
