#include "sim/run/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/run/step.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::StudyFile;

const WhatIf* change_of(const Explanation& told, const std::string& change) {
  const auto found =
      std::find_if(told.changes.begin(), told.changes.end(), [&](const WhatIf& each) { return each.change == change; });
  return found == told.changes.end() ? nullptr : &*found;
}

TEST_CASE("what would help is sorted, never slower, and within what one thing can give", "[explain]") {
  const Study study = StudyFile(test::good_study).load();
  for (std::size_t plan = 0; plan < study.plans.size(); ++plan) {
    const Explanation told = explain(study.points[0], plan, 1);
    CHECK(told.step == 1);
    REQUIRE_FALSE(told.changes.empty());
    for (std::size_t i = 1; i < told.changes.size(); ++i) {
      CHECK(told.changes[i - 1].step_time <= told.changes[i].step_time);
    }
    for (const WhatIf& change : told.changes) {
      CHECK(change.step_time < told.step_time);
      if (!change.is_bound) CHECK(change.step_time >= told.step_time.scaled(0.5));  // nothing is more than doubled
    }
    const WhatIf* nobody_waits = change_of(told, "nobody waits for others");
    REQUIRE(nobody_waits != nullptr);
    CHECK(nobody_waits->is_bound);
    CHECK(nobody_waits->step_time == told.busy.mean);
    CHECK(change_of(told, "all devices of nominal speed") == nullptr);
    CHECK(change_of(told, "all links of full rate") == nullptr);
  }
}

Duration sum_of_parts(const DistanceToBound& distance) {
  return distance.added + distance.uneven + distance.waiting + distance.unknown_to_plan;
}

TEST_CASE("a step is its bound and what lies between, and the planner's estimate has all but the last part",
          "[explain]") {
  const Study study = StudyFile(test::good_study).load();
  for (std::size_t plan = 0; plan < study.plans.size(); ++plan) {
    const Explanation told = explain(study.points[0], plan, 1);
    const DistanceToBound& distance = told.distance;
    CHECK(distance.bound > distance.ending);
    CHECK(distance.ending > Duration{});
    CHECK(distance.bound + sum_of_parts(distance) == told.step_time);
    CHECK(distance.estimate == told.step_time - distance.unknown_to_plan);
    CHECK(distance.uneven >= Duration{});
    CHECK(distance.waiting >= Duration{});
  }
}

TEST_CASE("what comes after the last pass is part of the bound, and equal work leaves nothing uneven", "[explain]") {
  const Study study = StudyFile(test::good_study)
                          .load({"plans=[static]",
                                 "data={lengths: {fixed: 4Ki}, context: 4Ki, "
                                 "tokens_per_step: 256Ki, steps: 1}"});
  const Explanation told = explain(study.points[0], 0, 0);
  CHECK(told.distance.ending == told.ending);
  CHECK(told.distance.uneven == Duration{});
  CHECK(told.distance.waiting == Duration{});
}

TEST_CASE("planners know that packs of short sequences fill a device sooner than one long sequence", "[explain]") {
  for (const std::int64_t length : {64, 128, 256, 512, 1024}) {
    CAPTURE(length);
    const Study study =
        StudyFile(test::good_study)
            .load({"cluster={preset: h100-rail, gpus: 8}", "model={preset: mistral-7b, num_hidden_layers: 8}",
                   "profile=h100-published", "mesh={tp: 8, capacity: 1024}", "plans=[static]",
                   fmt::format("data={{lengths: {{fixed: {}}}, context: 1024, tokens_per_step: 4Ki, steps: 1}}",
                               length)});
    const Explanation told = explain(study.points[0], 0, 0);
    CHECK(std::abs(told.distance.unknown_to_plan.seconds()) < 0.01 * told.step_time.seconds());
  }
}

TEST_CASE("planners know what groups of whole nodes gather and trade, whatever the lengths of sequences", "[explain]") {
  for (const char* way : {"all_gather", "a2a"}) {
    for (const char* length : {"1Ki", "128Ki"}) {
      CAPTURE(way, length);
      const Study study =
          StudyFile(test::good_study)
              .load({"cluster={preset: h100-rail, gpus: 64}", "model={preset: llama-7b}", "profile=h100-published",
                     fmt::format("mesh={{tp: 4, capacity: 16Ki, cp_comm_type: {}}}", way), "plans=[static: {cp: 8}]",
                     fmt::format("data={{lengths: {{fixed: {}}}, context: 128Ki, tokens_per_step: 2Mi, steps: 1}}",
                                 length)});
      const Explanation told = explain(study.points[0], 0, 0);
      CHECK(std::abs(told.distance.unknown_to_plan.seconds()) < 0.03 * told.step_time.seconds());
    }
  }
}

