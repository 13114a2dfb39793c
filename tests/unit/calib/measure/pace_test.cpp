#include "calib/measure/pace.h"

#include "calib/fit/fit.h"
#include "calib/measure/collect.h"
#include "calib/measure/measurement_plan.h"
#include "calib/measure/measurement_session.h"
#include "sim/base/diagnostic.h"
#include "sim/base/units.h"
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
  const StoppingRule rule = stopping_rule(wishes);
  const test::TemporaryFolder folder;
  SampleJournal journal = SampleJournal::start(
      folder.path() / "samples.jsonl", {.program = "test", .plan = "test", .circumstances = device.circumstances()});
  const SessionOptions options{.speed = device.speed(device.circumstances()), .rule = &rule};
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

TEST_CASE("messages are timed where all of a profile is asked for, and what cannot be is named", "[pace]") {
  SyntheticLaw law{.message_latency_s = 0};
  DeviceProfile profile = calibrated(law);
  profile.samples.copies.push_back({.kind = CopyKind::d2h, .bytes = 1_MiB, .time = 1_ms, .spread = {}});
  MessageSample far = profile.samples.messages.front();
  far.link = LinkKind::network;
  far.kind = MessageKind::all_reduce;
  far.ranks = 16;
  profile.samples.messages.push_back(far);
  law.bytes_per_s /= 2;
  PaceMeter meter(std::make_unique<SyntheticDevice>(law), profile, PaceScope::everything);
  CHECK(meter.not_timed() == std::vector<std::string>{"all_reduce of 16 ranks between nodes", "copies d2h"});
  CHECK(meter.device_name() == "synthetic");
  const FamilyFactors pace = meter.read();
  CHECK(pace[CostFamily::messages] == Approx(2));
  CHECK(pace[CostFamily::collectives] == Approx(2));
  CHECK(pace[CostFamily::host_copies] == 1);
}

TEST_CASE("what a device cannot time now, because it is not as it was found, is left out of a round", "[pace]") {
  const SyntheticLaw law;
  auto device = std::make_unique<SyntheticDevice>(law);
  SyntheticDevice& disturbed = *device;
  PaceMeter meter(std::move(device), calibrated(law), PaceScope::everything);
  const std::size_t all = meter.ratios().size();
  disturbed.disturb_messages(1);
  CHECK(meter.ratios().size() == all - 1);
}

TEST_CASE("a profile without measured kernels has no pace", "[pace]") {
  CHECK_THROWS_AS(PaceMeter(std::make_unique<SyntheticDevice>(), DeviceProfile{}), InputError);
}

}  // namespace
}  // namespace hdpsim::calib
