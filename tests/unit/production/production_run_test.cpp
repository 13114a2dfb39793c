#include "sim/production/production_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr std::int64_t step_tokens = 1000;

/// Steps of ten seconds. A device that is slow makes them as many times longer, unless it is known: then by half of
/// what it would.
class PretendedSteps final : public TimedSteps {
 public:
  [[nodiscard]] std::int64_t batches() const override { return 4; }
  [[nodiscard]] std::optional<TimedStep> step(std::int64_t batch, const DeviceState& state) override {
    trained.push_back(batch);
    double longer = 1;
    for (const SlowDevice& slow : state.slow) {
      const bool is_known = std::find(state.known.begin(), state.known.end(), slow) != state.known.end();
      longer = std::max(longer, is_known ? 1 + (slow.slowdown - 1) / 2 : slow.slowdown);
    }
    TimedStep made{.time = Duration::seconds(10 * longer), .tokens = step_tokens, .model_flops = 2};
    made.mean[index_of(Activity::linear)] = made.time;
    return made;
  }
  std::vector<std::int64_t> trained;
};

/// A run of `time_s`, with checkpoints of 5 s every 100 s and restarts of 60 s, if nodes fail.
struct Run {
  ProductionOptions options;
  std::optional<FailureModel> failures;
  Incidents incidents;
  PretendedSteps steps;

  explicit Run(double time_s) { options.time_s = time_s; }
  void fail(std::vector<NodeFailure> when) {
    failures = FailureModel{.node_mtbf_s = 1e6, .checkpoint_s = 5, .restart_s = 60, .interval_s = 100};
    incidents.failures = std::move(when);
  }
  Stragglers& straggle(std::vector<SlowSpell> when, StragglerAnswer answer = StragglerAnswer::none) {
    incidents.slow = std::move(when);
    options.stragglers = Stragglers{.device_mtbf_s = 1e6, .answer = answer};
    return *options.stragglers;
  }
  ProductionRun result(DataSupply* supply = nullptr) {
    return *run_production({options, failures, 4, incidents}, steps, supply);
  }
};

std::vector<std::pair<double, ProductionEventKind>> happened(const ProductionRun& run) {
  std::vector<std::pair<double, ProductionEventKind>> events;
  for (const ProductionEvent& event : run.events) {
    if (event.kind != ProductionEventKind::checkpoint) events.emplace_back(event.at_s, event.kind);
  }
  return events;
}
using Happened = std::vector<std::pair<double, ProductionEventKind>>;

TEST_CASE("a run to which nothing happens is steps, batch after batch", "[production]") {
  Run run(95);
  const ProductionRun done = run.result();
  CHECK(done.steps == 10);  // the last one ends behind the 95 s
  CHECK(done.tokens == 10 * step_tokens);
  CHECK(done.model_flops == 20);
  CHECK(done.spent.total_s() == Approx(100));
  CHECK(done.spent.steps_s[index_of(Activity::linear)] == Approx(100));
  CHECK(done.events.empty());
  CHECK((run.steps.trained == std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1}));
  CHECK(done.tokens_per_gpu_hour(8) == Approx(10 * step_tokens / (8 * 100 / 3600.0)));
}

TEST_CASE("a failure undoes the steps since the last checkpoint, which are trained again", "[production]") {
  Run run(400);
  // Checkpoints at 100 to 105 s and at 205 to 210 s; then three whole steps and seven seconds of the fourth.
  run.fail({{247, 2}});
  const ProductionRun done = run.result();
  CHECK(done.lost_steps == 3);
  CHECK(done.spent.lost_s == Approx(37));
  CHECK(done.spent.restarts_s == Approx(60));
  // From 307 s on 9 steps pass until 397 s, and a tenth to 407 s, after which a checkpoint is written.
  CHECK(done.steps == 20 + 10);
  CHECK(done.spent.checkpoints_s == Approx(3 * 5));
  CHECK(done.spent.total_s() == Approx(412));
  CHECK((happened(done) == Happened{{247, ProductionEventKind::failed}}));
  const std::vector<std::int64_t> again(run.steps.trained.begin() + 24, run.steps.trained.begin() + 26);
  CHECK((again == std::vector<std::int64_t>{20 % 4, 21 % 4}));
}

