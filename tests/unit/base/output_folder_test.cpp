#include "sim/base/output_folder.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

using test::text_of;

// Without the list.
std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != ".hdpsim") names.insert(fs::relative(entry.path(), folder));
  }
  return names;
}

/// A run that writes these files, each with a text that names the run.
void run(const fs::path& path, const std::string& kind, const std::set<std::string>& names,
         std::string* told = nullptr) {
  OutputFolder folder(path, {kind, "hdpsim " + kind, {}}, nullptr);
  folder.remove_earlier();
  (void)folder.folder("timelines");
  for (const std::string& name : names) folder.write(name, kind);
  if (told != nullptr) *told = folder.removed_text();
}

TEST_CASE("a folder can be made and written, or it is refused", "[output]") {
  const test::TemporaryFolder folder;
  prepare_folder(folder.path() / "deep/inside");
  CHECK(files_in(folder.path() / "deep/inside").empty());
  std::ofstream(folder.path() / "file") << "x";
  CHECK_THROWS_AS(prepare_folder(folder.path() / "file"), MachineError);
}

TEST_CASE("a second writer is refused at once and told of the first, until that one ends", "[output]") {
  const test::TemporaryFolder folder;
  auto first = std::make_unique<OutputFolder>(folder.path(), OutputUse{"study", "hdpsim study mine.yaml", {}}, nullptr);
  CHECK_THROWS_WITH(OutputFolder(folder.path(), {"study", "other", {}}, nullptr),
                    Catch::Contains("process ") && Catch::Contains("hdpsim study mine.yaml"));
  first.reset();
  CHECK_NOTHROW(OutputFolder(folder.path(), {"study", "other", {}}, nullptr));
}

TEST_CASE("a new run removes what an earlier one of its kind has written and it does not write, and nothing else",
          "[output]") {
  const test::TemporaryFolder folder;
  run(folder.path(), "study", {"a.csv", "report.html", "timelines/0.json.gz", "timelines/1.json.gz"});
  run(folder.path(), "comparison", {"comparison.html"});
  std::ofstream(folder.path() / "notes.html") << "the user's";
  std::ofstream(folder.path() / "timelines/own.json") << "the user's";
  std::string told;
  run(folder.path(), "study", {"a.csv", "b.csv"}, &told);
  CHECK(files_in(folder.path()) ==
        std::set<std::string>{"a.csv", "b.csv", "comparison.html", "notes.html", "timelines", "timelines/own.json"});
  CHECK(told ==
        "removed from " + folder.path().string() + ", as an earlier run had left it: report.html, timelines/ (2)");
  run(folder.path(), "study", {"a.csv", "b.csv"}, &told);
  CHECK(told.empty());
}

TEST_CASE("files that no run has written are refused by name, unless a run goes on", "[output]") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "runs.csv") << "the user's";
  OutputUse use{"study", "hdpsim study", {"result.json", "runs.csv"}};
  CHECK_THROWS_WITH(OutputFolder(folder.path(), use, nullptr),
                    Catch::Contains("runs.csv: error: this file is there, and no earlier run has written it"));
  CHECK(text_of(folder.path() / "runs.csv") == "the user's");
  use.replaces_unlisted = true;
  OutputFolder(folder.path(), use, nullptr).write("runs.csv", "a run's");
  use.replaces_unlisted = false;
  CHECK_NOTHROW(OutputFolder(folder.path(), use, nullptr));
}

TEST_CASE("the list is the same after the same run, whoever ran it", "[output]") {
  const test::TemporaryFolder folder;
  run(folder.path(), "study", {"b.csv", "a.csv"});
  CHECK(text_of(folder.path() / ".hdpsim") == "study a.csv\nstudy b.csv\n");
}

TEST_CASE("a list that somebody has planted removes nothing outside of its folder", "[output]") {
  const test::TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  fs::create_directories(out);
  fs::create_directories(folder.path() / "elsewhere");
  for (const char* name : {"target.csv", "elsewhere/target.csv"}) std::ofstream(folder.path() / name) << "mine";
  fs::create_directory_symlink(folder.path() / "elsewhere", out / "link");
  std::ofstream(out / ".hdpsim") << "study ../target.csv\nstudy link/target.csv\nstudy "
                                 << (folder.path() / "target.csv").string() << "\nstudy ./../target.csv\n";
  run(out, "study", {"a.csv"});
  CHECK(text_of(folder.path() / "target.csv") == "mine");
  CHECK(text_of(folder.path() / "elsewhere/target.csv") == "mine");
}

TEST_CASE("a folder in the folder may be no link, nor may the list", "[output]") {
  const test::TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  fs::create_directories(folder.path() / "elsewhere");
  {
    OutputFolder output(out, {"study", "", {}}, nullptr);
    fs::create_directory_symlink(folder.path() / "elsewhere", out / "runs");
    CHECK_THROWS_AS(output.folder("runs"), MachineError);
  }
  fs::remove(out / ".hdpsim");
  std::ofstream(folder.path() / "target") << "mine";
  fs::create_symlink(folder.path() / "target", out / ".hdpsim");
  CHECK_THROWS_AS(OutputFolder(out, {"study", "", {}}, nullptr), MachineError);
  CHECK(text_of(folder.path() / "target") == "mine");
}

TEST_CASE("a file that was read is neither replaced nor removed", "[output]") {
  const test::TemporaryFolder folder;
  run(folder.path(), "study", {"best.yaml", "study.yaml"});
  fs::create_hard_link(folder.path() / "best.yaml", folder.path() / "other.yaml");
  const InputFiles inputs;
  InputFiles::record(folder.path() / "best.yaml");
  CHECK_THROWS_AS(OutputFolder(folder.path(), {"study", "", {"best.yaml"}}, &inputs), InputError);
  CHECK_THROWS_AS(OutputFolder(folder.path(), {"study", "", {"other.yaml"}}, &inputs), InputError);
  OutputFolder output(folder.path(), {"study", "", {"study.yaml"}}, &inputs);
  CHECK_THROWS_AS(output.write("best.yaml", "x"), InputError);
  output.remove_earlier();
  CHECK(files_in(folder.path()) == std::set<std::string>{"best.yaml", "other.yaml", "timelines"});
}

TEST_CASE("of several who ask which files are read, the youngest is told", "[output]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a";
  std::ofstream(path) << "x";
  const InputFiles older;
  {
    const InputFiles younger;
    InputFiles::record(path);
    CHECK(younger.holds(path));
  }
  CHECK_FALSE(older.holds(path));
  InputFiles::record(path);
  CHECK(older.holds(path));
}

}  // namespace
}  // namespace hdpsim
