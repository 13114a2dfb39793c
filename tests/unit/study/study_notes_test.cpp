#include "sim/study/study_notes.h"

#include <algorithm>

#include "sim/study/data_options.h"

#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::StudyFile;
using Notes = std::vector<std::string>;

Notes notes_with(const std::string& mesh, const std::vector<std::string>& overrides = {}) {
  return idle_key_notes(StudyFile(changed(good_study, "{tp: 2}", mesh)).load(overrides));
}

TEST_CASE("a key of the mesh that changes nothing is told, with what it needs", "[study][notes]") {
  CHECK(notes_with("{tp: 2, a2a_ranks: 4}") == Notes{"note: good: mesh.a2a_ranks has no effect: it needs several ranks "
                                                     "and cp_comm_type: a2a"});
  CHECK(notes_with("{tp: 2, a2a_ranks: 4, cp_comm_type: a2a}").empty());
  CHECK(notes_with("{tp: 1}\ntraining: {tp_comm_overlap: true}") ==
        Notes{"note: good: training.tp_comm_overlap has no effect: it needs a tp above 1"});
  CHECK(notes_with("{tp: 2, pp: 1, schedule: interleaved, virtual_stages: 2}").size() == 2);
  CHECK(
      notes_with("{tp: 2, ring_nics: all, cp_comm_type: all_gather}") ==
      Notes{"note: good: mesh.ring_nics has no effect: it needs several ranks and cp_comm_type: p2p or a2a or burst"});
}

TEST_CASE("a default that is stated, and a key that matters at one point of a sweep, are not told", "[study][notes]") {
  CHECK(notes_with("{tp: 2, schedule: 1f1b, virtual_stages: 1}\ntraining: {overlap_p2p_comm: always}").empty());
  CHECK(notes_with("{tp: 2, a2a_ranks: 4}", {"sweep={mesh.cp_comm_type: [p2p, a2a]}"}).empty());
  CHECK(notes_with("{tp: 2}", {"sweep=[{label: a, set: {mesh.a2a_ranks: 2}}, {label: b, set: {}}]"}).size() == 1);
  CHECK(notes_with("{tp: 2}", {"sweep={training.bucket_parameters: [1000000, 2000000]}"}).size() == 1);
}

TEST_CASE("a profile that is named as it was called is told by its name of today, once, in sweeps, too",
          "[study][notes]") {
  const auto renamed = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    const Study study = StudyFile(text).load(overrides);
    const Notes notes = study_notes(study);
    return std::count_if(notes.begin(), notes.end(), [](const std::string& note) {
      return note.starts_with("note: good: the profile a100-published is called bytescale-implied now: ");
    });
  };
  const std::string old = changed(good_study, "bytescale-implied", "a100-published");
  CHECK(StudyFile(old).load().points.at(0).spec.profile->name == "bytescale-implied");
  CHECK(renamed(old) == 1);
  CHECK(renamed(good_study) == 0);
  CHECK(renamed(good_study, {"sweep={profile: [a100-published, a100-sxm-published]}"}) == 1);
}

TEST_CASE("notes of a study are those of its models, its clusters, its profiles and its keys", "[study][notes]") {
  const Study study = StudyFile(changed(changed(good_study, "{tp: 2}", "{tp: 2, a2a_ranks: 4, connections: cold}"),
                                        "llama-7b", "deepseek-v3.2"))
                          .load();
  CHECK(study_notes(study).size() >= 3);
  CHECK(study_notes(study).back() == idle_key_notes(study).front());
}

TEST_CASE("a step of millions of sequences is announced with the time that it takes", "[study][notes]") {
  const StudyFile file(changed(good_study, "{preset: github, edges: upper}", "{fixed: 32}"));
  CHECK_THAT(large_step_note(file.load({"data.tokens_per_step=64Mi"})),
             Catch::Matchers::StartsWith("note: good: a step of about 2.10M sequences takes about 13 s"));  // 2^21
  CHECK(large_step_note(file.load({"data.tokens_per_step=16Mi"})).empty());
}

}  // namespace
}  // namespace hdpsim
