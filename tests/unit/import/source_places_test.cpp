#include "sim/import/imported_study.h"

#include <fmt/format.h>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("problems of an imported study stand where the file states their keys", "[import]") {
  ImportedStudy study;
  study.text = "mesh:\n  tp: 8\n  zero: 3\nplans:\n  - static: {cp: 2}\n  - hdp-naive\n";
  study.file = "run.sh";
  study.places = {{"mesh.tp", {"run.sh", 3, 7}}, {"plans", {"run.sh", 4, 1}}};
  study.sources = {{"run.sh", "a\nb\nrun --tp 8\n--cp 2\n"}};
  Diagnostics found;
  found.error({"mine.yaml", 2, 7}, "too wide", "less");
  found.error({"mine.yaml", 3, 9}, "not with experts");
  found.error({"mine.yaml", 5, 16}, "does not divide");
  found.error({"cluster.yaml", 1, 1}, "of another file");
  std::vector<std::string> told;
  const Diagnostics moved = at_source(study, "mine.yaml", found);
  for (const Diagnostic& each : moved.sorted()) {
    told.push_back(
        fmt::format("{}:{}:{} {}", each.position.file, each.position.line, each.position.column, each.message));
  }
  CHECK(told == std::vector<std::string>{"cluster.yaml:1:1 of another file",
                                         "run.sh:0:0 not with experts (the study's mesh.zero)",
                                         "run.sh:3:7 too wide (the study's mesh.tp)",
                                         "run.sh:4:1 does not divide (the study's plans.static.cp)"});
  CHECK_THAT(moved.text(), Catch::Contains("run --tp 8\n"));
}

}  // namespace
}  // namespace hdpsim
