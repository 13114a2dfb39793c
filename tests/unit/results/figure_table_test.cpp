#include "sim/results/figure_table.h"

#include <optional>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

struct Engine {
  double power = 0;
  std::int64_t cylinders = 0;
};
struct Car {
  std::string name;
  Duration age;
  std::optional<Bytes> memory;
  std::optional<Engine> engine;
};

FigureTable<Engine> engine_figures() {
  FigureTable<Engine> engine;
  engine.add({"power", "power", "kW", "power"}, at(&Engine::power));
  engine.add({"", "cylinders", "", "number of cylinders"}, at(&Engine::cylinders));
  return engine;
}

FigureTable<Car> car_figures(Missing missing) {
  FigureTable<Car> cars;
  cars.add({"name", "name", "", "its name"}, at(&Car::name));
  cars.add({"age_s", "facts.age_s", "", "its age"}, at(&Car::age));
  cars.add({"memory_gb", "facts.memory_gb", "", "its memory"}, at(&Car::memory));
  cars.part({"engine_{}", "{} of its engine", "engine", "", "What drives it"}, engine_figures(), at(&Car::engine),
            missing);
  return cars;
}

std::string csv_of(const FigureTable<Car>& figures, const std::vector<Car>& cars) {
  return csv_text([&](TableSink& sink) {
    const auto columns = figures.columns_of(cars);
    figures.write_names(columns, sink);
    sink.end_row();
    for (const Car& car : cars) {
      figures.write_cells(car, columns, sink);
      sink.end_row();
    }
  });
}

const Car old_car{"old", 5_s, Bytes(2'000'000'000), Engine{75, 4}};
const Car cart{"cart", 1_s, std::nullopt, std::nullopt};

TEST_CASE("a declared figure is a column and a place in JSON, in the unit of its type", "[figures]") {
  const auto figures = car_figures(Missing::null);
  CHECK(csv_of(figures, {old_car, cart}) == "name,age_s,memory_gb,engine_power\nold,5,2,75\ncart,1,,\n");
  CHECK(figures.json(old_car).dump() ==
        R"({"name":"old","facts":{"age_s":5.0,"memory_gb":2.0},"engine":{"power":75.0,"cylinders":4}})");
  CHECK(figures.json(cart).dump() == R"({"name":"cart","facts":{"age_s":1.0,"memory_gb":null},"engine":null})");
  const std::vector<FigureText> texts = figures.texts();
  REQUIRE(texts.size() == 5);
  CHECK(texts[1].unit == "s");
  CHECK(texts[2].unit == "GB");
  CHECK(texts[3].path == "engine.power");
  CHECK(texts[3].sentence == "power of its engine");
}

TEST_CASE("a part that is left out has columns only where a row of the table has it", "[figures]") {
  const auto figures = car_figures(Missing::left_out);
  CHECK(csv_of(figures, {cart}) == "name,age_s,memory_gb\ncart,1,\n");
  CHECK(csv_of(figures, {cart, old_car}) == "name,age_s,memory_gb,engine_power\ncart,1,,\nold,5,2,75\n");
  CHECK_FALSE(figures.json(cart).contains("engine"));
}

TEST_CASE("a part that is blank has empty cells in any table, and no place in JSON", "[figures]") {
  FigureTable<Car> figures;
  figures.add({"name", "name", "", "its name"}, at(&Car::name));
  figures.part({}, engine_figures(), at(&Car::engine), Missing::blank);
  CHECK(csv_of(figures, {cart}) == "name,power\ncart,\n");
  CHECK(figures.json(cart).dump() == R"({"name":"cart"})");
  CHECK(figures.json(old_car).dump() == R"({"name":"old","power":75.0,"cylinders":4})");
  CHECK(figures.schema()["required"].dump() == R"(["name"])");
  CHECK(figures.names_unless_blank() == std::vector<std::string>{"power", "cylinders"});
}

TEST_CASE("a figure may be in the JSON of some rows alone, and JSON may have an order of its own", "[figures]") {
  FigureTable<Car> figures;
  figures.add({"name", "name", "", "its name"}, at(&Car::name), {},
              [](const Car& car) { return car.engine.has_value(); });
  figures.add({"age_s", "age_s", "", "its age"}, at(&Car::age));
  figures.add({"memory_gb", "memory_gb", "", "its memory"}, at(&Car::memory));
  figures.order_json({"memory_gb", "name"});
  CHECK(csv_of(figures, {cart, old_car}) == "name,age_s,memory_gb\ncart,1,\nold,5,2\n");
  CHECK(figures.json(cart).dump() == R"({"memory_gb":null,"age_s":1.0})");
  CHECK(figures.json(old_car).dump() == R"({"memory_gb":2.0,"name":"old","age_s":5.0})");
  CHECK(figures.schema()["required"].dump() == R"(["age_s","memory_gb"])");
}

TEST_CASE("the schema of a row requires what every row has and allows nothing else", "[figures]") {
  const Json schema = car_figures(Missing::left_out).schema();
  CHECK(schema["required"].dump() == R"(["name","facts"])");
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["properties"]["facts"]["required"].dump() == R"(["age_s","memory_gb"])");
  CHECK(schema["properties"]["facts"]["properties"]["memory_gb"]["type"].dump() == R"(["number","null"])");
  CHECK(schema["properties"]["engine"]["description"] == "What drives it");
  CHECK(schema["properties"]["engine"]["properties"]["cylinders"]["type"] == "integer");
  const Json nullable = car_figures(Missing::null).schema();
  CHECK(nullable["required"].dump() == R"(["name","facts","engine"])");
  CHECK(nullable["properties"]["engine"]["type"].dump() == R"(["object","null"])");
}

TEST_CASE("a list of a row is an array of the figures of its items", "[figures]") {
  struct Garage {
    std::vector<Engine> engines;
  };
  FigureTable<Garage> garages;
  garages.list({"", "engines", "", "spare engines"}, engine_figures(), at(&Garage::engines));
  CHECK(garages.json({{Engine{75, 4}}}).dump() == R"({"engines":[{"power":75.0,"cylinders":4}]})");
  CHECK(garages.texts().back().path == "engines[].cylinders");
  CHECK(garages.schema()["properties"]["engines"]["items"]["required"].dump() == R"(["power","cylinders"])");
}

}  // namespace
}  // namespace hdpsim
