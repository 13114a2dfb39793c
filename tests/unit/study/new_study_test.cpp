#include "sim/study/new_study.h"

#include <fmt/format.h>

#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using Part = NewStudyPart;
using test::TemporaryFolder;

/// A new study beside the project's presets.
class Made {
 public:
  Made() = default;
  explicit Made(const std::vector<std::pair<Part, std::string>>& answers) {
    for (const auto& [part, text] : answers) say(part, text);
  }

  void say(Part part, const std::string& text) {
    Diagnostics problems;
    study.answer(part, text, problems);
    CAPTURE(problems.text());
    REQUIRE(problems.empty());
  }
  // As the study that its text makes.
  [[nodiscard]] Study read() { return parse_study("mine.yaml", study.text("mine.yaml"), {}, catalog_); }

 private:
  Catalog catalog_{HDPSIM_SOURCE_DIR};

 public:
  NewStudy study{catalog_};
};

std::vector<std::string> problems_of_answer(NewStudy& study, Part part, const std::string& text) {
  Diagnostics problems;
  study.answer(part, text, problems);
  std::vector<std::string> told;
  for (const Diagnostic& problem : problems.sorted()) told.push_back(problem.message + "; " + problem.help);
  return told;
}

TEST_CASE("a new study holds what its user has said of it", "[new]") {
  Made made({{Part::cluster, "a100-rail-3tier"},
             {Part::gpus, "64"},
             {Part::model, "llama-7b"},
             {Part::lengths, "{fixed: 2Ki}"},
             {Part::context, "16Ki"},
             {Part::tokens_per_step, "3Mi"},
             {Part::steps, "7"},
             {Part::plans, "hdp-naive, hdp-balance: {delta: 0.1}"},
             {Part::profile, "a100-sxm-published"}});
  const Study study = made.read();
  const PointSpec& spec = study.points.at(0).spec;
  CHECK(study.name == "mine");
  CHECK(spec.cluster.name == "a100-rail-3tier");
  CHECK(spec.mesh.devices() == 64);
  CHECK(spec.model.name == "llama-7b");
  CHECK(spec.batch.context == 16 << 10);
  CHECK(spec.batch.tokens_per_step == 3 << 20);
  CHECK(spec.steps == 7);
  CHECK(spec.profile->name == "a100-sxm-published");
  CHECK(study.plans.size() == 2);
  CHECK(study.compare_to == "hdp-naive");
}

TEST_CASE("what nobody has said is chosen from what was said", "[new]") {
  Made made({{Part::cluster, "h200-rail"}, {Part::gpus, "16"}});
  CHECK(made.study.choice_of(Part::profile) == "h200-published");
  CHECK(made.study.choice_of(Part::tokens_per_step) == "512Ki");  // 16 of 32Ki
  CHECK(Made({{Part::cluster, "dgx-a100-superpod"}}).study.choice_of(Part::profile) == "a100-sxm-published");
  made.say(Part::context, "1Mi");
  CHECK(made.study.choice_of(Part::tokens_per_step) == "1Mi");  // a step holds a sequence
  Made other({{Part::cluster, "{preset: h200-rail, gpus: 24}"}});
  CHECK(other.study.choice_of(Part::gpus) == "24");
}

TEST_CASE("tokens a step that nobody has said are a guess, which the file and its maker are told", "[new]") {
  Made guessed({{Part::gpus, "16"}});
  REQUIRE(guessed.study.guesses().size() == 1);
  CHECK(guessed.study.text("mine.yaml").find("# a guess of 32Ki a GPU") != std::string::npos);
  guessed.say(Part::tokens_per_step, "4Mi");
  CHECK(guessed.study.guesses().empty());
  CHECK(guessed.study.text("mine.yaml").find("guess") == std::string::npos);
  CHECK(static_cast<int>(Part::tokens_per_step) < asked_parts);
}

TEST_CASE("a wrong answer is told with a suggestion, and changes nothing", "[new]") {
  Made made({{Part::cluster, "h200-rail"}});
  using Told = std::vector<std::string>;
  CHECK(problems_of_answer(made.study, Part::cluster, "h100-rial") ==
        Told{"there is no cluster preset 'h100-rial'; did you mean 'h100-rail'?"});
  CHECK(made.study.choice_of(Part::profile) == "h200-published");
  CHECK(problems_of_answer(made.study, Part::gpus, "31") ==
        Told{"31 gpus are not a whole number of nodes of 8; write 24 or 32, or change node.gpus"});
  CHECK(problems_of_answer(made.study, Part::steps, "0").size() == 1);
  CHECK(problems_of_answer(made.study, Part::plans, "static, hdp, hdb").size() == 2);
  CHECK(problems_of_answer(made.study, Part::lengths, "none.csv").size() == 1);
}

TEST_CASE("the mesh is the smallest that has room", "[new]") {
  const std::vector<std::pair<Part, std::string>> cluster = {{Part::cluster, "h100-rail"}, {Part::gpus, "64"}};
  Made small(cluster);
  small.say(Part::model, "llama-160m");
  CHECK(small.read().points.at(0).spec.mesh.devices() / small.read().points.at(0).spec.mesh.hdp == 1);
  Made large(cluster);
  large.say(Part::model, "llama-70b");
  const PointSpec spec = large.read().points.at(0).spec;
  // 64 devices of 80 GB hold 2 + 4 bytes a parameter in each rank, and 12 in all of them.
  CHECK(spec.mesh.tp * spec.mesh.pp >= 70 * 6 / 80);
  CHECK(spec.mesh.hdp * spec.capacity >= spec.batch.context);
}

TEST_CASE("a model that no mesh has room for is refused, with what lacks", "[new]") {
  Made made({{Part::gpus, "8"}, {Part::model, "gpt-1t"}});
  try {
    (void)made.study.text("mine.yaml");
    FAIL("a trillion parameters on eight GPUs");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("no capacity fits: of the 80.0 GB of a device") != std::string::npos);
  }
}

TEST_CASE("every shipped cluster whose device has a profile makes a study", "[new]") {
  int made_studies = 0;
  for (const std::string& cluster : Made().study.names_of(Part::cluster)) {
    CAPTURE(cluster);
    Made made({{Part::cluster, cluster}, {Part::model, "llama-160m"}, {Part::context, "8Ki"}});
    if (made.study.choice_of(Part::profile).empty()) {
      CHECK_THROWS_AS(made.study.text("mine.yaml"), InputError);
      continue;
    }
    CHECK(made.read().points.size() == 1);
    ++made_studies;
  }
  CHECK(made_studies > 4);
}

TEST_CASE("paths of a new study start at its folder", "[new]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "studies");
  std::ofstream(folder.path() / "lengths.csv") << "length\n100\n2000\n";
  const std::string lengths = std::filesystem::proximate(folder.path() / "lengths.csv").string();
  Made made({{Part::gpus, "8"}, {Part::lengths, lengths}});
  const std::string text = made.study.text(std::filesystem::proximate(folder.path() / "studies/mine.yaml"));
  CHECK(text.find("lengths: {file: ../lengths.csv}\n") != std::string::npos);
}

}  // namespace
}  // namespace hdpsim
