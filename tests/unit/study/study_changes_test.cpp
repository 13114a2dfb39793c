#include "sim/study/study_changes.h"

#include <algorithm>
#include <sstream>

#include "sim/document/values.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::StudyFile;

std::string plan_of(const Study& study, std::size_t plan) {
  return line_of(study.plans.at(plan).entry);
}

TEST_CASE("an option is set by the name of its plan, however the plan is written", "[override]") {
  const StudyFile file(test::good_study);
  CHECK(plan_of(file.load({"plans.hdp-naive.offload=auto"}), 1) == "{hdp-naive: {offload: auto}}");
  CHECK(plan_of(file.load({"plans=[hdp-naive: {order: data}]", "plans.hdp-naive.offload=0.5"}), 0) ==
        "{hdp-naive: {order: data, offload: 0.5}}");
  CHECK(file.problems({"plans.hdp-balance.offload=auto"}).size() == 1);  // there is none
  CHECK_FALSE(file.problems({"plans=[hdp-naive, hdp-naive: {offload: auto}]", "plans.hdp-naive.order=data"}).empty());
}

// The words of "A=1 B=[2, 3]".
std::vector<std::string> assignments_in(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word.find('=') != std::string::npos || all.empty()) {
      all.push_back(word);
    } else {
      all.back() += " " + word;
    }
  }
  return all;
}

// What a message suggests, as it would be set: "there is room with A B (... tokens of a rank), or C (...)".
std::vector<std::vector<std::string>> suggestions_of(const std::string& help) {
  const std::string begin = "there is room with ";
  REQUIRE(help.starts_with(begin));
  std::vector<std::vector<std::string>> all;
  for (std::size_t at = begin.size(); at < help.size();) {
    const std::size_t end = help.find(" (", at);
    all.push_back(assignments_in(help.substr(at, end - at)));
    const std::size_t next = help.find("), or ", end);
    at = next == std::string::npos ? help.size() : next + 6;
  }
  return all;
}

std::string help_of(const StudyFile& file, const std::vector<std::string>& changes) {
  try {
    (void)file.load(changes);
  } catch (const InputError& error) {
    return error.diagnostics().sorted().front().help;
  }
  return "none is needed";
}

TEST_CASE("where no capacity fits, what is suggested leaves room", "[capacity]") {
  const StudyFile file(test::good_study);
  const std::vector<std::vector<std::string>> studies = {
      {"mesh={tp: 1, capacity: auto}", "model={preset: llama-70b}"},
      {"mesh={tp: 1, capacity: auto}", "cluster.node.gpu_memory=40 GB"},
      {"cluster={preset: h100-rail, gpus: 32}", "profile=h100-published", "model={preset: mixtral-8x7b}",
       "mesh={tp: 1, capacity: auto}"}};
  for (const auto& study : studies) {
    const std::string help = help_of(file, study);
    CAPTURE(study, help);
    for (const std::vector<std::string>& suggested : suggestions_of(help)) {
      std::vector<std::string> all = study;
      all.insert(all.end(), suggested.begin(), suggested.end());
      CHECK(file.load(all).points.at(0).spec.capacity > 0);
    }
  }
}

TEST_CASE("where nothing leaves room, that is said", "[capacity]") {
  CHECK(help_of(StudyFile(test::good_study), {"model={preset: gpt-1t}", "cluster={preset: a100-rail-3tier, gpus: 8}",
                                              "mesh={capacity: auto}"}) == "no change that was tried leaves room");
}

TEST_CASE("changes of one subject exclude each other, and none is what the study says already", "[changes]") {
  const Catalog catalog(HDPSIM_SOURCE_DIR);
  const Study study = StudyFile(test::good_study).load({"plans=[{hdp-balance: {offload: auto}}]", "mesh.zero=2"});
  const Value one = study_of_run(study, 0, 0);
  const std::vector<StudyChange> all = possible_changes(one, study.points[0].spec, catalog);
  const auto has = [&](const std::string& assignment) {
    return std::any_of(all.begin(), all.end(),
                       [&](const StudyChange& each) { return each.assignments.front() == assignment; });
  };
  CHECK(has("mesh.zero=3"));
  CHECK_FALSE(has("mesh.zero=2"));
  CHECK_FALSE(has("mesh.tp=2"));
  CHECK(has("plans.hdp-balance.offload=none"));
  CHECK_FALSE(has("plans.hdp-balance.offload=auto"));
  CHECK(all.size() <= 50);
}

TEST_CASE("nodes with slow devices or links are taken out of service in numbers that meshes divide", "[changes]") {
  const Catalog catalog(HDPSIM_SOURCE_DIR);
  const Study study = StudyFile(test::good_study)
                          .load({"cluster={preset: a100-rail-3tier, gpus: 160}", "cluster.speed={8: 0.5}",
                                 "cluster.links={node 3 nic 0: 0.5}", "mesh.tp=1"});
  const Value one = study_of_run(study, 0, 0);
  std::vector<std::string> nodes;
  for (const StudyChange& change : possible_changes(one, study.points[0].spec, catalog)) {
    if (change.subject == "mesh.nodes") nodes.push_back(change.assignments.front());
  }
  CHECK(nodes == std::vector<std::string>{"mesh.nodes=[0, 2, 4-17]", "mesh.nodes=[0, 2, 4-19]"});  // 16, and all 18
}

}  // namespace
}  // namespace hdpsim
