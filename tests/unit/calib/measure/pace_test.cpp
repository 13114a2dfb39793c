#include "calib/measure/pace.h"

#include "calib/fit/fit.h"
#include "calib/measure/collect.h"
#include "calib/measure/plan.h"
#include "calib/measure/session.h"
#include "sim/base/diagnostic.h"
#include "tests/support/catch.h"
#include "tests/support/synthetic_backend.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim::calib {
namespace {

using test::SyntheticDevice;
using test::SyntheticLaw;

/// What a calibration finds out about a synthetic device.
DeviceProfile calibrated(const SyntheticLaw& law) {
  SyntheticDevice device(law);
  const Wishes wishes{.budget_s = 20, .sampling_s = 0.05};
  const std::unique_ptr<StoppingRule> rule = stopping_rule(wishes);
  const test::TemporaryFolder folder;
  Journal journal = Journal::start(folder.path() / "samples.jsonl",
                                   {.program = "test", .plan = "test", .circumstances = device.circumstances()});
  const SessionOptions options{.speed = device.speed(device.circumstances()), .rule = rule.get()};
  (void)run_session(device, plan_measurements(device, options.speed, wishes), journal, options);
  return fit_profile(collect(journal.circumstances(), journal.measurements()));
}

FamilyFactors pace_of(const SyntheticLaw& now, const DeviceProfile& profile) {
  return PaceMeter(std::make_unique<SyntheticDevice>(now), profile).read();
}

TEST_CASE("a device that is as it was measured has a pace of 1", "[pace]") {
  const SyntheticLaw law;
  const FamilyFactors pace = pace_of(law, calibrated(law));
  for (std::size_t i = 0; i < cost_families; ++i) CHECK(pace[static_cast<CostFamily>(i)] == Approx(1));
}

TEST_CASE("every family has a pace of its own", "[pace]") {
  SyntheticLaw law{.launch_s = 0, .row_s = 0};
  const DeviceProfile profile = calibrated(law);
  law.flops /= 1.25;
  law.bytes_per_s /= 1.5;
  const FamilyFactors pace = pace_of(law, profile);
  for (const CostFamily bound_by_flops :
       {CostFamily::attention_forward, CostFamily::attention_backward, CostFamily::gemm}) {
    CHECK(pace[bound_by_flops] == Approx(1.25));
  }
  CHECK(pace[CostFamily::memory_bound] == Approx(1.5));
  CHECK(pace[CostFamily::messages] == 1);  // not timed
}

TEST_CASE("kernels are timed beside neighbours at work, as calibrations time them", "[pace]") {
  auto device = std::make_unique<SyntheticDevice>();
  const SyntheticDevice& watched = *device;
  PaceMeter meter(std::move(device), calibrated({}));
  (void)meter.read();
  CHECK(watched.with_neighbours() > 0);
}

TEST_CASE("a profile without measured kernels has no pace", "[pace]") {
  CHECK_THROWS_AS(PaceMeter(std::make_unique<SyntheticDevice>(), DeviceProfile{}), InputError);
}

}  // namespace
}  // namespace hdpsim::calib
