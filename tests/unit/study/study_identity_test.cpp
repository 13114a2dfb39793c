#include "sim/study/study_keys.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// A study that says so much of one key and nothing else.
Value stating(const std::string& path, const std::string& text) {
  Value study = Value::map();
  Diagnostics problems;
  REQUIRE(set_path(study, path, Value::scalar(text), problems));
  return study;
}

TEST_CASE("every declared key of what a point simulates is part of its identity", "[identity]") {
  std::size_t keys = 0;
  for (const StudyKey& each : all_study_keys()) {
    CAPTURE(each.path);
    const bool is_same = identity_text(stating(each.path, "one way")) == identity_text(stating(each.path, "another"));
    CHECK(is_same == belongs_to_whole_study(each.path.substr(0, each.path.find('.'))));
    if (!is_same) ++keys;
  }
  CHECK(keys > 80);
}

TEST_CASE("every declared key of a section that decides the world is part of what points must share for one",
          "[identity]") {
  for (const StudySection& section : study_sections()) {
    for (const StudyKey& each : all_study_keys()) {
      if (each.path != section.text.name && !each.path.starts_with(section.text.name + '.')) continue;
      CAPTURE(each.path);
      const bool is_same = world_text(stating(each.path, "one way")) == world_text(stating(each.path, "another"));
      CHECK(is_same == (section.decides != Decides::world));
    }
  }
}

TEST_CASE("the order of keys, how numbers are written, and a background of no jobs change no identity", "[identity]") {
  Diagnostics problems;
  const auto identity = [&](const std::string& text) {
    return identity_text(parse_document("study.yaml", text, problems));
  };
  CHECK(identity("{grain: exact, mesh: {tp: 2, pp: 1}}") == identity("{mesh: {pp: 1, tp: 2}, grain: exact, name: x}"));
  CHECK(identity("{data: {context: 2Ki}}") == identity("{data: {context: 2048}}"));
  CHECK(identity("{data: {context: 2Ki}}") != identity("{data: {context: 2047}}"));
  CHECK(identity("{grain: exact, background: []}") == identity("{grain: exact}"));
}

}  // namespace
}  // namespace hdpsim
