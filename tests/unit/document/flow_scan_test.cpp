#include "sim/document/impl/flow_scan.h"

#include <string>

#include "sim/document/document.h"
#include "sim/document/limits.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr std::size_t many = 100'000;

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST_CASE("a text is parsed up to the bracket that nests too deeply, however many follow", "[document]") {
  for (const std::string before : {"", "a: ", "- ", "- - ", "? ", "a:\n  - b: ", "a: &x ", "a: !t ", "\"a\": ",
                                   "'it''s': ", "# it's\na: ", "a: it's\nb: ", "a: \"\\\"\"\nb: ", "a: |\n  [[ \"\nb: ",
                                   "a: |2\n   text\n\n  [\nb: ", "- a: >\n    'x\n  b: ", "a: x # [\nb: "}) {
    for (const std::string bracket : {"[", "{", "[{", "{a: ", "{\"a\":", "[[],", "[\"]\",", "[ # ]\n", "[']',"}) {
      CAPTURE(before, bracket);
      const std::string text = before + repeated(bracket, many);
      CHECK(bytes_to_parse(text) <= before.size() + bracket.size() * (deepest_level + 2));
      Diagnostics problems;
      (void)parse_document("deep.yaml", text, problems);
      REQUIRE(problems.sorted().size() == 1);
      CHECK(problems.sorted()[0].message == "nested too deeply");
    }
  }
}

TEST_CASE("a text is parsed up to the value that is one too many", "[document]") {
  // A text of so many items of so many values each, a little more than are allowed.
  const auto check_end = [](const std::string& before, const std::string& item, std::size_t values) {
    CAPTURE(before, item);
    const std::size_t allowed = most_values / values;
    const std::string text = before + repeated(item, allowed + allowed / 10);
    CHECK(bytes_to_parse(text) <= before.size() + item.size() * (allowed + 2));
    Diagnostics problems;
    (void)parse_document("long.yaml", text, problems);
    REQUIRE(problems.sorted().size() == 1);
    CHECK(problems.sorted()[0].message == "too many values in one document");
  };
  check_end("a: [", "1,", 1);
  check_end("a:\n", "- 1\n", 1);
  check_end("", "a: 1\n", 2);
}

TEST_CASE("brackets that open nothing count for nothing", "[document]") {
  const std::string brackets(many, '[');
  for (const std::string& text :
       {"a: '" + brackets + "'\n", "a: \"" + brackets + "\"\n", "# " + brackets + "\n", "a: x" + brackets + "\n",
        "a: |\n  " + brackets + "\nb: 1\n", "- a: >-\n    " + brackets + "\n  b: 1\n", repeated("a[: 1\n", 1),
        "a: [" + repeated("[1],", 1000) + "2]\n", "a: [\"" + brackets + "\", '" + brackets + "']\n"}) {
    CAPTURE(text.substr(0, 20));
    CHECK(bytes_to_parse(text) == text.size());
    Diagnostics problems;
    (void)parse_document("shallow.yaml", text, problems);
    CHECK(problems.empty());
  }
}

TEST_CASE("a text that was taken for nested is read as what it is", "[document]") {
  // The second line goes on with the text of the first: its brackets are characters.
  const std::string text = "a: some text\n  " + std::string(many, '[') + "\nb: 1\n";
  REQUIRE(bytes_to_parse(text) < text.size());
  Diagnostics problems;
  const Value value = parse_document("text.yaml", text, problems);
  CHECK(problems.empty());
  CHECK(value.find("b")->text == "1");
}

}  // namespace
}  // namespace hdpsim
