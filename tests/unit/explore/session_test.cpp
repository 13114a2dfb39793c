#include "sim/explore/session.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/quantity_text.h"
#include "sim/explore/explore_page.h"
#include "sim/results/result_files.h"
#include "sim/run/best_static.h"
#include "sim/run/runner.h"
#include "sim/study/study_keys.h"
#include "sim/tune/tuned_baseline.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using Json = nlohmann::ordered_json;

struct Lines {
  std::vector<Json> all;

  [[nodiscard]] std::vector<Json> of_kind(std::string_view kind) const {
    std::vector<Json> found;
    for (const Json& line : all) {
      if (line["kind"] == kind) found.push_back(line);
    }
    return found;
  }
};

/// A reader that leaves after so many lines.
class Reader final : public AnswerStream {
 public:
  explicit Reader(std::size_t patience = SIZE_MAX) : patience_(patience) {}

  void send(std::string_view text) override {
    if (!is_closed()) lines_.all.push_back(Json::parse(text));
    if (lines_.all.size() >= patience_) closed_ = true;
  }
  [[nodiscard]] bool is_closed() const override { return closed_; }

  [[nodiscard]] const Lines& lines() const { return lines_; }

 private:
  const std::size_t patience_;
  Lines lines_;
  std::atomic<bool> closed_ = false;
};

/// A session about good_study, with four steps.
class Explored {
 public:
  Explored() : study_(test::changed(test::good_study, "steps: 2", "steps: 4")) {}

  Lines ask(const std::string& want, const std::vector<std::string>& set) {
    Reader reader;
    session_.answer(Json{{"want", want}, {"set", set}}.dump(), reader);
    return reader.lines();
  }
  [[nodiscard]] std::string result(const std::string& study, const std::vector<std::string>& set = {}) const {
    Catalog catalog(HDPSIM_SOURCE_DIR);
    const Study loaded = load_study(study, set, catalog);
    auto runs = *run_study(loaded, {.jobs = 2});
    REQUIRE(compare_with_best_static(loaded, catalog, {}, runs));
    return result_json(loaded.resolved, "test", runs);
  }
  [[nodiscard]] const test::StudyFile& file() const { return study_; }
  ExploreSession& session() { return session_; }

 private:
  test::StudyFile study_;
  ExploreSession session_{{.study = study_.path(),
                           .data = HDPSIM_SOURCE_DIR,
                           .scratch = study_.folder() / "scratch",
                           .version = "test",
                           .jobs = 2}};
};

TEST_CASE("figures of all steps are those of the study with the same settings", "[explore]") {
  Explored explored;
  const std::vector<std::string> set = {"data.context=32Ki", "plans=[static, hdp-balance]", "compare_to=static"};
  const auto answers = explored.ask("answer", set).of_kind("answer");
  REQUIRE(answers.size() == 3);
  CHECK(answers[1]["final"] == false);  // the fastest static mesh is searched for
  CHECK(answers[1]["result"]["runs"][1]["step_time_s"] == answers[2]["result"]["runs"][1]["step_time_s"]);
  CHECK(answers[2]["final"] == true);
  CHECK(answers[2]["result"]["runs"] == Json::parse(explored.result(explored.file().path(), set))["runs"]);
}

TEST_CASE("the first figures are those of the first step", "[explore]") {
  Explored explored;
  const auto answers = explored.ask("answer", {}).of_kind("answer");
  REQUIRE(answers.size() == 2);
  CHECK(answers[0]["final"] == false);
  CHECK(answers[0]["steps"] == 4);
  const Json alone = Json::parse(explored.result(explored.file().path(), {"data.steps=1"}));
  CHECK(answers[0]["result"]["runs"] == alone["runs"]);
}

TEST_CASE("between the first of many steps and all of them come the figures of an eighth", "[explore]") {
  Explored explored;
  const auto answers = explored.ask("answer", {"data.steps=16", "plans=[static]"}).of_kind("answer");
  REQUIRE(answers.size() == 3);
  CHECK(answers[1]["final"] == false);
  CHECK(answers[1]["steps"] == 16);
  const Json eighth = Json::parse(explored.result(explored.file().path(), {"data.steps=2", "plans=[static]"}));
  CHECK(answers[1]["result"]["runs"] == eighth["runs"]);
  CHECK(answers[2]["final"] == true);
}

