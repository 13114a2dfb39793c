#include "sim/study/sweep.h"

#include <fmt/format.h>

#include "sim/document/values.h"
#include "sim/study/override.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

Value parsed_sweep(const std::string& text) {
  Diagnostics diagnostics;
  Value value = parse_document("study.yaml", text, diagnostics);
  diagnostics.throw_if_any();
  return value;
}

std::vector<std::string> points_of(const std::string& text) {
  Diagnostics diagnostics;
  std::vector<std::string> points;
  for (const SweepPoint& point : expand_sweep(parsed_sweep(text), diagnostics)) points.push_back(line_of(point.study));
  diagnostics.throw_if_any();
  return points;
}

std::string problems_of(const std::string& text) {
  Diagnostics diagnostics;
  const Value study = parse_document("study.yaml", text, diagnostics);
  (void)expand_sweep(study, diagnostics);
  return diagnostics.text();
}

TEST_CASE("a study without sweep is one point", "[sweep]") {
  CHECK(points_of("a: 1") == std::vector<std::string>{"{a: 1}"});
}

TEST_CASE("the last path of a sweep varies fastest", "[sweep]") {
  CHECK(points_of("sweep:\n  x.y: [1, 2]\n  z: [a, b, c]\n") ==
        std::vector<std::string>{"{x: {y: 1}, z: a}", "{x: {y: 1}, z: b}", "{x: {y: 1}, z: c}", "{x: {y: 2}, z: a}",
                                 "{x: {y: 2}, z: b}", "{x: {y: 2}, z: c}"});
}

TEST_CASE("a sweep replaces what stands in the study and keeps the order of its keys", "[sweep]") {
  CHECK(points_of("data: {context: 1, seed: 2}\nsweep: {data.context: [8, 9]}") ==
        std::vector<std::string>{"{data: {context: 8, seed: 2}}", "{data: {context: 9, seed: 2}}"});
}

std::string list_of(int values) {
  std::string text = "[0";
  for (int i = 1; i < values; ++i) text += fmt::format(", {}", i);
  return text + "]";
}

