#include <algorithm>

#include "sim/document/values.h"
#include "sim/study/study_keys.h"
#include "sim/study/study_notes.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::StudyFile;

// What a study states at a path of two steps.
std::string stated(const Value& study, const std::string& path) {
  const auto dot = path.find('.');
  const Value* section = study.find(path.substr(0, dot));
  const Value* value = section == nullptr ? nullptr : section->find(path.substr(dot + 1));
  return value == nullptr ? "" : line_of(*value);
}

std::vector<std::string> notes_of_moves(const Study& study) {
  std::vector<std::string> notes = study_notes(study);
  std::erase_if(notes, [](const std::string& note) { return note.find("keys have moved") == std::string::npos; });
  return notes;
}

TEST_CASE("every key that has moved is read where older studies state it, and said once with its place of today",
          "[study][moved]") {
  std::size_t moved = 0;
  for (const StudyKey& each : all_study_keys()) {
    const std::string former(each.key->notes.formerly);
    if (former.empty()) continue;
    CAPTURE(former);
    ++moved;
    const std::string name = former.substr(former.find('.') + 1);
    const std::string section = former.substr(0, former.find('.'));
    const std::string text = section == "mesh"
                                 ? changed(good_study, "{tp: 2}", "{tp: 2, " + name + ": " + each.key->fallback + "}")
                                 : std::string(good_study) + section + ": {" + name + ": " + each.key->fallback + "}\n";
    const Study study = StudyFile(text).load();
    CHECK(stated(study.resolved, each.path) == each.key->fallback);
    CHECK(stated(study.resolved, former).empty());
    CHECK(notes_of_moves(study) ==
          std::vector<std::string>{"note: good: keys have moved: " + former + " is " + each.path});
  }
  CHECK(moved > 10);
  CHECK(notes_of_moves(StudyFile(good_study).load()).empty());
}

TEST_CASE("a key that is stated at both of its places is refused with both", "[study][moved]") {
  const StudyFile file(changed(good_study, "{tp: 2}", "{tp: 2, recompute: full}\ntraining: {recompute: none}"));
  const auto problems = file.problems();
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::StartsWith("10:26: 'mesh.recompute' is what 'training.recompute' was called") &&
                              Catch::EndsWith(":11:23"));
}

TEST_CASE("the sweep, overrides and other jobs of a study may name the places of older ones, too", "[study][moved]") {
  const StudyFile file(good_study);
  const auto recomputes = [&](const std::vector<std::string>& overrides) {
    std::vector<Recompute> all;
    for (const StudyPoint& point : file.load(overrides).points) all.push_back(point.spec.recipe.recompute);
    return all;
  };
  using Recomputes = std::vector<Recompute>;
  CHECK(recomputes({"mesh.recompute=full"}) == Recomputes{Recompute::full});
  CHECK(recomputes({"mesh={tp: 2, recompute: full}"}) == Recomputes{Recompute::full});
  CHECK(recomputes({"sweep.mesh.recompute=[none, full]"}) == Recomputes{Recompute::none, Recompute::full});
  CHECK(recomputes({"sweep={mesh.recompute: [none, full]}", "mesh.recompute=selective"}) ==
        Recomputes{Recompute::selective});
  CHECK(recomputes({"sweep=[{label: a}, {label: b, set: {mesh: {tp: 2, recompute: full}}}]"}) ==
        Recomputes{Recompute::none, Recompute::full});
  const Study shared =
      file.load({"mesh.nodes=0-1", "background=[{name: other, nodes: 2-3, plan: static, mesh: {recompute: full}}]"});
  CHECK(shared.points.at(0).spec.recipe.recompute == Recompute::none);
  CHECK(shared.points.at(0).neighbours.at(0).lowering.recipe.recompute == Recompute::full);
}

}  // namespace
}  // namespace hdpsim
