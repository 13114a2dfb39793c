#include "sim/document/json_stream.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "sim/document/json.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

const TakeItem take_none = [](const Value&, std::string_view, const Value&) { return false; };

// Everything that a value holds, with its places.
std::string told(const Value& value) {
  std::string text = fmt::format("{}:{} {} '{}'{}", value.position.line, value.position.column, kind_name(value.kind),
                                 value.text, value.quoted ? " quoted" : "");
  for (const Value& item : value.items) text += fmt::format(" [{}]", told(item));
  for (const auto& entry : value.entries) {
    text += fmt::format(" {{{}:{} {}: {}}}", entry.position.line, entry.position.column, entry.key, told(entry.value));
  }
  return text;
}

TEST_CASE("JSON read item by item is the document that the YAML parser reads, with the same places", "[document]") {
  for (const std::string text : {
           R"({"a": 1, "b": [1, -2.5e3, true, false], "c": {"d": "x", "e": []}})",
           "\n {\n\t\"long key\" : \"with \\\"quotes\\\" and \\\\\" ,\n  \"list\":[\n  [ 1,2 ] ,{ \"k\":3}],\n "
           "\"last\": 7}",
           R"({"empty": {}, "texts": ["", "1", "null"], "n": 12345678901234567890})",
           R"({})",
       }) {
    INFO(text);
    Diagnostics diagnostics;
    const auto streamed = parse_json("x", text, take_none, diagnostics);
    REQUIRE(streamed);
    CHECK(told(*streamed) == told(parse_document("x", text, diagnostics)));
    CHECK(diagnostics.empty());
  }
}

TEST_CASE("items of lists on the outermost level can be taken, with what stands before them", "[document]") {
  Diagnostics diagnostics;
  std::vector<std::string> taken;
  const auto rest = parse_json(
      "x", R"({"n": 3, "a": [1, [2, 3]], "b": [4], "c": {"d": [5]}})",
      [&](const Value& so_far, std::string_view key, const Value& item) {
        taken.push_back(fmt::format("{} of {} after {} entries", told(item), key, so_far.entries.size()));
        return key == "a";
      },
      diagnostics);
  REQUIRE(rest);
  CHECK(taken == std::vector<std::string>{"1:16 a value '1' of a after 1 entries",
                                          "1:19 a list '' [1:20 a value '2'] [1:23 a value '3'] of a after 1 entries",
                                          "1:34 a value '4' of b after 2 entries"});
  CHECK(rest->find("a")->items.empty());
  CHECK(rest->find("b")->items.size() == 1);
  CHECK(rest->find("c")->find("d")->items.size() == 1);
}

TEST_CASE("400,000 values may be left; those taken do not count", "[document]") {
  std::string text = R"({"numbers": [0)";
  for (int i = 1; i < 400'100; ++i) text += ",0";
  text += "]}";
  Diagnostics diagnostics;
  int taken = 0;
  const TakeItem take = [&](const Value&, std::string_view, const Value&) { return ++taken > 0; };
  CHECK(parse_json("x", text, take, diagnostics));
  CHECK(diagnostics.empty());
  CHECK(taken == 400'100);
  CHECK(parse_json("x", text, take_none, diagnostics));
  CHECK(diagnostics.text().find("too many values in one document") != std::string::npos);
}

TEST_CASE("levels are limited", "[document]") {
  const auto nested = [](std::size_t lists) {
    return R"({"a": )" + std::string(lists, '[') + std::string(lists, ']') + "}";
  };
  Diagnostics diagnostics;
  CHECK(parse_json("x", nested(64), take_none, diagnostics));
  CHECK(diagnostics.empty());
  CHECK(parse_json("x", nested(65), take_none, diagnostics));
  CHECK(diagnostics.text().find("x:1:71: error: nested too deeply") == 0);
}

TEST_CASE("brackets of a JSON text are counted before a tree is made of them", "[document]") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK(parsed_json(nested(64)).is_array());
  CHECK(parsed_json(nested(65)).is_discarded());
  CHECK(parsed_json(std::string(10'000'000, '[')).is_discarded());
  CHECK_FALSE(is_nested_too_deeply("[\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\", []]"));
  CHECK(is_nested_too_deeply("[\"]\\\\\", " + nested(64) + "]"));
  std::string side_by_side;
  for (int i = 0; i < 1000; ++i) side_by_side += "[{}],";
  CHECK_FALSE(is_nested_too_deeply("[" + side_by_side + "[]]"));
}

TEST_CASE("a value may have 16 MiB, and no more is read of a longer one", "[document]") {
  const auto problems_of = [](std::size_t letters) {
    Diagnostics diagnostics;
    (void)parse_json("x", "{\n\"a\": \"" + std::string(letters, 'x') + "\"}", take_none, diagnostics);
    return diagnostics.text();
  };
  constexpr std::size_t most = std::size_t{16} << 20;
  constexpr std::size_t around = 4;  // the colon, the blank and the quotes
  CHECK(problems_of(most - around).empty());
  CHECK(problems_of(most - around + 1).find("x:2:4: error: a value is longer than 16 MiB") == 0);
}

TEST_CASE("a key that stands twice is told", "[document]") {
  Diagnostics diagnostics;
  CHECK(parse_json("x", R"({"a": 1, "a": 2})", take_none, diagnostics)->entries.size() == 1);
  CHECK(diagnostics.text() ==
        "x:1:10: error: the key 'a' is stated a second time here\n"
        "    1 | {\"a\": 1, \"a\": 2}\n"
        "                 ^ remove one of them\n");
}

TEST_CASE("what is no JSON is left to others, unless it is too large for them", "[document]") {
  Diagnostics diagnostics;
  CHECK_FALSE(parse_json("x", "a: 1", take_none, diagnostics));
  CHECK_FALSE(parse_json("x", "{a: 1}", take_none, diagnostics));
  CHECK_FALSE(parse_json("x", R"({"a": [1, 2)", take_none, diagnostics));
  CHECK_FALSE(parse_json("x", "", take_none, diagnostics));
  CHECK(diagnostics.empty());
  const std::string large = "{\n\"a\": \"" + std::string(2'000'000, 'x') + "\",\n  ]";
  CHECK(parse_json("x", large, take_none, diagnostics));
  CHECK(diagnostics.text().find("x:3:4: error: this is no JSON from here on") == 0);
}

}  // namespace
}  // namespace hdpsim