TEST_CASE("a sweep has 10,000 points at most", "[sweep]") {
  CHECK(points_of(fmt::format("sweep: {{a: {}, b: {}}}", list_of(100), list_of(100))).size() == 10'000);
  CHECK(problems_of(fmt::format("sweep: {{a: {}, b: {}}}", list_of(100), list_of(101)))
            .find("error: the sweep has more than 10000 points") != std::string::npos);
}

TEST_CASE("a large study has fewer points", "[sweep]") {
  // The study, its list and the values of this.
  const std::string large = fmt::format("a: {}\n", list_of(4998));
  CHECK(points_of(large + "sweep: {b: " + list_of(20) + "}").size() == 20);
  CHECK(problems_of(large + "sweep: {b: " + list_of(201) + "}")
            .find("error: 201 points of a study of 5000 values are too many") != std::string::npos);
}

TEST_CASE("the coordinates of a point say what was set", "[sweep]") {
  Diagnostics diagnostics;
  const auto points = expand_sweep(parsed_sweep("sweep: {a.b: [1, {c: 2}]}"), diagnostics);
  REQUIRE(points.size() == 2);
  CHECK(points[1].coordinates[0].path == "a.b");
  CHECK(line_of(points[1].coordinates[0].value) == "{c: 2}");
}

TEST_CASE("a key that only a sweep makes carries the place of its value", "[sweep]") {
  Diagnostics diagnostics;
  const auto points = expand_sweep(parsed_sweep("sweep:\n  data.contxt: [1]\n"), diagnostics);
  const Value::Entry& made = points.at(0).study.entries.at(0).value.entries.at(0);
  CHECK(made.key == "contxt");
  CHECK(made.position.line == 2);
  CHECK(made.position.column == 17);
}

TEST_CASE("a sweep over nothing, over no list, or over the study as a whole is refused", "[sweep]") {
  CHECK(problems_of("sweep: {a: [], b: 3, plans: [static]}") ==
        "study.yaml:1:12: error: the values of 'a' must be a list that is not empty\n"
        "    1 | sweep: {a: [], b: 3, plans: [static]}\n"
        "                   ^ write [256Ki, 512Ki]\n"
        "study.yaml:1:19: error: the values of 'b' must be a list that is not empty\n"
        "    1 | sweep: {a: [], b: 3, plans: [static]}\n"
        "                          ^ write [256Ki, 512Ki]\n"
        "study.yaml:1:22: error: 'plans' cannot be swept\n"
        "    1 | sweep: {a: [], b: 3, plans: [static]}\n"
        "                             ^ it belongs to the study as a whole\n");
}

TEST_CASE("a sweep over paths of which one is part of another, or over a value twice, is refused", "[sweep]") {
  const std::string twice = "'mesh.tp' and 'mesh' say the same thing twice";
  CHECK_THAT(problems_of("mesh: {tp: 1}\nsweep:\n  mesh.tp: [2, 4]\n  mesh: [{tp: 1}]\n"),
             Catch::Contains("study.yaml:4:3: error: " + twice) && Catch::Contains("write all keys below 'mesh'"));
  CHECK_THAT(problems_of("mesh: {tp: 1}\nsweep: [{label: a, set: {mesh.tp: 2, mesh: {tp: 4}}}]\n"),
             Catch::Contains(twice));
  CHECK(points_of("a: {b: 0}\nab: 0\nsweep:\n  a: [1]\n  ab: [2]\n").size() == 1);
  CHECK_THAT(problems_of("a: 0\nsweep:\n  a: [64Ki, 32Ki, 65536]\n"),
             Catch::Contains("study.yaml:3:19: error: 'a' has 65536 twice"));
}

TEST_CASE("points with names have them as their only coordinate, in the order of the list", "[sweep]") {
  Diagnostics diagnostics;
  const auto points =
      expand_sweep(parsed_sweep("a: {b: 1}\nsweep: [{label: as it is}, {label: two and three, set: {a.b: 2, c: [3]}}]"),
                   diagnostics);
  diagnostics.throw_if_any();
  REQUIRE(points.size() == 2);
  CHECK(line_of(points[0].study) == "{a: {b: 1}}");
  CHECK(line_of(points[1].study) == "{a: {b: 2}, c: [3]}");
  REQUIRE(points[1].coordinates.size() == 1);
  CHECK(points[1].coordinates[0].path == "label");
  CHECK(points[1].coordinates[0].value.text == "two and three");
}

TEST_CASE("a list of points tells all that is wrong with them", "[sweep]") {
  Diagnostics diagnostics;
  (void)expand_sweep(
      parsed_sweep("sweep: [{label: a, set: [1]}, {set: {x: 1}}, {label: b, set: {plans: [static]}}, 3]"), diagnostics);
  std::vector<std::string> told;
  for (const Diagnostic& each : diagnostics.sorted()) {
    told.push_back(fmt::format("{}: {}", each.position.column, each.message));
  }
  CHECK(told == std::vector<std::string>{"25: 'set' must be a map of values by path",
                                         "31: a point of the sweep needs 'label'", "63: 'plans' cannot be swept",
                                         "82: a point of the sweep must be a map, found a value"});
  CHECK(problems_of("sweep: [{label: a}, {label: a}]").find("'a' is a point already") != std::string::npos);
  CHECK(problems_of("sweep: []").find("the list of points is empty") != std::string::npos);
}

TEST_CASE("an override cannot name a path of a list of points", "[override]") {
  Value study = parsed_sweep("a: 1\nsweep: [{label: x}]");
  Diagnostics diagnostics;
  apply_overrides(study, {"sweep.a=[2]"}, diagnostics);
  CHECK(diagnostics.text().find("the sweep is a list of points and has no paths") != std::string::npos);
  CHECK(line_of(study) == "{a: 1, sweep: [{label: x}]}");
}

TEST_CASE("a path through a plain value leads nowhere", "[sweep]") {
  CHECK(problems_of("a: 1\nsweep: {a.b: [2]}").find("'a.b' does not lead anywhere") != std::string::npos);
}

TEST_CASE("an override is YAML and replaces or adds", "[override]") {
  Value study = parsed_sweep("data: {context: 1}\nplans: [static, hdp-naive]");
  Diagnostics diagnostics;
  apply_overrides(study, {"data.context=2Mi", "plans.1=hdp-balance", "mesh.tp=4", "data.lengths={preset: byted}"},
                  diagnostics);
  diagnostics.throw_if_any();
  CHECK(line_of(study) ==
        "{data: {context: 2Mi, lengths: {preset: byted}}, plans: [static, hdp-balance], mesh: {tp: 4}}");
}

TEST_CASE("an override of a sweep sets a whole list", "[override]") {
  Value study = parsed_sweep("sweep: {data.context: [1, 2]}");
  Diagnostics diagnostics;
  apply_overrides(study, {"sweep.data.context=[3]", "sweep.mesh.tp=[1, 2]"}, diagnostics);
  CHECK(line_of(study) == "{sweep: {data.context: [3], mesh.tp: [1, 2]}}");
  Value plain = parsed_sweep("a: 1");
  apply_overrides(plain, {"sweep.a=[3, 4]"}, diagnostics);
  CHECK(line_of(plain) == "{a: 1, sweep: {a: [3, 4]}}");
  diagnostics.throw_if_any();
}

TEST_CASE("what is set is no longer swept, nor what is below it", "[override]") {
  const auto with = [](const std::string& assignment) {
    Value study = parsed_sweep("sweep: {data.lengths.preset: [a, b], data.context: [1, 2], data.contexts: [3]}");
    Diagnostics diagnostics;
    apply_overrides(study, {assignment}, diagnostics);
    diagnostics.throw_if_any();
    return line_of(*study.find("sweep"));
  };
  CHECK(with("data.context=4") == "{data.lengths.preset: [a, b], data.contexts: [3]}");
  CHECK(with("data.lengths={file: c}") == "{data.context: [1, 2], data.contexts: [3]}");
}

TEST_CASE("a problem of an override is told with its own text", "[override]") {
  Value study = parsed_sweep("a: 1");
  Diagnostics diagnostics;
  apply_overrides(study, {"b=2", "nothing", "c=[1", "a.b=3"}, diagnostics);
  diagnostics.error(study.find("b")->position, "two is too many");
  CHECK(diagnostics.text() ==
        "--set:1:3: error: two is too many\n"
        "    1 | b=2\n"
        "          ^\n"
        "--set:2:1: error: 'nothing' sets nothing\n"
        "    2 | nothing\n"
        "        ^ write data.context=1Mi\n"
        "--set:3:1: error: end of sequence flow not found\n"
        "    3 | c=[1\n"
        "        ^\n"
        "--set:4:5: error: 'a.b' does not lead anywhere: 'a' has no entry 'b'\n"
        "    4 | a.b=3\n"
        "            ^\n");
}

}  // namespace
}  // namespace hdpsim
