#include "sim/production/simulated_times.h"

#include "sim/run/step.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

constexpr char text[] = R"(name: times
cluster: {preset: a100-rail-3tier, gpus: 32}
model: {preset: llama-7b}
profile: bytescale-implied
data: {lengths: {preset: github}, context: 64Ki, tokens_per_step: 1Mi, steps: 3}
mesh: {tp: 2}
plans: [{hdp-balance: {search: none}}]
production:
  time: 1 h
)";
constexpr char sampling[] =
    "  stragglers: {device_mtbf: 1 d, slowdown: {from: 2, to: 2}, duration: {from: 1 h, to: 1 h}, batches: 2}\n";

/// The steps of a study's plan, and the steps that a study with other values simulates.
class Steps {
 public:
  explicit Steps(const std::string& more = "")
      : file_(text + more), catalog_(HDPSIM_SOURCE_DIR), study_(load_study(file_.path(), {}, catalog_)) {
    times_ = make_simulated_times(study_, study_.points.front(), 0, catalog_, known, {.jobs = 2});
  }

  [[nodiscard]] Duration time(std::int64_t batch, const DeviceState& state) const {
    return times_->step(batch, state)->time;
  }
  [[nodiscard]] Duration of_study(std::int64_t step, const std::vector<std::string>& overrides) {
    const Study study = load_study(file_.path(), overrides, catalog_);
    const StudyPoint& point = study.points.front();
    return simulate_step(point, 0, step, *point.make_world()).result.time;
  }

  SimulatedSteps known;

 private:
  test::StudyFile file_;
  Catalog catalog_;
  Study study_;
  std::unique_ptr<TimedSteps> times_;
};

const std::vector<SlowDevice> slow = {{5, 1.5}};

TEST_CASE("steps are those of the study, with slow devices those with faults that planners know or not",
          "[production]") {
  Steps steps;
  for (const std::int64_t batch : {2, 0}) {
    CHECK(steps.time(batch, {}) == steps.of_study(batch, {}));
    CHECK(steps.time(batch, {slow, {}}) == steps.of_study(batch, {"faults=[{device: 5, slowdown: 1.5}]"}));
    CHECK(steps.time(batch, {slow, slow}) ==
          steps.of_study(batch, {"faults=[{device: 5, slowdown: 1.5}]", "planner.knows=[faults]"}));
  }
  CHECK(steps.time(0, {slow, slow}) < steps.time(0, {slow, {}}));
  CHECK(steps.time(0, {{}, slow}) > steps.time(0, {}));  // a device that has recovered, and is still spared
}

TEST_CASE("where batches are sampled, a step takes as many times longer as the sample", "[production]") {
  Steps steps(sampling);
  const auto unknown = [&](std::int64_t batch) {
    return steps.of_study(batch, {"faults=[{device: 5, slowdown: 1.5}]"}).seconds();
  };
  const auto usual = [&](std::int64_t batch) { return steps.of_study(batch, {}).seconds(); };
  // Two of three batches, evenly spaced: 0 and 1.
  const double longer = (unknown(0) + unknown(1)) / (usual(0) + usual(1));
  CHECK(steps.time(2, {slow, {}}).seconds() == Approx(longer * usual(2)));
  CHECK(steps.time(2, {}).seconds() == Approx(usual(2)));
}

TEST_CASE("what is stopped simulates no further", "[production]") {
  const test::StudyFile file(text);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const Study study = load_study(file.path(), {}, catalog);
  SimulatedSteps known;
  const auto times =
      make_simulated_times(study, study.points.front(), 0, catalog, known, {.jobs = 1, .stop = [] { return true; }});
  CHECK_FALSE(times->step(0, {}).has_value());
}

}  // namespace
}  // namespace hdpsim