TEST_CASE("kernels twice as fast never gain more than half of their time, however attention is computed", "[explain]") {
  // Small kernels, which wait for the host that issues them.
  const StudyFile file(test::good_study);
  for (const char* attention : {"flash", "unfused"}) {
    CAPTURE(attention);
    const Study study = file.load({"cluster={preset: dgx-a100-superpod, gpus: 8}", "model={preset: gpt-1.7b}",
                                   "profile=a100-sxm-published", "mesh={tp: 8, capacity: 512}", "plans=[static]",
                                   "data={lengths: {fixed: 512}, context: 512, tokens_per_step: 2Ki, steps: 1}",
                                   fmt::format("kernels={{attention: {}}}", attention)});
    const Explanation told = explain(study.points[0], 0, 0);
    const WhatIf* change = change_of(told, "attention twice as fast");
    if (change == nullptr) continue;
    // Kernels are rounded to picoseconds.
    CHECK(told.step_time - change->step_time <= told.mean[Activity::attention].scaled(0.5) + 1_ns);
  }
}

TEST_CASE("a slow device and a degraded link are among what would help", "[explain]") {
  const Study study = StudyFile(test::good_study)
                          .load({"cluster.speed={3: 0.4}", "cluster.links={node 1 nic 3: 0.02}", "plans=[static]"});
  const Explanation told = explain(study.points[0], 0, 0);
  CHECK(change_of(told, "all devices of nominal speed") != nullptr);
  CHECK(change_of(told, "all links of full rate") != nullptr);
}

TEST_CASE("a fault of a step is among what would help in that step only", "[explain]") {
  const StudyFile file(test::good_study);
  const Study study = file.load({"faults=[{device: 3, from_step: 1, to_step: 1, slowdown: 3}]", "plans=[static]"});
  const Study healthy = file.load({"plans=[static]"});
  CHECK(change_of(explain(study.points[0], 0, 0), "all devices of nominal speed") == nullptr);
  const Explanation told = explain(study.points[0], 0, 1);
  const WhatIf* change = change_of(told, "all devices of nominal speed");
  REQUIRE(change != nullptr);
  CHECK(change->step_time == explain(healthy.points[0], 0, 1).step_time);
}

TEST_CASE("what the framework spends beside all else would help too", "[explain]") {
  const StudyFile file(test::good_study);
  CHECK(change_of(explain(file.load().points[0], 0, 0), "no overheads of the framework") == nullptr);
  const Study study = file.load({"overheads={per_step: 3 s}"});
  const Explanation told = explain(study.points[0], 0, 0);
  const WhatIf* change = change_of(told, "no overheads of the framework");
  REQUIRE(change != nullptr);
  CHECK((told.step_time - change->step_time).seconds() == 3);
}

TEST_CASE("faster copies to the host would help where a step waits for them, whatever the PCIe", "[explain]") {
  const Study study = StudyFile(test::good_study).load({"plans=[{hdp-naive: {offload: 1}}]", "mesh.capacity=8Ki"});
  const Explanation told = explain(study.points[0], 0, 0);
  REQUIRE(told.mean[Activity::offload_stall] > Duration{});
  CHECK(change_of(told, "copies to and from the host twice as fast") != nullptr);
}

TEST_CASE("explaining changes nothing: the step is that of the study", "[explain]") {
  const Study study = StudyFile(test::good_study).load();
  const StudyPoint& point = study.points[0];
  const auto world = point.make_world();
  CHECK(explain(point, 0, 1).step_time == simulate_step(point, 0, 1, *world).result.time);
}

TEST_CASE("the typical step of a run is nearest to the median", "[explain]") {
  Run run;
  for (const std::int64_t seconds : {9, 4, 5, 1}) {
    StepResult step;
    step.step = std::ssize(run.result.steps);
    step.time = seconds * 1_s;
    run.result.steps.push_back(step);
  }
  run.metrics.step_time_s.p50 = 4.5;
  CHECK(typical_step(run) == 1);  // as near as step 2, and before it
  run.metrics.step_time_s.p50 = 8;
  CHECK(typical_step(run) == 0);
}

}  // namespace
}  // namespace hdpsim
