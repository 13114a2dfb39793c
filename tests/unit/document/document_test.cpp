#include "sim/document/document.h"

#include <fmt/format.h>

#include <fstream>

#include "sim/base/check.h"
#include "sim/document/limits.h"
#include "sim/document/reader.h"
#include "tests/support/catch.h"
#include "tests/support/not_run.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

TEST_CASE("values know where they stand, in YAML and in JSON", "[document]") {
  Diagnostics problems;
  const Value yaml = parse_document("a.yaml", "x: 1\nlist:\n  - 2\n  - {y: z}\n", problems);
  CHECK(yaml.find("list")->items[1].find("y")->position.line == 4);
  CHECK(yaml.find("list")->items[1].find("y")->position.column == 9);
  const Value json = parse_document("a.json", "{\"x\": [1,\n 2]}", problems);
  CHECK(json.find("x")->items[1].position.line == 2);
  CHECK(problems.empty());
}

TEST_CASE("a key that stands twice and a broken file are told with their places", "[document]") {
  Diagnostics twice;
  (void)parse_document("a.yaml", "x: 1\nx: 2\n", twice);
  CHECK(twice.text() ==
        "a.yaml:2:1: error: the key 'x' is stated a second time here\n"
        "    2 | x: 2\n"
        "        ^ remove one of them\n");
  Diagnostics broken;
  (void)parse_document("a.yaml", "x: [1, 2\n", broken);
  REQUIRE(broken.sorted().size() == 1);
  CHECK(broken.sorted()[0].position.file == "a.yaml");
}

TEST_CASE("one value too deep or too many values end in an error, not in a crash", "[document]") {
  const auto nested = [](std::size_t levels) {
    Diagnostics problems;
    (void)parse_document("deep.yaml", std::string(levels, '[').append(levels, ']'), problems);
    return problems.sorted().size();
  };
  CHECK(nested(64) == 0);
  CHECK(nested(66) == 1);
  CHECK(nested(1'000'000) == 1);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb +=
        fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  Diagnostics problems;
  (void)parse_document("bomb.yaml", bomb, problems);
  CHECK(problems.sorted().size() == 1);
}

