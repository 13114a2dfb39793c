#include "sim/study/study_options.h"

#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::Problems;
using test::StudyFile;

// The good study has 16 HDP ranks and 2 steps; its output is line 12.
OutputOptions output_of(const std::string& output) {
  return StudyFile(test::good_study + ("output: " + output + "\n")).load().output;
}
Problems problems_with_output(const std::string& output) {
  return StudyFile(test::good_study + ("output: " + output + "\n")).problems();
}

TEST_CASE("a study that asks for nothing gets its figures alone", "[output]") {
  const OutputOptions none = StudyFile(test::good_study).load().output;
  CHECK(none.html);
  CHECK_FALSE(none.perfetto);
  CHECK_FALSE(output_of("{html: false, perfetto: false}").perfetto);
  CHECK_FALSE(output_of("{html: false, perfetto: false}").html);
}

TEST_CASE("a page and a timeline of the first ranks are asked for with a word each", "[output]") {
  const OutputOptions output = output_of("{html: true, perfetto: true}");
  CHECK(output.html);
  REQUIRE(output.perfetto);
  CHECK(output.perfetto->ranks.size() == 8);
  CHECK(output.perfetto->ranks.back() == HdpRank(7));
  CHECK(output.perfetto->step == 0);
  CHECK(output.perfetto->to == Duration::max());
}

TEST_CASE("a timeline shows so many ranks, or those that are named, of one step between two times", "[output]") {
  CHECK(output_of("{perfetto: {ranks: 3}}").perfetto->ranks.size() == 3);
  CHECK(output_of("{perfetto: {ranks: 64}}").perfetto->ranks.size() == 16);  // there are no more
  const auto chosen = output_of("{perfetto: {ranks: [9, 2], step: 1, from: 10 ms, to: 2 s}}").perfetto;
  REQUIRE(chosen);
  CHECK(chosen->ranks == std::vector{HdpRank(9), HdpRank(2)});
  CHECK(chosen->step == 1);
  CHECK(chosen->from == 10_ms);
  CHECK(chosen->to == 2_s);
}

TEST_CASE("ranks, steps and times that the study does not have are told, all at once", "[output]") {
  CHECK(problems_with_output("{perfetto: {ranks: [0, 16, 0], step: 2, from: 2 s, to: 1 s}, htm: true}") ==
        Problems{"12:20: the timeline ends before it begins", "12:32: there is no rank 16 at every point of the study",
                 "12:36: rank 0 is stated a second time here", "12:46: 'step' is 2, it must be from 0 to 1",
                 "12:70: the output has no key 'htm'"});
  CHECK(problems_with_output("{html: 1, perfetto: {ranks: 0}}").size() == 2);
  CHECK(problems_with_output("{perfetto: {ranks: []}}") == Problems{"12:28: a timeline shows 1 to 256 ranks"});
  CHECK(problems_with_output("yes").size() == 1);
}

TEST_CASE("pages and timelines of pipelines are written too", "[output]") {
  StudyFile study(test::good_study + std::string("output: {html: true, perfetto: true}\n"));
  CHECK(study.load({"mesh.pp=2"}).output.html);
}

TEST_CASE("what is written does not change what is simulated", "[output]") {
  const std::string plain = StudyFile(test::good_study).load().points[0].identity;
  const std::string shown =
      StudyFile(test::good_study + std::string("output: {html: true, perfetto: true}\n")).load().points[0].identity;
  CHECK(plain == shown);
}

}  // namespace
}  // namespace hdpsim