TEST_CASE("a baseline is tuned as the study asks; the first step has none yet", "[explore]") {
  Explored explored;
  const std::vector<std::string> set = {
      "compare_to={static: tuned}", "data.steps=1",
      "tune.space={mesh.tp: [2, 4], mesh.pp: [1], mesh.capacity: [8Ki], training.recompute: [none]}"};
  const auto answers = explored.ask("answer", set).of_kind("answer");
  REQUIRE(answers.size() == 2);
  CHECK(answers[0]["result"]["runs"][1]["speedup"].is_null());

  Catalog catalog(HDPSIM_SOURCE_DIR);
  Diagnostics none;
  const std::string path = explored.file().path();
  const Study study = load_study(path, set, catalog);
  auto runs = *run_study(study, {});
  REQUIRE(compare_with_tuned(study, tuning_root(load_document(path, none), set), catalog, {}, runs));
  CHECK(answers[1]["result"]["runs"] == Json::parse(result_json(study.resolved, "test", runs))["runs"]);
}

TEST_CASE("a study that is saved gives the figures of the page", "[explore]") {
  Explored explored;
  const std::vector<std::string> set = {"mesh.tp=4", "cluster.node.nics.bandwidth=100 Gbit/s"};
  const auto answers = explored.ask("answer", set).of_kind("answer");
  const Lines saved = explored.ask("study", set);
  REQUIRE(saved.all.size() == 1);
  const test::StudyFile file(saved.all[0]["yaml"].get<std::string>());
  CHECK(answers.back()["result"]["runs"] == Json::parse(explored.result(file.path()))["runs"]);
}

TEST_CASE("a sweep is left out", "[explore]") {
  Explored explored;
  const auto answers = explored.ask("answer", {"sweep.data.context=[16Ki, 32Ki]"}).of_kind("answer");
  REQUIRE(answers.size() == 2);
  CHECK(answers[1]["result"]["runs"].size() == 2);  // two plans at one point
}

TEST_CASE("all problems come at once, each with the path of its value and the text of the command", "[explore]") {
  Explored explored;
  const Lines lines = explored.ask("answer", {"data.context=long", "mesh.tp=0", "data.nonsense=1"});
  REQUIRE(lines.all.size() == 1);
  const Json& line = lines.all[0];
  CHECK(line["kind"] == "problems");
  std::vector<std::string> paths;
  for (const Json& problem : line["problems"]) paths.push_back(problem["path"]);
  CHECK(paths == std::vector<std::string>{"data.context", "mesh.tp", "data.nonsense"});
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto load = [&] {
    (void)load_study(explored.file().path(), {"data.context=long", "mesh.tp=0", "data.nonsense=1"}, catalog);
  };
  CHECK_THROWS_WITH(load(), line["text"].get<std::string>());
}

TEST_CASE("what is no question is refused and harms nothing", "[explore]") {
  Explored explored;
  for (const char* text : {"", "{", "[]", "null", "{\"want\": \"answer\"}", "{\"want\": \"all\", \"set\": []}",
                           "{\"want\": 3, \"set\": []}", "{\"want\": \"answer\", \"set\": [3]}",
                           "{\"want\": \"answer\", \"set\": \"mesh.tp=2\"}"}) {
    CAPTURE(text);
    Reader reader;
    explored.session().answer(text, reader);
    REQUIRE(reader.lines().all.size() == 1);
    CHECK(reader.lines().all[0]["kind"] == "problems");
  }
  CHECK(explored.ask("answer", {}).of_kind("answer").size() == 2);
}

TEST_CASE("nothing more is simulated for a reader who has left", "[explore]") {
  Explored explored;
  Reader left_before(1);
  left_before.send("{}");
  explored.session().answer(R"({"want": "answer", "set": []})", left_before);
  CHECK(left_before.lines().all.size() == 1);  // what it was sent above
  Reader leaves_after_the_first_step(1);
  explored.session().answer(R"({"want": "answer", "set": ["data.steps=1000000"]})", leaves_after_the_first_step);
  CHECK(leaves_after_the_first_step.lines().all.size() == 1);
}

TEST_CASE("a report holds the figures of the page, and runs that are known are not simulated again", "[explore]") {
  Explored explored;
  CHECK(explored.ask("answer", {}).of_kind("progress").size() == 2 * 4);
  const Lines lines = explored.ask("report", {});
  CHECK(lines.of_kind("progress").empty());
  const auto reports = lines.of_kind("report");
  REQUIRE(reports.size() == 1);
  CHECK_THAT(reports[0]["html"].get<std::string>(), Catch::StartsWith("<!doctype html>"));
}

