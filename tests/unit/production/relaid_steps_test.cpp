#include "sim/production/relaid_steps.h"

#include "sim/production/simulated_times.h"
#include "sim/run/step.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

constexpr char job_text[] = R"(name: relaid
cluster: {preset: a800-rail, gpus: 64}
model: {preset: llama2-70b}
profile: a800-published
data: {lengths: {fixed: 4Ki}, context: 4Ki, tokens_per_step: 256Ki, steps: 1}
mesh: {tp: 8, pp: 4, capacity: 4Ki, zero: 1}
plans: [static]
production:
  time: 1 h
  stragglers:
    {device_mtbf: 30 d, slowdown: {from: 2, to: 2}, duration: {from: 1 h, to: 1 h}, answer: relayout}
)";

/// A study's first plan, and its steps.
class RelaidJob {
 public:
  explicit RelaidJob(const std::vector<std::string>& overrides = {})
      : file_(job_text), catalog_(HDPSIM_SOURCE_DIR), study_(load_study(file_.path(), overrides, catalog_)) {
    times_ = make_simulated_times(study_, study_.points.front(), 0, catalog_, known_, {});
  }

  [[nodiscard]] double seconds(const DeviceState& state) const { return times_->step(0, state)->time.seconds(); }
  [[nodiscard]] Adaptation adapt(const std::vector<SlowDevice>& before, const std::vector<SlowDevice>& now) const {
    return times_->adapt(before, now);
  }
  [[nodiscard]] RelaidSteps relaid() const {
    const StudyPoint& point = study_.points.front();
    const PointStep first = point.planned(0, 0, point.batches_of(0).step(0));
    return RelaidSteps({study_, point, 0}, first);
  }

 private:
  test::StudyFile file_;
  Catalog catalog_;
  Study study_;
  SimulatedSteps known_;
  std::unique_ptr<TimedSteps> times_;
};

using Devices = std::vector<SlowDevice>;

TEST_CASE("what a slow device costs the usual layout, by the orders of passes, is what its simulation says",
          "[relayout]") {
  const RelaidJob job;
  const double usual = job.seconds({});
  for (const Devices& slow : {Devices{{3, 2}}, Devices{{3, 5}}, Devices{{60, 3}}}) {
    RelaidSteps relaid = job.relaid();
    CHECK(usual + relaid.more_seconds({slow, {}}) == Approx(job.seconds({slow, {}})).epsilon(0.03));
  }
}

TEST_CASE("a job that is laid out anew around a slow GPU loses little more than the GPU", "[relayout]") {
  const RelaidJob job;
  const Devices slow = {{3, 5}};
  CHECK(job.seconds({slow, {}}) > 3 * job.seconds({}));
  CHECK(job.seconds({slow, slow}) < 1.1 * job.seconds({}));  // 1 of 64 GPUs, whose node works in smaller groups
}

TEST_CASE("states move when the layout changes, and only then", "[relayout]") {
  const RelaidJob job;
  const Devices slow = {{3, 5}};
  const Adaptation there = job.adapt({}, slow);
  CHECK(there.moving_s > 0);
  CHECK_THAT(there.layout, Catch::Matchers::Contains("; without 3"));
  CHECK(job.adapt(slow, {}).moving_s > 0);
  CHECK(job.adapt(slow, {}).layout.empty());
  CHECK(job.adapt(slow, slow).moving_s == 0);
  CHECK(job.adapt({}, {{3, 1.1}}).moving_s == 0);  // below the threshold
}

TEST_CASE("without the node of a slow device, steps are those of a smaller mesh", "[relayout]") {
  const std::vector<std::string> drop = {"production.stragglers.answer=drop"};
  const RelaidJob job(drop);
  const Devices slow = {{3, 5}};
  const RelaidJob smaller({"mesh.hdp=1", "mesh.nodes=[1-4]"});
  CHECK(job.seconds({slow, slow}) == smaller.seconds({}));
  CHECK(job.seconds({slow, {}}) == RelaidJob().seconds({slow, {}}));
}

TEST_CASE("a job of one pipeline cannot go on without a node", "[relayout]") {
  const RelaidJob job({"production.stragglers.answer=drop", "mesh.pp=8"});
  const Devices slow = {{3, 5}};
  CHECK_THAT(test::problems_of([&] {
               (void)job.seconds({slow, slow});
             }).front(),
             Catch::Matchers::Contains("without the nodes of 1 slow devices, static has no plan"));
}

TEST_CASE("a plan whose micro-batches are shared cannot be laid out anew", "[relayout]") {
  CHECK_THAT(
      test::problems_of([] { RelaidJob job({"plans=[static: {cp: 2}]"}); }).front(),
      Catch::Matchers::Contains("the pipelines of static cannot be laid out anew: several ranks share a micro-batch"));
  CHECK_THAT(test::problems_of([] { RelaidJob job({"mesh.schedule=gpipe"}); }).front(),
             Catch::Matchers::Contains("its schedule is gpipe, and not 1f1b"));
}

}  // namespace
}  // namespace hdpsim
