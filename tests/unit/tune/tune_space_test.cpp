#include "sim/tune/tune_space.h"

#include <algorithm>
#include <set>

#include "sim/document/values.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

std::vector<Candidate> candidates(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const test::StudyFile file(text);
  Diagnostics none;
  return candidates_of(file.load(overrides), load_document(file.path(), none));
}

std::set<std::string> values_of(const std::vector<Candidate>& candidates, const std::string& section,
                                const std::string& key) {
  std::set<std::string> values;
  for (const Candidate& candidate : candidates) {
    const Value* value = candidate.study.find(section)->find(key);
    if (value != nullptr) values.insert(line_of(*value));
  }
  return values;
}

TEST_CASE("the space that nobody gave follows from the cluster and the model", "[tune]") {
  const auto all = candidates(test::good_study);
  CHECK(values_of(all, "mesh", "tp") == std::set<std::string>{"1", "2", "4", "8"});        // of 8 GPUs and 32 heads
  CHECK(values_of(all, "mesh", "pp") == std::set<std::string>{"1", "2", "4", "8", "16"});  // of 32 layers and GPUs
  // How a pipeline runs is tried near the best alone.
  CHECK(values_of(all, "mesh", "schedule").empty());
  CHECK(values_of(all, "mesh", "placement").empty());
  CHECK(values_of(all, "mesh", "capacity") == std::set<std::string>{"8Ki", "16Ki", "32Ki", "auto"});
  CHECK(values_of(all, "training", "recompute") == std::set<std::string>{"none", "[norm, activation]", "full"});
  // Four tp, five pp, four capacities, three recomputations; static, and hdp-naive with and without offload.
  CHECK(all.size() == 4 * 5 * 4 * 3 * 3);
}

TEST_CASE("all candidates differ in their texts and in their studies", "[tune]") {
  std::set<std::string> texts;
  std::set<std::string> studies;
  const auto all = candidates(test::good_study);
  for (const Candidate& candidate : all) {
    texts.insert(candidate.text);
    studies.insert(to_yaml(candidate.study));
  }
  CHECK(texts.size() == all.size());
  CHECK(studies.size() == all.size());
}

TEST_CASE("a space that is given is taken as it is", "[tune]") {
  const std::string text = std::string(test::good_study) +
                           "tune:\n  space:\n    mesh.tp: [2, 4]\n    mesh.pp: [1]\n    mesh.capacity: [8Ki]\n"
                           "    training.recompute: [none]\n    plans: [static, hdp-balance: {delta: 0.1}]\n";
  const auto all = candidates(text);
  REQUIRE(all.size() == 4);
  CHECK(all[0].text == "tp 2, static");
  CHECK(all[3].text == "tp 4, hdp-balance {delta: 0.1}");
  CHECK(all[0].study.find("tune") == nullptr);
}

TEST_CASE("what is wrong with a tuning is told with the study's other problems", "[tune]") {
  const test::StudyFile file(std::string(test::good_study) +
                             "tune:\n  space: {data.context: [1Ki], mesh.tp: 2, mesh.pp: []}\n  price: 2 USD\n"
                             "  objective: speed\n  keep: 0\n  kept: 1\n"
                             "replay: {window: 0, threshold: x}\n");
  CHECK(file.problems() ==
        test::Problems{
            "13:11: 'data.context' cannot be tuned", "13:41: the values of 'mesh.tp' must be a list that is not empty",
            "13:53: the values of 'mesh.pp' must be a list that is not empty",
            "14:10: \"2 USD\" is not a positive amount of money a GPU-hour", "15:14: there is no objective 'speed'",
            "16:9: 'keep' is 0, it must be from 1 to 1000", "17:3: the tuning has no key 'kept'",
            "18:18: 'window' is 0, it must be from 1 to 1e+06", "18:32: \"x\" is not a number"});
}

TEST_CASE("a study with a sweep has no space of its own", "[tune]") {
  CHECK_THROWS_WITH(candidates(std::string(test::good_study) + "sweep: {data.seed: [1, 2]}\n"),
                    Catch::Contains("a study with a sweep cannot be tuned"));
}

}  // namespace
}  // namespace hdpsim
