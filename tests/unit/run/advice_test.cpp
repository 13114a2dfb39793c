#include "sim/run/advice.h"

#include <algorithm>

#include "sim/base/text.h"
#include "sim/run/runner.h"
#include "sim/run/step.h"
#include "sim/run/tokens_curve.h"
#include "sim/study/study_changes.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::StudyFile;
using Words = std::vector<std::string>;

/// A study that has been run, and what is advised for its plans.
class Advised {
 public:
  explicit Advised(const Words& changes, const std::string& text = test::good_study)
      : file_(text), changes_(changes), study_(file_.load(changes)), runs_(*run_study(study_, {})) {}

  [[nodiscard]] std::vector<Advice> of(std::size_t run, std::size_t jobs = 1, std::int64_t step = 0) const {
    return advice_for(study_, runs_, run, step, {.catalog = catalog_, .jobs = jobs});
  }
  // The step of the plan alone in the study that has the changes of an advice, as a user would set them.
  [[nodiscard]] StepResult step_with(const Advice& advice, std::size_t plan, std::int64_t step = 0) const {
    Words all = changes_;
    all.insert(all.end(), advice.changes.begin(), advice.changes.end());
    const Study changed = file_.load(all);
    const StudyPoint& point = changed.points.at(0);
    StepResult result = simulate_step(point, plan, step, *point.make_world()).result;
    CHECK(fits_in(result, point.spec));
    return result;
  }
  [[nodiscard]] const Run& run(std::size_t run) const { return runs_.at(run); }
  [[nodiscard]] const Study& study() const { return study_; }
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }
  [[nodiscard]] const Catalog& catalog() const { return catalog_; }

 private:
  StudyFile file_;
  Words changes_;
  Catalog catalog_{HDPSIM_SOURCE_DIR};
  Study study_;
  std::vector<Run> runs_;
};

bool names(const std::vector<Advice>& all, const std::string& change) {
  return std::any_of(all.begin(), all.end(), [&](const Advice& advice) {
    return std::any_of(advice.changes.begin(), advice.changes.end(),
                       [&](const std::string& each) { return each.starts_with(change); });
  });
}

TEST_CASE("what is advised gains what it says when it is set", "[advice]") {
  const Advised advised({"data.steps=4", "plans=[static, hdp-naive]"});
  for (std::size_t plan = 0; plan < 2; ++plan) {
    const std::vector<Advice> all = advised.of(plan);
    REQUIRE_FALSE(all.empty());
    for (const Advice& advice : all) {
      CAPTURE(plan, joined(advice.changes, " "));
      REQUIRE(advice.gain);
      CHECK(*advice.gain >= 0.005);
      const StepResult step = advised.step_with(advice, plan);
      CHECK(step.time == advice.step_time);
      CHECK(step.tokens == advice.tokens);
      if (advice.tokens != advised.run(plan).result.steps[0].tokens) continue;  // compared with several steps
      const double before = advised.run(plan).result.steps[0].time.seconds();
      CHECK(*advice.gain == Approx(1 - step.time.seconds() / before));
    }
    const auto gains_less = [](const Advice& a, const Advice& b) { return *a.gain > *b.gain; };
    CHECK(std::is_sorted(all.begin(), all.end(), gains_less));
  }
}

TEST_CASE("more tokens a step are compared with as many tokens, and a smaller capacity is not advised where it loses",
          "[advice]") {
  const Advised advised({"data.steps=4", "plans=[static]"});
  for (const Advice& advice : advised.of(0)) {
    if (advice.changes != Words{"data.tokens_per_step=4Mi"}) continue;
    double seconds = 0;
    for (const StepResult& step : advised.run(0).result.steps) seconds += step.time.seconds();
    CHECK(*advice.gain == Approx(1 - advice.step_time.seconds() / seconds));
  }
  const Advised one_step({"data.steps=1", "plans=[static]"});
  const StudyFile file(test::good_study);
  const Study smaller = file.load({"plans=[static]", "mesh.capacity=4Ki"});
  const StudyPoint& point = smaller.points[0];
  REQUIRE(simulate_step(point, 0, 0, *point.make_world()).result.time > one_step.run(0).result.steps[0].time);
  CHECK_FALSE(names(one_step.of(0), "mesh.capacity=4Ki"));
}

TEST_CASE("advice does not depend on the number of threads", "[advice]") {
  const Advised advised({"data.steps=1", "plans=[hdp-balance]"});
  const auto text = [](const std::vector<Advice>& all) {
    Words words;
    for (const Advice& each : all) words.push_back(joined(each.changes, " "));
    return words;
  };
  CHECK(text(advised.of(0, 1)) == text(advised.of(0, 3)));
}

TEST_CASE("a quick search finds the changes that a full one of every change finds", "[advice]") {
  const Words study = {"data.steps=1", "data.tokens_per_step=512Ki", "mesh={tp: 4, pp: 2, capacity: 16Ki}"};
  const auto with = [&](const char* plan) {
    Words words = study;
    words.emplace_back(plan);
    return words;
  };
  const Advised quick(with("plans=[hdp-balance]"));
  const Advised full(with("plans=[{hdp-balance: {search: all}}]"));
  REQUIRE(quicker_search(study_of_run(quick.study(), 0, 0)));
  REQUIRE_FALSE(quicker_search(study_of_run(full.study(), 0, 0)));
  const std::vector<Advice> found = quick.of(0);
  const std::vector<Advice> all = full.of(0);
  REQUIRE(all.size() >= 3);
  std::size_t missed = 0;
  for (const Advice& advice : all) {
    const auto is_same = [&](const Advice& other) { return other.changes == advice.changes; };
    const auto same = std::find_if(found.begin(), found.end(), is_same);
    if (same == found.end()) {
      ++missed;
      continue;
    }
    CHECK(same->step_time == advice.step_time);
  }
  CHECK(missed <= all.size() / 4);
  CHECK(*found[0].gain == Approx(*all[0].gain).margin(0.02));
}

