#include "sim/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/growing_file.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

using test::text_of;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  return entries;
}

TEST_CASE("a file is replaced as a whole or not at all", "[output]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a.txt";
  write_file(path, "first");
  {
    AtomicFile unfinished(path);
    unfinished.write("second");
    CHECK(entries_of(folder.path()).size() == 2);
  }
  CHECK(text_of(path) == "first");
  write_file(path, "third");
  CHECK(text_of(path) == "third");
  CHECK_THROWS_AS(write_file(folder.path() / "nowhere" / "a.txt", "x"), MachineError);
  CHECK(entries_of(folder.path()) == std::vector{path});
}

TEST_CASE("no link is written through: neither a planted temporary file nor the name itself", "[output]") {
  const test::TemporaryFolder folder;
  const fs::path target = folder.path() / "target.txt";
  std::ofstream(target) << "mine";
  const fs::path path = folder.path() / "a.txt";
  for (int number = 0; number < 3; ++number) {
    fs::create_symlink(target,
                       folder.path() / (".a.txt." + std::to_string(getpid()) + "-" + std::to_string(number) + ".part"));
  }
  fs::create_symlink(target, path);
  write_file(path, "result");
  CHECK(text_of(target) == "mine");
  CHECK(fs::is_regular_file(fs::symlink_status(path)));
  CHECK(text_of(path) == "result");

  const fs::path part = GrowingFile::temporary(path);
  fs::create_symlink(target, part);
  CHECK_THROWS_AS(GrowingFile(path, 0), MachineError);
  CHECK(text_of(target) == "mine");
}

TEST_CASE("a pipe stays a pipe, and what is written goes through it", "[output]") {
  const test::TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(pipe, "through");
  std::array<char, 16> got{};
  CHECK(read(reader, got.data(), got.size()) == 7);
  CHECK(std::string_view(got.data()) == "through");
  CHECK(fs::is_fifo(pipe));
  close(reader);
}

TEST_CASE("a signal handler can remove what is unfinished, and the process ends then", "[output]") {
  const test::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    const AtomicFile one(folder.path() / "one");
    const AtomicFile other(folder.path() / "other");
    const bool were_there = entries_of(folder.path()).size() == 2;
    remove_unfinished_files();
    _exit(were_there && entries_of(folder.path()).empty() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("what a process that is gone has left is known by its name", "[output]") {
  const std::string own = std::to_string(getpid());
  CHECK(is_left_over(".runs.csv." + own + "-0.part"));    // this process removes its own
  CHECK(is_left_over("results/.a-b.c.4194305-12.part"));  // more than a kernel gives
  CHECK_FALSE(is_left_over(".runs.csv." + std::to_string(getppid()) + "-0.part"));
  for (const char* name :
       {"steps.csv.part", ".part", ".x.part", ".x.12.part", ".x.12-.part", ".x.y-1.part", "x.1-1.part"}) {
    CAPTURE(name);
    CHECK_FALSE(is_left_over(name));
  }
}

TEST_CASE("one file does not grow by two writers", "[output]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "steps.csv";
  GrowingFile first(path, 0);
  first.append("a\n");
  CHECK_THROWS_AS(GrowingFile(path, 0), MachineError);
  first.append("b\n");
  first.finish();
  CHECK(text_of(path) == "a\nb\n");
}

}  // namespace
}  // namespace hdpsim