TEST_CASE("a failure in a restart begins it anew, one in a checkpoint undoes what it was to keep", "[production]") {
  Run run(300);
  run.fail({{103, 0}, {133, 1}});
  const ProductionRun done = run.result();
  CHECK(done.lost_steps == 10);
  CHECK(done.spent.lost_s == Approx(100 + 3));
  CHECK(done.spent.restarts_s == Approx(30 + 60));
  CHECK(done.steps == 11);  // from 193 s on ten, a checkpoint to 298 s, and one more
}

TEST_CASE("a slow device makes steps longer as long as it is slow when they begin", "[production]") {
  Run run(100);
  run.straggle({{.from_s = 15, .to_s = 45, .device = 7, .node = 0, .slowdown = 2}});
  const ProductionRun done = run.result();
  // Steps begin at 0 and 10 s, and at 20 and 40 s on the slow device; from 60 s on four more.
  CHECK(done.steps == 8);
  CHECK(done.spent.stragglers_s == Approx(2 * 10));
  CHECK(done.spent.steps_s[index_of(Activity::linear)] == Approx(8 * 10));
  CHECK((happened(done) == Happened{{15, ProductionEventKind::slow}, {45, ProductionEventKind::recovered}}));
}

TEST_CASE("two spells of a device are as slow as the slower one", "[production]") {
  Run run(30);
  run.straggle(
      {{.from_s = 0, .to_s = 500, .device = 7, .slowdown = 2}, {.from_s = 0, .to_s = 500, .device = 7, .slowdown = 3}});
  CHECK(run.result().spent.stragglers_s == Approx(20));
}

TEST_CASE("policies plan for a slow device once it is known, and as before once it is known to have recovered",
          "[production]") {
  Run run(165);
  Stragglers& rules = run.straggle({{.from_s = 0, .to_s = 90, .device = 7, .slowdown = 3}}, StragglerAnswer::replan);
  rules.detect = 2;
  rules.stop_s = 5;
  const ProductionRun done = run.result();
  // Two steps of 30 s, the stop, and two of 20 s to 105 s; the device has recovered then: two steps of 10 s, the stop.
  CHECK((happened(done) == Happened{{0, ProductionEventKind::slow},
                                    {60, ProductionEventKind::replanned},
                                    {90, ProductionEventKind::recovered},
                                    {125, ProductionEventKind::replanned}}));
  CHECK(done.spent.stragglers_s == Approx(2 * 20 + 2 * 10));
  CHECK(done.spent.answers_s == Approx(2 * 5));
  CHECK(done.steps == 2 + 2 + 2 + 4);  // from 130 s to 170 s
}

TEST_CASE("a device below the threshold is never known", "[production]") {
  Run run(100);
  run.straggle({{.from_s = 0, .to_s = 1e6, .device = 7, .slowdown = 1.1}}, StragglerAnswer::replan).threshold = 1.2;
  CHECK((happened(run.result()) == Happened{{0, ProductionEventKind::slow}}));
}

TEST_CASE("a replaced node takes its slow devices along, and nothing is lost", "[production]") {
  Run run(100);
  Stragglers& rules = run.straggle({{.from_s = 0, .to_s = 1e6, .device = 7, .node = 1, .slowdown = 2},
                                    {.from_s = 0, .to_s = 1e6, .device = 6, .node = 1, .slowdown = 1.5}},
                                   StragglerAnswer::replace);
  rules.detect = 1;
  rules.stop_s = 30;
  run.fail({});
  const ProductionRun done = run.result();
  CHECK(done.count(ProductionEventKind::replaced) == 1);
  CHECK(done.spent.answers_s == Approx(30));
  CHECK(done.spent.stragglers_s == Approx(10));
  CHECK(done.steps == 1 + 5);  // from 50 s on
  CHECK(done.lost_steps == 0);
}

