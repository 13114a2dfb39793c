#include "sim/document/key_table.h"

#include "sim/document/key_schema.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

enum class Fuel { wood, coal };

struct Stove {
  std::int64_t logs = 8192;
  bool lit = false;
  Fuel fuel = Fuel::coal;
  double draught = 0.5;
  Duration burns = 2_s;
  std::optional<std::int64_t> doors;
};

KeyTable<Stove> stove_keys() {
  KeyTable<Stove> stove("the stove");
  stove.count("logs", {1, 1 << 20}, at(&Stove::logs), "how much it holds", {.unit = "logs"});
  stove.flag("lit", at(&Stove::lit), "whether it burns");
  stove.word("fuel", "fuel", {{"wood", Fuel::wood}, {"coal", Fuel::coal}}, at(&Stove::fuel), "what it burns");
  stove.number("draught", {0, 1}, at(&Stove::draught), "how far it is open");
  stove.quantity("burns", Between<Duration>{0_s, 60_s}, at(&Stove::burns), "how long a log lasts", {.required = true});
  stove.count("doors", {0, 4}, at(&Stove::doors), "how many", {.otherwise = "as built"});
  return stove;
}

struct Reading {
  Stove stove;
  KeyReading keys;
  Diagnostics diagnostics;
};

Reading read_stove(const std::string& text) {
  Reading reading;
  const Value value = parse_document("stove.yaml", text, reading.diagnostics);
  reading.keys = stove_keys().read(value, reading.stove, reading.diagnostics);
  return reading;
}

TEST_CASE("a key that is left out keeps the value that its target is made with", "[keys]") {
  const Reading reading = read_stove("{burns: 3 s, fuel: wood, doors: 2}");
  CHECK(reading.diagnostics.empty());
  CHECK(reading.stove.burns == 3_s);
  CHECK(reading.stove.fuel == Fuel::wood);
  CHECK(reading.stove.doors == 2);
  CHECK(reading.stove.logs == Stove{}.logs);
  CHECK(reading.stove.draught == Stove{}.draught);
  CHECK_FALSE(reading.stove.lit);
}

TEST_CASE("a key that cannot be read is told, keeps its default, and is known to be wrong", "[keys]") {
  const Reading reading = read_stove("{logs: 0, lit: maybe, fuel: woud}");
  const std::vector<Diagnostic> problems = reading.diagnostics.sorted();
  REQUIRE(problems.size() == 4);
  CHECK(problems[0].message == "the stove needs 'burns'");
  CHECK(problems[1].message == "'logs' is 0, it must be from 1 to 1Mi");
  CHECK(problems[2].message == "\"maybe\" is neither true nor false");
  CHECK(problems[3].help == "did you mean 'wood'?");
  CHECK(reading.stove.logs == Stove{}.logs);
  for (const char* key : {"logs", "lit", "fuel", "burns"}) CHECK_FALSE(reading.keys.is_right(key));
  for (const char* key : {"draught", "doors"}) CHECK(reading.keys.is_right(key));
}

TEST_CASE("a key that no declaration has is told with the declared one that is meant", "[keys]") {
  const Reading reading = read_stove("{burns: 1 s, draft: 1, draugt: 1}");
  REQUIRE(reading.diagnostics.sorted().size() == 2);
  CHECK(reading.diagnostics.sorted()[1].help == "did you mean 'draught'?");
}

TEST_CASE("what people are told of a key comes from its declaration and its target", "[keys]") {
  const KeyTable<Stove> table = stove_keys();
  const auto expect = [&](std::size_t key, const std::string& values, const std::string& fallback) {
    CHECK(table.texts().at(key).shape.text() == values);
    CHECK(table.texts().at(key).fallback == fallback);
  };
  expect(0, "logs from 1 to 1Mi", "8Ki");
  expect(1, "true or false", "false");
  expect(2, "`wood` or `coal`", "coal");
  expect(3, "a number from 0 to 1", "0.5");
  expect(4, "a time from 0 s to 60 s", "");  // required
  expect(5, "a whole number from 0 to 4", "");
}

TEST_CASE("the JSON schema of a map has every key with its values, its default and its sentence", "[keys]") {
  KeyTable<Stove> table("the stove");
  table.count("logs", {1, 4}, at(&Stove::logs), "how much");
  table.word("fuel", "fuel", {{"wood", Fuel::wood}, {"coal", Fuel::coal}}, at(&Stove::fuel), "what",
             {.required = true});
  const std::string schema = json_schema("A stove", table.texts());
  CHECK(schema.find(R"(
  "title": "A stove",
  "type": "object",
  "properties": {
    "logs": {
      "description": "how much",
      "$ref": "#/$defs/count",
      "minimum": 1,
      "maximum": 4,
      "default": "8Ki"
    },
    "fuel": {
      "description": "what",
      "enum": [
        "wood",
        "coal"
      ]
    }
  },
  "additionalProperties": false,
  "required": [
    "fuel"
  ],
  "$defs": {
    "count": {)") != std::string::npos);
  CHECK(json_schema("A part of a stove", table.texts(), true).find("required") == std::string::npos);
}

struct Kitchen {
  const Value* stove = nullptr;
};

TEST_CASE("a value that needs other keys first is kept for later, and problems name one of several maps", "[keys]") {
  KeyTable<Kitchen> table("the kitchen");
  table.kept({"stove", map_shape(stove_keys().texts()), "", "what it has", {}}, &Kitchen::stove);
  Diagnostics diagnostics;
  const Value value = parse_document("kitchen.yaml", "stove: {logs: 3, chimney: 1}", diagnostics);
  Kitchen kitchen;
  CHECK(table.read(value, kitchen, diagnostics).is_right("stove"));
  REQUIRE(kitchen.stove == value.find("stove"));
  CHECK(diagnostics.empty());
  Stove stove;
  (void)stove_keys().read(*kitchen.stove, stove, diagnostics, "the stove of the kitchen");
  CHECK(stove.logs == 3);
  const std::vector<Diagnostic> problems = diagnostics.sorted();
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].message == "the stove of the kitchen needs 'burns'");
  CHECK(problems[1].message == "the stove of the kitchen has no key 'chimney'");
}

}  // namespace
}  // namespace hdpsim
