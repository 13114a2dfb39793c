#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/file_text.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim::spec {

namespace fs = std::filesystem;

/// What a finished command left behind.
struct Outcome {
  int code = 0;  ///< Exit code; 128 + signal if one ended it.
  std::string out;
  std::string err;
};

/// A working folder of its own for one test, gone after it. `configs`, `traces` and `calib` in it are the project's.
class Workplace {
 public:
  Workplace();

  [[nodiscard]] const fs::path& folder() const { return folder_.path(); }
  void write(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::string read(const std::string& name) const;

  /// Runs `hdpsim ARGUMENTS` here, as a shell would read them, after the shell commands `before`; the output is kept.
  [[nodiscard]] Outcome hdpsim(const std::string& arguments, const std::string& before = "") const;
  /// The same of a command that has to succeed.
  Outcome run(const std::string& arguments, const std::string& before = "") const;
  /// What a command says on standard error that has to end with 2, for wrong input, and print nothing else.
  [[nodiscard]] std::string refusal(const std::string& arguments, const std::string& before = "") const;
  /// What one says that has to end with 3, for what the machine cannot do, whatever it has printed until then.
  [[nodiscard]] std::string machine_refusal(const std::string& arguments, const std::string& before = "") const;

 private:
  [[nodiscard]] std::string refused_with(int code, const std::string& arguments, const std::string& before) const;

  test::TemporaryFolder folder_;
};

/// hdpsim in the background, its arguments as a shell would read them, its output thrown away.
class Background {
 public:
  Background(const Workplace& workplace, const std::string& arguments);
  /// Waits until something holds. Fails the test if the program has ended before, or if ten minutes were not enough.
  void await(const std::function<bool()>& holds);
  void send(int signal) const;
  /// The exit code, as in Outcome. A program that has not ended after ten minutes is killed.
  int wait();

 private:
  [[nodiscard]] bool has_ended();

  pid_t process_ = 0;
  std::optional<int> status_;  ///< Of a process that has ended.
};

/// The time for --patience after which a process that says nothing is taken for lost, "3s": a multiple of what `work`
/// takes, which processes that are well do many times in it, on a machine as busy as this one; `least` if that is more.
[[nodiscard]] std::string patience_for(std::chrono::seconds least, const std::function<void()>& work);

/// The text of a --time-limit in which a calibration of the CPU measures a few sizes of everything, far too few for a
/// good profile: twice what was enough when this was first asked, on a machine as busy as this one.
[[nodiscard]] std::string brief_time_limit();

/// When a run is killed: so many times, each at most so long after it has begun, evenly drawn.
struct Kills {
  int times = 6;
  std::uint64_t seed = 0;
  std::chrono::milliseconds within{};
};
/// Kills `hdpsim ARGUMENTS` again and again, of one job and of three in turn, and lets it run to its end then. It has
/// begun when the file `begun` is there, and goes on with --resume from then on. A run that ends before it is killed
/// is made again, from nothing and with half the time, so that all kills meet a run at work, however fast the machine
/// is. Checks that the last run is well.
void run_through_kills(const Workplace& here, const std::string& arguments, const std::string& begun,
                       const Kills& kills);

/// mpirun with these options, such as "-n 3", and those that it needs here: root in a container, and more processes
/// than cores.
[[nodiscard]] std::string mpirun(const std::string& options);
/// Why processes cannot be tested here; empty if they can.
[[nodiscard]] std::string mpi_missing();
/// Whether processes cannot be tested here. The test has then been told as one that was not run.
[[nodiscard]] bool is_without_mpi();

/// The text of tests/golden/`name`. With HDPSIM_UPDATE_GOLDEN=1 in the environment it is first replaced by `text`.
[[nodiscard]] std::string golden(const std::string& name, const std::string& text);
/// Ends of lines.
[[nodiscard]] std::int64_t line_count(const std::string& text);
/// Checks that two files of a workplace have the same text, and some.
void check_same_file(const Workplace& here, const std::string& one, const std::string& other);
/// Sorted names of the regular files of a folder, but for the list of them that hdpsim keeps there.
[[nodiscard]] std::vector<std::string> files_in(const fs::path& folder);

}  // namespace hdpsim::spec
