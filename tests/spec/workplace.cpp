#include "tests/spec/workplace.h"

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
#include "tests/support/not_run.h"

namespace hdpsim::spec {
namespace {

constexpr std::chrono::minutes longest_wait{10};  // ends what hangs, with a word on where

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Workplace::Workplace() {
  for (const char* shared : {"configs", "traces", "calib"}) {
    fs::create_directory_symlink(fs::path(HDPSIM_SOURCE_DIR) / shared, folder() / shared);
  }
}

void Workplace::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder() / name, std::ios::binary) << text;
}

std::string Workplace::read(const std::string& name) const {
  return test::text_of(folder() / name);
}

Outcome Workplace::hdpsim(const std::string& arguments, const std::string& before) const {
  const std::string redirected = arguments.find('>') == std::string::npos ? ">.stdout" : "";
  const std::string command =
      fmt::format("cd '{}'; {} '{}' {} {} 2>.stderr", folder().string(), before, HDPSIM_BINARY, arguments, redirected);
  const int status = std::system(command.c_str());
  return {exit_code(status), test::text_of(folder() / ".stdout"), test::text_of(folder() / ".stderr")};
}

Outcome Workplace::run(const std::string& arguments, const std::string& before) const {
  Outcome outcome = hdpsim(arguments, before);
  CAPTURE(arguments, outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

std::string Workplace::refusal(const std::string& arguments, const std::string& before) const {
  return refused_with(2, arguments, before);
}

std::string Workplace::machine_refusal(const std::string& arguments, const std::string& before) const {
  return refused_with(3, arguments, before);
}

std::string Workplace::refused_with(int code, const std::string& arguments, const std::string& before) const {
  const Outcome outcome = hdpsim(arguments, before);
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == code);
  CHECK((code == 3 || outcome.out.empty()));
  CHECK_FALSE(outcome.err.empty());
  return outcome.err;
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

bool Background::has_ended() {
  int status = 0;
  if (!status_ && waitpid(process_, &status, WNOHANG) == process_) status_ = status;
  return status_.has_value();
}

void Background::await(const std::function<bool()>& holds) {
  const auto give_up = std::chrono::steady_clock::now() + longest_wait;
  while (!holds()) {
    const bool ended = has_ended();
    if (ended && holds()) return;  // at its very end
    if (ended) FAIL("hdpsim has ended with exit code " << exit_code(*status_) << " before what the test waits for");
    if (std::chrono::steady_clock::now() > give_up) {
      send(SIGKILL);
      FAIL("what the test waits for has not come in ten minutes");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Background::send(int signal) const {
  if (!status_) kill(process_, signal);
}

int Background::wait() {
  const auto give_up = std::chrono::steady_clock::now() + longest_wait;
  while (!has_ended()) {
    if (std::chrono::steady_clock::now() > give_up) send(SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return exit_code(*status_);
}

std::string patience_for(std::chrono::seconds least, const std::function<void()>& work) {
  constexpr int times = 10;
  const auto begin = std::chrono::steady_clock::now();
  work();
  const auto taken = std::chrono::ceil<std::chrono::seconds>(times * (std::chrono::steady_clock::now() - begin));
  return fmt::format("{}s", std::max(least, taken).count());
}

std::string brief_time_limit() {
  static const int limit_s = [] {
    constexpr int longest_s = 400;
    int enough_s = 2;
    const auto is_enough = [&] {
      const std::string command = fmt::format("calibrate --backend cpu --time-limit {}s --name probe", enough_s);
      return Workplace().hdpsim(command).code == 0;
    };
    while (enough_s < longest_s && !is_enough()) enough_s *= 2;
    return 2 * enough_s;
  }();
  return fmt::format("{}s", limit_s);
}

void run_through_kills(const Workplace& here, const std::string& arguments, const std::string& begun,
                       const Kills& kills) {
  CAPTURE(kills.seed);
  RandomStream random(kills.seed, "kills");
  const fs::path sign = here.folder() / begun;
  const auto command = [&] { return arguments + (fs::exists(sign) ? " --resume" : ""); };
  auto within = std::chrono::duration_cast<std::chrono::microseconds>(kills.within);
  for (int killed = 0; killed < kills.times;) {
    Background run(here, fmt::format("{} --jobs {}", command(), killed % 2 == 0 ? 1 : 3));
    run.await([&] { return fs::exists(sign); });
    std::this_thread::sleep_for(
        std::chrono::microseconds(random.below(static_cast<std::uint64_t>(within.count()) + 1)));
    run.send(SIGKILL);
    const int code = run.wait();
    if (code == 128 + SIGKILL) {
      ++killed;
      continue;
    }
    REQUIRE(code == 0);
    fs::remove_all(here.folder() / *fs::path(begun).begin());
    within /= 2;
  }
  REQUIRE(here.hdpsim(command()).code == 0);
}

std::string mpirun(const std::string& options) {
  // ASAN_OPTIONS: Open MPI itself leaks, in modules that are gone when leaks are reported.
  // orte_tmpdir_base: jobs that start at the same time in one folder fail where the other creates its folder first.
  return "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe "
         "--bind-to none --mca mpi_yield_when_idle 1 --mca btl self,vader,tcp --mca orte_tmpdir_base \"$PWD\" " +
         options;
}

std::string mpi_missing() {
  if (std::system("command -v mpirun >/dev/null") != 0) return "there is no mpirun here";
  // One of two processes whose other is not there.
  static const Outcome alone = Workplace().hdpsim("study configs/studies/tiny.yaml", "export OMPI_COMM_WORLD_SIZE=2;");
  return alone.err.find("built without MPI") == std::string::npos ? "" : "the program was built without MPI";
}

bool is_without_mpi() {
  const std::string reason = mpi_missing();
  if (!reason.empty()) test::say_not_run(reason);
  return !reason.empty();
}

std::string golden(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(HDPSIM_SOURCE_DIR) / "tests/golden" / name;
  if (std::getenv("HDPSIM_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  return test::text_of(path);
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