TEST_CASE("a map has no more than 50,000 keys, and those that it has are all read", "[document]") {
  const auto read_keys = [](std::size_t count, Diagnostics& problems) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += fmt::format("k{}: 1\n", i);
    return parse_document("keys.yaml", text, problems).entries.size();
  };
  Diagnostics none;
  CHECK(read_keys(50'000, none) == 50'000);
  CHECK(none.empty());
  Diagnostics problems;
  CHECK(read_keys(50'001, problems) == 0);
  REQUIRE(problems.sorted().size() == 1);
  CHECK(problems.sorted()[0].position.line == 50'001);
  CHECK(problems.sorted()[0].message == "more than 50000 keys in one map");
}

TEST_CASE("what an anchor keeps for its aliases counts as often as it is held", "[document]") {
  const auto problems_of = [](const std::string& text) {
    Diagnostics problems;
    (void)parse_document("a.yaml", text, problems);
    return problems.text();
  };
  // A list of 20,000 items in 60 lists, each of which keeps a copy: 61 x 20,000 values in a file of 40 kB.
  std::string kept;
  for (int level = 0; level < 60; ++level) kept += fmt::format("&a{} [", level);
  for (int item = 0; item < 20'000; ++item) kept += "x,";
  kept.append(60, ']');
  CHECK(problems_of(kept).find("error: too many values in one document") != std::string::npos);
  // A text of 1 MB, told 10,000 times, would be 10 GB.
  std::string told = "text: &a " + std::string(1'000'000, 'x') + "\nlist: [";
  for (int item = 0; item < 10'000; ++item) told += "*a,";
  CHECK(problems_of(told + "]").find("error: too many values in one document") != std::string::npos);
  CHECK(problems_of("a: &a {x: 1}\nb: &b [*a, *a]\nc: [*a, *b]\n").empty());
}

TEST_CASE("a comma too many is told at its place", "[document]") {
  for (const char* text : {",a: 1\n", "{a: 1}, {b: 2}\n", "[1],\n"}) {
    CAPTURE(text);
    Diagnostics problems;
    (void)parse_document("a.yaml", text, problems);
    const int column = static_cast<int>(std::string_view(text).find(',')) + 1;
    REQUIRE(problems.sorted().size() == 1);
    CHECK(problems.sorted()[0].message == "nothing can begin here");
    CHECK(problems.sorted()[0].position.column == column);
  }
}

TEST_CASE("a text too large for YAML is refused before it is parsed", "[document]") {
  const auto problems_of = [](std::size_t size) {
    Diagnostics problems;
    (void)parse_document("a.yaml", "a: " + std::string(size - 3, 'x'), problems);
    return problems.text();
  };
  CHECK(problems_of(2'000'000).empty());
  CHECK(problems_of(2'000'001) == "a.yaml: error: too large: more than 2 MB\n        is it the right file?\n");
}

TEST_CASE("a file without an end is given up at its first byte that no text has", "[document]") {
  if (!is_there("/dev/zero")) return test::say_not_run("there is no /dev/zero here");
  Diagnostics problems;
  CHECK_FALSE(read_text_file("/dev/zero", problems));
  CHECK(problems.text() ==
        "/dev/zero: error: there is a byte 0 in it: this is no text\n        is it the right file?\n");
}

TEST_CASE("of a text no more is read than it may have", "[document]") {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "text").string();
  std::ofstream(file) << std::string(100'000, 'x');
  Diagnostics problems;
  CHECK(read_text_file(file, 100'000, problems)->size() == 100'000);
  CHECK(problems.empty());
  CHECK_FALSE(read_text_file(file, 99'999, problems));
  CHECK(problems.text().find("text: error: too large") != std::string::npos);
}

TEST_CASE("what is written reads back the same", "[document]") {
  Diagnostics problems;
  const std::string text = "a: 1\nb: \"007\"\nc: [x, {y: ~}]\nd: \"two\\nlines\"\n";
  const Value value = parse_document("a.yaml", text, problems);
  const Value again = parse_document("b.yaml", to_yaml(value), problems);
  CHECK(to_yaml(again) == to_yaml(value));
  CHECK(again.find("b")->text == "007");
  CHECK(again.find("d")->text == "two\nlines");
  CHECK(problems.empty());
}

TEST_CASE("a dotted path reaches into maps and lists and makes what is missing", "[document]") {
  Diagnostics problems;
  Value root = parse_document("a.yaml", "data: {steps: 5}\nplans: [static]\n", problems);
  CHECK(set_path(root, "data.context", Value::scalar("1Mi"), problems));
  CHECK(set_path(root, "plans.1", Value::scalar("hdp-naive"), problems));
  CHECK(root.find("data")->find("context")->text == "1Mi");
  CHECK(root.find("plans")->items[1].text == "hdp-naive");
  CHECK_FALSE(set_path(root, "data.steps.x", Value::scalar("1"), problems));
  CHECK_FALSE(problems.empty());
}

TEST_CASE("a dotted path has no more steps than a document has levels", "[document]") {
  const auto path_of = [](int steps) {
    std::string path = "a";
    for (int i = 1; i < steps; ++i) path += ".a";
    return path;
  };
  Value root = Value::map();
  Diagnostics problems;
  CHECK(set_path(root, path_of(deepest_level), Value::scalar("1"), problems));
  CHECK(problems.empty());
  CHECK_FALSE(set_path(root, path_of(1'000'000), Value::scalar("1"), problems));
  CHECK_THAT(problems.text(), Catch::Contains("nested too deeply"));
}

TEST_CASE("a reader tells all that is wrong with a map in one go", "[reader]") {
  Diagnostics problems;
  const Value value = parse_document("m.yaml", "steps: many\nrate: 5\nsed: 1\nshare: 1.5\n", problems);
  MapReader reader(value, "the data", problems);
  CHECK_FALSE(reader.required<std::int64_t>("steps"));
  CHECK_FALSE(reader.optional<Bandwidth>("rate"));
  CHECK_FALSE(reader.optional_in<double>("share", {0, 1}));
  CHECK_FALSE(reader.required<std::string>("name"));
  CHECK(reader.optional<std::int64_t>("seed", 7) == 7);
  reader.finish();
  CHECK(problems.text() ==
        "m.yaml:1:1: error: the data needs 'name'\n"
        "    1 | steps: many\n"
        "        ^\n"
        "m.yaml:1:8: error: \"many\" is not a whole number\n"
        "    1 | steps: many\n"
        "               ^ write a whole number such as 4096, 256Ki (x 1024) or 32k (x 1000)\n"
        "m.yaml:2:7: error: \"5\" has no unit\n"
        "    2 | rate: 5\n"
        "              ^ did you mean 5 GB/s (bytes) or 5 Gbit/s (bits)?\n"
        "m.yaml:3:1: error: the data has no key 'sed'\n"
        "    3 | sed: 1\n"
        "        ^ did you mean 'seed'?\n"
        "m.yaml:4:8: error: 'share' is 1.5, it must be from 0 to 1\n"
        "    4 | share: 1.5\n"
        "               ^\n");
}

TEST_CASE("a missing file is the user's problem, and so is a folder in its place", "[document]") {
  Diagnostics problems;
  (void)load_document("/no/such/file.yaml", problems);
  CHECK(problems.text() == "/no/such/file.yaml: error: there is no such file\n");
  Diagnostics of_folder;
  (void)load_document("/", of_folder);
  CHECK(of_folder.text() == "/: error: this is a folder, not a file\n        name a file in it\n");
}

}  // namespace
}  // namespace hdpsim
