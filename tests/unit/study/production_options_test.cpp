#include "sim/study/production_options.h"

#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

const std::string study = std::string(test::good_study) + "production:\n";

TEST_CASE("a production run is read with its units, and keeps defaults of what is left out", "[production]") {
  const test::StudyFile file(study +
                             "  time: 24 h\n"
                             "  stragglers: {device_mtbf: 2 years, slowdown: {from: 1.2, to: 4},\n"
                             "               duration: {from: 1 min, to: 10 h}, answer: replan, batches: 2}\n");
  const Study read = file.load();
  REQUIRE(read.production.has_value());
  CHECK(read.production->time_s == 24 * 3600);
  const Stragglers& stragglers = read.production->stragglers.value();
  CHECK(stragglers.device_mtbf_s == 2 * 365 * 86400.0);
  CHECK(stragglers.slowdown.to == 4);
  CHECK(stragglers.duration_s.from == 60);
  CHECK(stragglers.answer == StragglerAnswer::replan);
  CHECK(stragglers.batches == 2);
  CHECK(stragglers.detect == Stragglers().detect);
  CHECK_FALSE(test::StudyFile(test::good_study).load().production.has_value());
}

TEST_CASE("all problems of a production run are reported at once, each at its place", "[production]") {
  const test::StudyFile file(study +
                             "  time: 0 s\n"
                             "  stragglers:\n"
                             "    device_mtbf: never\n"
                             "    slowdown: {from: 0.5, to: 2}\n"
                             "    duration: {from: 2 h, to: 1 h}\n"
                             "    answer: restart\n"
                             "    batches: 0\n"
                             "    threshold: 0.9\n");
  const std::vector<std::string> problems = file.problems();
  REQUIRE(problems.size() == 7);
  CHECK(problems[0] == "13:9: 'time' is 0 s, it must be from 1 us to 1000 years");
  CHECK(problems[1].starts_with("15:18: "));
  CHECK(problems[2].starts_with("16:22: "));
  CHECK(problems[3] == "17:31: duration ends below where it begins");
  CHECK(problems[4].starts_with("18:13: "));
  CHECK(problems[5].starts_with("19:14: "));
  CHECK(problems[6].starts_with("20:16: "));
}

TEST_CASE("a study without stragglers is one that has never had them", "[production]") {
  const test::StudyFile file(study +
                             "  time: 24 h\n"
                             "  stragglers: {device_mtbf: 2 years, slowdown: {from: 1.2, to: 4},\n"
                             "               duration: {from: 1 min, to: 10 h}}\n");
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const Study without = load_study(file.path(), {}, catalog, {"stragglers"});
  REQUIRE(without.production.has_value());
  CHECK_FALSE(without.production->stragglers.has_value());
}

}  // namespace
}  // namespace hdpsim
