#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

const std::string shipped = HDPSIM_SOURCE_DIR "/calib/profiles";

const KeyText* declared(const std::vector<KeyText>& keys, const std::string& name) {
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const KeyText& each) { return each.name == name; });
  return key == keys.end() ? nullptr : &*key;
}

// Adds the paths of a file that are not declared.
void find_undeclared(const Value& value, const KeyShape& shape, const std::string& path,
                     std::vector<std::string>& found) {
  if (value.is_sequence() && shape.kind == KeyShape::Kind::list) {
    for (const Value& item : value.items) find_undeclared(item, shape.parts.at(0), path + "[]", found);
  }
  for (const Value::Entry& entry : value.entries) {
    const KeyText* key = declared(shape.keys, entry.key);
    if (key == nullptr) {
      found.push_back(path + "." + entry.key);
    } else {
      find_undeclared(entry.value, key->shape, path + "." + entry.key, found);
    }
  }
}

std::vector<std::string> required(const std::vector<KeyText>& keys) {
  std::vector<std::string> names;
  for (const KeyText& key : keys) {
    if (key.notes.required) names.push_back(key.name);
  }
  return names;
}

TEST_CASE("every field that profiles are written with is declared", "[profile]") {
  const KeyShape whole = map_shape(profile_keys());
  for (const std::string& name : profile_names(shipped)) {
    CAPTURE(name);
    Diagnostics problems;
    const auto profile = load_profile(name, shipped, {}, problems);
    REQUIRE(profile);
    std::vector<std::string> undeclared;
    find_undeclared(parse_document(name, profile_text(*profile), problems), whole, "", undeclared);
    CHECK(undeclared == std::vector<std::string>{});
  }
}

TEST_CASE("a field is required if no profile can be without it", "[profile]") {
  const std::vector<KeyText> keys = profile_keys();
  // Only a profile that is not measured must have overheads; samples and fits only a measured one can have.
  CHECK(required(keys) == std::vector<std::string>{"schema", "provenance", "datasheet"});
  const KeyShape& curve = declared(keys, "attention")->shape.parts.at(0);
  // A curve has samples or packed samples.
  CHECK(required(curve.keys) == std::vector<std::string>{"mask", "direction", "head_dim", "heads", "tile", "launch"});
  // A sample states its time or its rate.
  CHECK(required(declared(curve.keys, "samples")->shape.parts.at(0).keys) ==
        std::vector<std::string>{"queries", "keys"});
  const KeyShape& fit = declared(declared(keys, "fits")->shape.keys, "messages")->shape.parts.at(0);
  CHECK(declared(fit.keys, "curve") != nullptr);
  CHECK_FALSE(declared(fit.keys, "lines")->notes.required);  // or a curve in their place
}

// Adds the names of the keys of every map that the schema defines under a name.
void collect_definitions(const KeyShape& shape, std::map<std::string, std::set<std::vector<std::string>>>& found) {
  std::vector<std::string> names;
  for (const KeyText& key : shape.keys) {
    names.push_back(key.name);
    collect_definitions(key.shape, found);
  }
  for (const KeyShape& part : shape.parts) collect_definitions(part, found);
  if (!shape.definition.empty()) found[shape.definition].insert(names);
}

TEST_CASE("a name of the schema stands for one kind of map", "[profile]") {
  std::map<std::string, std::set<std::vector<std::string>>> found;
  collect_definitions(map_shape(profile_keys()), found);
  CHECK(found.contains("collective"));
  for (const auto& [name, kinds] : found) {
    CAPTURE(name);
    CHECK(kinds.size() == 1);
  }
}

TEST_CASE("a declared field has the range in which it is read", "[profile]") {
  const std::vector<KeyText> keys = profile_keys();
  const KeyShape& tile = declared(declared(keys, "attention")->shape.parts.at(0).keys, "tile")->shape;
  CHECK(tile.keys.at(0).shape.range->most == 65536);
  CHECK(declared(declared(keys, "datasheet")->shape.keys, "peak")->shape.kind == KeyShape::Kind::flop_rate);
}

}  // namespace
}  // namespace hdpsim
