#pragma once

#include <string>

#include "sim/tasks/task_file.h"
#include "tests/support/study_file.h"

namespace hdpsim::test {

/// Two encoders and a language model that two tasks share, on two nodes of eight.
inline constexpr char good_tasks[] = R"(name: good
cluster: {preset: dgx-a100-superpod, gpus: 16}
profile: a100-sxm-published
batch: 16
modules:
  vision: {layers: 4, width: 512, heads: 8}
  text: {layers: 2, width: 256, heads: 4}
  lm: {layers: 3, width: 256, heads: 4, vocabulary: 1024, tp: 2, attention: causal}
tasks:
  caption: {graph: {vision: {tokens: 256}, lm: {tokens: 128, after: [vision]}}}
  pairs: {batch: 8, graph: {vision: {tokens: 256}, text: {tokens: 64}}}
)";

/// A file of tasks that is gone after the test.
class TasksFile {
 public:
  explicit TasksFile(const std::string& text = good_tasks) : file_(text) {}
  [[nodiscard]] TaskFile load(const std::vector<std::string>& overrides = {}) const {
    Catalog catalog(HDPSIM_SOURCE_DIR);
    return load_task_file(file_.path(), overrides, catalog);
  }
  [[nodiscard]] std::vector<std::string> problems() const {
    return problems_of([this] { (void)load(); });
  }

 private:
  StudyFile file_;
};

}  // namespace hdpsim::test