TEST_CASE("what is advised for a model with experts is possible, and takes as long as it says", "[advice]") {
  const Advised advised({"cluster={preset: h100-rail, gpus: 32}", "model={preset: mixtral-8x7b}",
                         "profile=h100-published", "mesh={tp: 8, capacity: 16Ki}", "plans=[static]", "data.steps=1"});
  const std::vector<Advice> all = advised.of(0);
  for (const Advice& advice : all) {
    CAPTURE(joined(advice.changes, " "));
    CHECK(advised.step_with(advice, 0).time == advice.step_time);
  }
  CHECK(names(all, "mesh.zero="));
  CHECK_FALSE(names(all, "training.sequence_parallel="));
}

TEST_CASE("a framework's way to train, another tp and offload are found", "[advice]") {
  const Advised advised({"plans=[{hdp-naive: {offload: none}}]", "mesh={tp: 8, capacity: 16Ki}", "data.steps=1"});
  const std::vector<Advice> all = advised.of(0);
  CHECK(names(all, "framework.preset="));
  CHECK(names(all, "mesh.tp="));
  const Advised long_sequences({"plans=[hdp-naive]", "data.lengths={fixed: 64Ki}", "data.steps=1"});
  CHECK(names(long_sequences.of(0), "plans.hdp-naive.offload="));
}

TEST_CASE("a stage that is heavier by the head is told to have a layer less", "[advice]") {
  // The head of 256,000 words takes 6.3 GFLOPs a token, about five layers beside the eight of a stage.
  const Advised advised({"cluster={preset: h100-rail, gpus: 32}", "model={preset: llama3-8b, vocab_size: 256000}",
                         "profile=h100-published", "mesh={tp: 2, pp: 4, capacity: 4Ki}", "plans=[static]",
                         "data={lengths: {fixed: 4Ki}, context: 4Ki, tokens_per_step: 512Ki, steps: 1}"});
  CHECK(names(advised.of(0), "mesh.account_for_loss=true"));
}

TEST_CASE("a NIC with a share of its rate is taken out of service where that gains", "[advice]") {
  const Advised advised({"cluster.links={node 1 nic 3: 0.02}", "plans=[static]", "data.steps=1"});
  const std::vector<Advice> all = advised.of(0);
  const bool turns_off =
      names(all, "cluster.links={\"node 1 nic 3\": 0}") || names(all, "cluster.links={node 1 nic 3: 0}");
  CHECK((turns_off || names(all, "mesh.nodes=[0, 2-3]")));
  CHECK_FALSE(names(Advised({"plans=[static]", "data.steps=1"}).of(0), "cluster.links"));
}

TEST_CASE("what makes a plan fit is advised where it does not, and nothing else", "[advice]") {
  const Advised advised({"cluster.node.gpu_memory=30 GB", "plans=[static, hdp-balance]", "data.steps=1"});
  for (std::size_t plan = 0; plan < 2; ++plan) {
    REQUIRE_FALSE(advised.run(plan).metrics.fits);
    const std::vector<Advice> all = advised.of(plan);
    REQUIRE_FALSE(all.empty());
    for (const Advice& advice : all) {
      CAPTURE(joined(advice.changes, " "));
      CHECK_FALSE(advice.gain);
      const StepResult step = advised.step_with(advice, plan);  // which checks that it fits
      CHECK(step.memory.device == advice.device);
    }
  }
}

TEST_CASE("what no change alone makes fit is made to by several together", "[advice]") {
  const Advised advised({"cluster.node.gpu_memory=9 GB", "plans=[static]", "data.steps=1"});
  REQUIRE_FALSE(advised.run(0).metrics.fits);
  const std::vector<Advice> all = advised.of(0);
  REQUIRE(all.size() == 1);
  CHECK(all[0].changes.size() > 1);
  CHECK(advised.step_with(all[0], 0).memory.device <= Bytes(9'000'000'000));
}

TEST_CASE("plans over tokens a step are those of studies with as many", "[advice][tokens]") {
  const Advised advised({"data.steps=2"});
  const std::vector<TokensRow> rows = tokens_curve(advised.study(), advised.runs(), 0, {.catalog = advised.catalog()});
  REQUIRE(rows.size() == 4);
  const std::int64_t own = advised.study().points[0].spec.batch.tokens_per_step;
  CHECK(rows[0].tokens_per_step == own / 4);
  CHECK(rows[1].tokens_per_step == own);
  CHECK(rows[3].tokens_per_step == 16 * own);
  const StudyFile file(test::good_study);
  const Study more = file.load({"data.tokens_per_step=4Mi"});
  for (std::size_t plan = 0; plan < 2; ++plan) {
    CHECK(rows[1].tokens_per_s[plan] == advised.run(plan).metrics.tokens_per_s);
    const StepResult step = simulate_step(more.points[0], plan, 0, *more.points[0].make_world()).result;
    CHECK(*rows[2].tokens_per_s[plan] == Approx(static_cast<double>(step.tokens) / step.time.seconds()));
  }
  const Advised alone({"plans=[static]", "data.steps=1"});
  CHECK(tokens_curve(alone.study(), alone.runs(), 0, {.catalog = alone.catalog()}).empty());
}

}  // namespace
}  // namespace hdpsim