TEST_CASE("a spare takes the place of a node that fails, with its slow devices", "[production]") {
  Run run(200);
  run.straggle({{.from_s = 0, .to_s = 1e6, .device = 7, .node = 1, .slowdown = 2},
                {.from_s = 0, .to_s = 1e6, .device = 16, .node = 2, .slowdown = 1.5}});
  run.fail({{20, 1}});
  const ProductionRun done = run.result();
  CHECK(done.steps == 8);  // from 80 s on, of 15 s each
  CHECK(done.spent.stragglers_s == Approx(8 * 5));
}

TEST_CASE("what nodes do while the job stands still touches no step", "[production]") {
  Run run(100);
  run.straggle({{.from_s = 25, .to_s = 35, .device = 7, .slowdown = 2}});
  run.fail({{20, 1}});
  CHECK((happened(run.result()) == Happened{{20, ProductionEventKind::failed}}));
}

/// Every step waits as many seconds as batches have been trained since the last restart.
class GrowingWaits final : public DataSupply {
 public:
  [[nodiscard]] Duration wait(double at_s, const TimedStep& /*step*/, std::int64_t number) override {
    asked.emplace_back(at_s, number);
    return Duration::seconds(since_++);
  }
  void begin_again(double /*at_s*/) override { since_ = 0; }
  [[nodiscard]] std::vector<LoaderEvent> take_events() override {
    return {{.kind = LoaderEvent::Kind::lost, .step = 1, .at_s = 12, .source = "web", .pause = Duration::seconds(3)}};
  }
  std::vector<std::pair<double, std::int64_t>> asked;

 private:
  int since_ = 0;
};

TEST_CASE("steps wait for their data, and after a restart nothing is loaded ahead", "[production]") {
  Run run(150);
  run.fail({{34, 0}});
  GrowingWaits waits;
  const ProductionRun done = run.result(&waits);
  // Three steps to 33 s, and a second of the fourth; from 94 s on 10, 11, 12, 13 and 14 s.
  CHECK(done.spent.lost_s == Approx(34));
  CHECK(done.steps == 5);
  CHECK(done.spent.steps_s[index_of(Activity::data_wait)] == Approx(0 + 1 + 2 + 3 + 4));
  CHECK(done.spent.total_s() == Approx(94 + 60));
  REQUIRE(waits.asked.size() == 4 + 5);
  CHECK((waits.asked[1] == std::pair<double, std::int64_t>(10, 1)));
  CHECK((waits.asked[4] == std::pair<double, std::int64_t>(94, 0)));
  CHECK(done.count(ProductionEventKind::loader_lost) == 1);
}

TEST_CASE("a run stops when its steps do, or when it is asked to", "[production]") {
  class NoSteps final : public TimedSteps {
   public:
    [[nodiscard]] std::int64_t batches() const override { return 1; }
    [[nodiscard]] std::optional<TimedStep> step(std::int64_t /*batch*/, const DeviceState& /*state*/) override {
      return std::nullopt;
    }
  };
  NoSteps none;
  Run run(100);
  CHECK_FALSE(run_production({run.options, run.failures, 1, run.incidents}, none, nullptr).has_value());
  const auto until_fifteen = [](double seconds) { return seconds < 15; };
  CHECK_FALSE(run_production({run.options, run.failures, 1, run.incidents}, run.steps, nullptr, until_fifteen));
  CHECK(run.steps.trained.size() == 2);
}

TEST_CASE("the share of steps that count is what Daly's model expects", "[production]") {
  constexpr double mtbf_s = 3000;
  constexpr double time_s = 4e6;
  Run run(time_s);
  run.fail({});
  run.failures->node_mtbf_s = mtbf_s * 4;
  RandomStream random(1, "failures of a test");
  for (double at_s = 0; at_s < time_s;) {
    at_s -= mtbf_s * std::log1p(-random.uniform());
    run.incidents.failures.push_back({at_s, 0});
  }
  const ProductionRun done = run.result();
  const double share = done.spent.steps_that_count_s() / done.spent.total_s();
  const double expected = expected_goodput(*run.failures, mtbf_s, 100);
  // About 1,300 failures, each of which costs about 60 + 50 s with a deviation of about 30 s: their number deviates by
  // its root, 36, which is 36 x 113 s of the run, a thousandth; three of these are allowed.
  CHECK(std::abs(share - expected) < 3e-3);
}

}  // namespace
}  // namespace hdpsim