TEST_CASE("a dropped file is read like any other, and a saved study names it without its folder", "[explore]") {
  Explored explored;
  const std::string lengths = "tokens\n100\n2000\n30000\n";
  const std::string own_file = (explored.file().folder() / "own.csv").string();
  explored.file().add("own.csv", lengths);
  const Json taken = Json::parse(explored.session().take_lengths("../my lengths/own.csv", lengths));
  CHECK(taken["name"] == "own.csv");
  const std::vector<std::string> set = {"data.lengths={file: \"" + taken["file"].get<std::string>() + "\"}"};
  const auto answers = explored.ask("answer", set).of_kind("answer");
  const std::string own = explored.result(explored.file().path(), {"data.lengths={file: " + own_file + "}"});
  REQUIRE(answers.size() == 2);
  CHECK(answers[1]["result"]["runs"] == Json::parse(own)["runs"]);
  const Lines saved = explored.ask("study", set);
  CHECK(saved.all[0]["dropped"] == "own.csv");
  explored.file().add("saved.yaml", saved.all[0]["yaml"]);
  const std::string again = explored.result((explored.file().folder() / "saved.yaml").string());
  CHECK(Json::parse(again)["runs"] == Json::parse(own)["runs"]);
}

TEST_CASE("names of dropped files lead nowhere else", "[explore]") {
  Explored explored;
  for (const char* name : {"", ".", "..", "../../x", "/etc/passwd", ".hidden", "a b\n'\"{}.csv", "C:\\x.csv"}) {
    CAPTURE(name);
    const Json taken = Json::parse(explored.session().take_lengths(name, "1\n"));
    const std::filesystem::path file = taken["file"].get<std::string>();
    CHECK(file.parent_path().parent_path() == explored.file().folder() / "scratch" / "dropped");
    CHECK(test::text_of(file) == "1\n");
  }
}

TEST_CASE("a study that is wrong begins no session", "[explore]") {
  const test::StudyFile wrong(test::changed(test::good_study, "llama-7b", "llama-8b"));
  const auto begin = [&] {
    const ExploreSession session(
        {.study = wrong.path(), .data = HDPSIM_SOURCE_DIR, .scratch = wrong.folder() / "scratch"});
  };
  CHECK_THROWS_AS(begin(), InputError);
}

/// The declared range of a count, also of one that may be `auto` instead.
std::optional<Range> range_of(const KeyShape& shape) {
  if (shape.range) return shape.range;
  for (const KeyShape& part : shape.parts) {
    if (const auto range = range_of(part)) return range;
  }
  return std::nullopt;
}

TEST_CASE("every control is of a declared key, and every stop of a slider lies in its range", "[explore]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto keys = all_study_keys();
  std::size_t sliders = 0;
  const Json controls = controls_json(catalog);
  for (const Json& group : controls["groups"]) {
    for (const Json& control : group["controls"]) {
      const auto path = control["path"].get<std::string>();
      CAPTURE(path);
      const auto key = std::find_if(keys.begin(), keys.end(), [&](const StudyKey& each) { return each.path == path; });
      if (path.starts_with("cluster.")) continue;  // the keys of a cluster are not declared
      REQUIRE(key != keys.end());
      if (control["stops"].empty()) continue;
      ++sliders;
      const auto range = range_of(key->key->shape);
      REQUIRE(range);
      for (const Json& stop : control["stops"]) {
        const auto count = static_cast<double>(parse_count(stop.get<std::string>()).value.value());
        CHECK((count >= range->least && count <= range->most));
      }
    }
  }
  CHECK(sliders == 6);
}

TEST_CASE("the page holds the presets that there are, and its script the nonce of the request alone", "[explore]") {
  Explored explored;
  const std::string page = explored.session().page("the-nonce");
  CHECK(page.find("<script nonce=\"the-nonce\">") != std::string::npos);
  for (const char* name : {"a100-rail-3tier", "llama-7b", "bytescale-implied", "github", "hdp-balance", "mesh.zero"}) {
    CHECK(page.find(std::string("\"") + name + "\"") != std::string::npos);
  }
  CHECK(page.find("{{") == std::string::npos);
  CHECK(page.find("http://www.w3.org/2000/svg") == page.find("http"));  // a name of a language, not an address
  CHECK(page.find("https:") == std::string::npos);
}

}  // namespace
}  // namespace hdpsim
