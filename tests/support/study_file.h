#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim::test {

inline constexpr char good_study[] = R"(name: good
cluster: {preset: a100-rail-3tier, gpus: 32}
model: {preset: llama-7b}
profile: bytescale-implied
data:
  lengths: {preset: github, edges: upper}
  context: 64Ki
  tokens_per_step: 1Mi
  steps: 2
mesh: {tp: 2}
plans: [static, hdp-naive]
)";

/// Every problem that reading finds, as `line:column: message`, without the file.
template <class Read>
std::vector<std::string> problems_of(const Read& read) {
  std::vector<std::string> found;
  try {
    read();
  } catch (const InputError& error) {
    for (const Diagnostic& problem : error.diagnostics().sorted()) {
      found.push_back(fmt::format("{}:{}: {}", problem.position.line, problem.position.column, problem.message));
    }
  }
  return found;
}

/// A study file that is gone after the test.
class StudyFile {
 public:
  explicit StudyFile(const std::string& text) { add("study.yaml", text); }

  void add(const std::string& name, const std::string& text) const { std::ofstream(folder() / name) << text; }
  [[nodiscard]] std::string path() const { return (folder() / "study.yaml").string(); }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

  [[nodiscard]] Study load(const std::vector<std::string>& overrides = {}) const {
    Catalog catalog(HDPSIM_SOURCE_DIR);
    return load_study(path(), overrides, catalog);
  }
  [[nodiscard]] std::vector<std::string> problems(const std::vector<std::string>& overrides = {}) const {
    return problems_of([&] { (void)load(overrides); });
  }

 private:
  TemporaryFolder folder_;
};

using Problems = std::vector<std::string>;

inline std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace hdpsim::test
