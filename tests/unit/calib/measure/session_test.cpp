#include "calib/measure/measurement_session.h"

#include <algorithm>
#include <map>

#include "calib/fit/fit.h"
#include "calib/measure/collect.h"
#include "calib/measure/workload.h"
#include "tests/support/catch.h"
#include "tests/support/synthetic_backend.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim::calib {
namespace {

using test::SyntheticDevice;
using test::SyntheticLaw;

/// A calibration of a synthetic device with its journal.
struct Calibration {
  explicit Calibration(const SyntheticLaw& law = {}) : device(law) {}

  SessionResult run(SessionOptions options = {}) {
    const StoppingRule rule = stopping_rule(wishes);
    options.speed = device.speed(device.circumstances());
    options.rule = &rule;
    options.rounds = wishes.rounds;
    plan = plan_measurements(device, options.speed, wishes);
    return run_session(device, plan, journal, options);
  }
  [[nodiscard]] std::size_t total() const { return plan.size() * static_cast<std::size_t>(wishes.rounds); }

  test::TemporaryFolder folder;
  SyntheticDevice device;
  Wishes wishes = {.budget_s = 20, .sampling_s = 0.05};
  SampleTitle header{.program = "test", .plan = "test", .circumstances = device.circumstances()};
  std::filesystem::path path = folder.path() / "samples.jsonl";
  SampleJournal journal = SampleJournal::start(path, header);
  std::vector<Planned> plan;
};

std::vector<std::string> order_of(const std::vector<Measurement>& measurements, int round) {
  std::vector<std::string> order;
  for (const Measurement& measurement : measurements) {
    if (measurement.round == round) order.push_back(subject_text(measurement.subject));
  }
  return order;
}

std::size_t essential_of(const std::vector<Planned>& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.begin(), plan.end(), [](const Planned& planned) { return planned.essential; }));
}

TEST_CASE("everything is measured once a round, each round in another order", "[session]") {
  Calibration calibration;
  const SessionResult result = calibration.run();
  CHECK_FALSE(result.stopped);
  CHECK(result.left_out == 0);
  CHECK(result.refusals.empty());
  std::vector<std::string> first = order_of(calibration.journal.measurements(), 0);
  std::vector<std::string> second = order_of(calibration.journal.measurements(), 1);
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  CHECK((first == second));
  CHECK(first.size() == calibration.plan.size());
}

TEST_CASE("a session that is stopped keeps what it has, and resuming measures only the rest", "[session]") {
  Calibration calibration;
  const SessionResult stopped =
      calibration.run({.stop = [&] { return calibration.journal.measurements().size() >= 25; }});
  CHECK(stopped.stopped);
  CHECK(calibration.journal.measurements().size() == 25);
  CHECK(stopped.left_out == calibration.total() - 25);

  { const SampleJournal ended = std::move(calibration.journal); }  // one at a time writes it
  calibration.journal = SampleJournal::resume(calibration.path, calibration.header, [](const Diagnostic&) { FAIL(); });
  std::size_t told = 0;
  std::size_t first_done = calibration.total();
  const SessionResult rest = calibration.run({.report = [&](const Progress& progress) {
    ++told;
    first_done = std::min(first_done, progress.done);
  }});
  CHECK_FALSE(rest.stopped);
  CHECK(told == calibration.total() - 25);
  CHECK(first_done == 25);
  CHECK(calibration.journal.measurements().size() == calibration.total());
}

TEST_CASE("a session ends at its time limit as if all were done", "[session]") {
  Calibration calibration;
  const SessionResult result = calibration.run({.time_limit_s = 1e-9});
  CHECK_FALSE(result.stopped);
  CHECK(result.left_out == calibration.total() - essential_of(calibration.plan));
}

TEST_CASE("however short the time is, every curve of kernels has the samples that it needs", "[session]") {
  Calibration calibration;
  calibration.wishes.budget_s = 1e-9;  // a place for nothing
  const SessionResult result = calibration.run({.time_limit_s = 1e-9});
  CHECK(result.beyond_limit_s > 0);
  CHECK(result.left_out == calibration.total() - essential_of(calibration.plan));
  Samples samples = collect(calibration.header.circumstances, calibration.journal.measurements());
  CHECK(leave_out_thin_curves(samples).empty());
  std::map<std::string, int> curves;
  for (const Subject& subject : subjects_of(samples)) ++curves[curve_of(subject)];
  CHECK(curves.size() == 2 * 2 * 2 + 2);  // attention of all directions, masks and head dimensions, and two more
  CHECK_NOTHROW(fit_profile(samples));
}

TEST_CASE("what matters most is measured in all rounds before anything else is", "[session]") {
  Calibration calibration;
  static_cast<void>(calibration.run());
  std::map<std::string, Planned> planned_of;
  for (const Planned& planned : calibration.plan) planned_of[subject_text(planned.subject)] = planned;
  int level = 0;
  const auto& measurements = calibration.journal.measurements();
  // But for a round of what is essential, which comes before all.
  const std::size_t essential = essential_of(calibration.plan);
  REQUIRE(measurements.size() > essential);
  for (std::size_t index = 0; index < measurements.size(); ++index) {
    const Measurement& measurement = measurements[index];
    const Planned& planned = planned_of.at(subject_text(measurement.subject));
    CHECK((planned.essential && measurement.round == 0) == (index < essential));
    if (index < essential) continue;
    const int next = planned.level;
    CHECK(next >= level);
    level = next;
  }
  CHECK(level >= 1);
}

TEST_CASE("what a disturbance has made unlike is measured again until its rounds agree", "[session]") {
  Calibration calibration;
  const std::vector<Planned> plan = {{Gemm{64, 64, 64}, 1, 1}, {Gemm{128, 64, 64}, 1, 1}, {Gemm{256, 64, 64}, 1, 1}};
  const StoppingRule rule{0.01, {.least_s = 0}};
  const SessionOptions options{.speed = calibration.device.speed(calibration.device.circumstances()),
                               .rule = &rule,
                               .rounds = 2,
                               .most_rounds = 20};
  const auto at = [](double seconds) { return Timing{seconds, seconds, seconds, 0, 10}; };
  // The first two were disturbed in both rounds; of the third nothing is known.
  for (int round = 0; round < 2; ++round) {
    calibration.journal.add({plan[0].subject, round, at(2 + round)});
    calibration.journal.add({plan[1].subject, round, at(round == 0 ? 4 : 5)});
  }
  const SessionResult result = run_session(calibration.device, plan, calibration.journal, options);
  CHECK(result.unsettled == 0);
  std::map<std::string, int> rounds;
  for (const Measurement& measurement : calibration.journal.measurements()) {
    ++rounds[label_of(measurement.subject)];
  }
  // The rank of a lower quartile of five is uncertain by sqrt(3/16 / 5) = 0.19: quantiles 0.06 to 0.44 are among the
  // three that nothing disturbed. Of four they are not.
  CHECK(rounds[label_of(plan[0].subject)] == 5);
  CHECK(rounds[label_of(plan[1].subject)] == 5);
  CHECK(rounds[label_of(plan[2].subject)] == 2);
}

TEST_CASE("what is doubtful is measured again for as long as it is named, a few times at most", "[session]") {
  Calibration calibration;
  const std::vector<Planned> plan = {{Gemm{64, 64, 64}, 1}, {Gemm{128, 64, 64}, 1}};
  const StoppingRule rule = stopping_rule(calibration.wishes);
  const int times = GENERATE(0, 1, 3, 1000);
  int asked = 0;
  const SessionResult result = run_session(
      calibration.device, plan, calibration.journal,
      {.speed = calibration.device.speed(calibration.device.circumstances()),
       .rule = &rule,
       .rounds = 2,
       .doubtful = [&](const SampleJournal&) {
         return asked++ < times ? std::vector<Subject>{plan[1].subject, Gemm{1, 1, 1}} : std::vector<Subject>{};
       }});
  CHECK_FALSE(result.stopped);
  const std::size_t measured = calibration.journal.measurements().size();
  if (times < 1000) CHECK(measured == plan.size() * 2 + static_cast<std::size_t>(times));
  CHECK(measured < 20);
}

TEST_CASE("what the device is not ready for is measured when it is as found again", "[session]") {
  Calibration calibration;
  const std::vector<Planned> plan = {{MessageSubject{MessageKind::send_recv, 2, 4096}, 1}, {Gemm{64, 64, 64}, 1}};
  const StoppingRule rule = stopping_rule(calibration.wishes);
  calibration.device.disturb_messages(2);
  const SessionResult result =
      run_session(calibration.device, plan, calibration.journal,
                  {.speed = calibration.device.speed(calibration.device.circumstances()), .rule = &rule, .rounds = 1});
  CHECK(result.postponed == 1);
  CHECK(result.left_out == 0);
  CHECK(calibration.device.with_neighbours() == 2);  // each was timed once
  REQUIRE(calibration.journal.measurements().size() == 2);
  CHECK(family_of(calibration.journal.measurements().front().subject) == "gemm");
}

TEST_CASE("what no two rounds agree about is counted when rounds are over", "[session]") {
  Calibration calibration({.noise = 0.3});
  const std::vector<Planned> plan = {{Gemm{64, 64, 64}, 1}};
  const StoppingRule rule{1, {.least_runs = 1, .most_runs = 1, .least_s = 0}};
  const SessionResult result = run_session(calibration.device, plan, calibration.journal,
                                           {.speed = calibration.device.speed(calibration.device.circumstances()),
                                            .rule = &rule,
                                            .rounds = 2,
                                            .most_rounds = 4,
                                            .agreement = 1e-9});
  CHECK(result.unsettled == 1);
  CHECK(calibration.journal.measurements().size() == 4);
}

TEST_CASE("what the rounds agree about gets the least rounds, too, because all may have met the same disturbance",
          "[session]") {
  Calibration calibration;
  const std::vector<Planned> plan = {{MessageSubject{MessageKind::send_recv, 2, 4096}, 1}, {Gemm{64, 64, 64}, 1}};
  const StoppingRule rule = stopping_rule(calibration.wishes);
  const SessionResult result = run_session(calibration.device, plan, calibration.journal,
                                           {.speed = calibration.device.speed(calibration.device.circumstances()),
                                            .rule = &rule,
                                            .rounds = 2,
                                            .least_rounds = 8,
                                            .most_rounds = 12,
                                            .agreement = 1});
  CHECK(result.unsettled == 0);
  CHECK(calibration.journal.measurements().size() == 2 * 8);
}

TEST_CASE("where there are as many rounds as there is time for, what is left is the time", "[session]") {
  Calibration calibration;
  const std::vector<Planned> plan = {{Gemm{64, 64, 64}, 1}, {Gemm{128, 64, 64}, 1}};
  const StoppingRule rule = stopping_rule(calibration.wishes);
  constexpr double limit_s = 1000;
  double left_s = limit_s + 1;
  int told = 0;
  (void)run_session(calibration.device, plan, calibration.journal,
                    {.speed = calibration.device.speed(calibration.device.circumstances()),
                     .rule = &rule,
                     .rounds = 2,
                     .least_rounds = 6,
                     .most_rounds = 6,
                     .time_limit_s = limit_s,
                     .report = [&](const Progress& progress) {
                       if (++told == 1) return;  // of nothing measured nothing is known
                       CHECK(progress.left_s <= limit_s);
                       CHECK(progress.left_s <= left_s);
                       CHECK(progress.total > progress.done);
                       left_s = progress.left_s;
                     }});
  CHECK(told == 2 * 6);
}

TEST_CASE("what is above the physical peak is reported and not recorded", "[session]") {
  // The device claims half of the speed that it really has.
  Calibration calibration;
  const StoppingRule rule = stopping_rule(calibration.wishes);
  DeviceSpeed speed = calibration.device.speed(calibration.device.circumstances());
  speed.peak_flops /= 3;
  const std::vector<Planned> plan = {{Gemm{2048, 2048, 2048}, 1}, {MemoryBoundSubject{"adam", 1 << 26}, 1}};
  const SessionResult result =
      run_session(calibration.device, plan, calibration.journal, {.speed = speed, .rule = &rule, .rounds = 1});
  REQUIRE(result.refusals.size() == 1);
  CHECK_THAT(result.refusals.front(), Catch::Contains("gemm 2048x2048x2048") && Catch::Contains("physical peak"));
  REQUIRE(calibration.journal.measurements().size() == 1);
  CHECK(family_of(calibration.journal.measurements().front().subject) == "memory_bound");
}

TEST_CASE("samples pool the rounds, and the noise floor is how far they lie apart", "[session]") {
  const Subject subject = Gemm{1, 2, 3};
  const Subject alone = Gemm{4, 5, 6};
  const auto at = [](double seconds) { return Timing{seconds, seconds, seconds, 0, 10}; };
  const Samples samples = collect({}, {{subject, 0, at(1)}, {alone, 0, at(7)}, {subject, 1, at(1.5)}});
  REQUIRE(samples.gemm.size() == 2);
  CHECK(samples.gemm[0].timing.median_s == 1.125);  // the lower quartile
  CHECK(samples.gemm[0].timing.runs == 20);
  CHECK(samples.gemm[1].timing.median_s == 7);
  REQUIRE(samples.noise.size() == 1);
  CHECK(samples.noise[0].family == "gemm");
  CHECK(samples.noise[0].pairs == 1);
  CHECK(samples.noise[0].mean == Approx(0.5 / 1.25));
}

TEST_CASE("curves of too few samples are left out, and named", "[session]") {
  const auto message = [](MessageKind kind, std::int64_t bytes) {
    return MessageTiming{.kind = kind, .bytes = bytes, .timing = {1, 1, 1, 0, 1}};
  };
  Samples samples;
  for (std::int64_t bytes = 1; bytes <= 4; ++bytes) samples.messages.push_back(message(MessageKind::all_reduce, bytes));
  for (std::int64_t bytes = 1; bytes <= 3; ++bytes) samples.messages.push_back(message(MessageKind::send_recv, bytes));
  const std::vector<std::string> left_out = leave_out_thin_curves(samples);
  REQUIRE(left_out.size() == 1);
  CHECK(left_out.front() == "send_recv of 2 ranks over nvlink (3)");
  CHECK(samples.messages.size() == 4);
}

TEST_CASE("measured, collected and fitted, a device gives its law back", "[session]") {
  const SyntheticLaw law{.noise = 0.03, .seed = 1};
  Calibration calibration(law);
  calibration.wishes.budget_s = 200;
  CHECK(calibration.run().left_out == 0);
  Samples samples = collect(calibration.journal.circumstances(), calibration.journal.measurements());
  samples.launch_s = launch_seconds(calibration.device);
  CHECK(samples.launch_s == Approx(law.launch_s).epsilon(0.02));
  // Medians of ten runs or more, two rounds.
  for (const NoiseFloor& noise : samples.noise) CHECK(noise.mean <= law.noise);

  const DeviceProfile profile = fit_profile(samples);
  constexpr double close = 0.02;
  REQUIRE(profile.fits.attention.size() == 8);
  for (const AttentionFit& fit : profile.fits.attention) {
    CAPTURE(fit.form, fit.head_dim, fit.backward, fit.causal);
    CHECK(fit.quality.held_out.mean <= close);
    const double pair_s = static_cast<double>((fit.backward ? 10 : 4) * fit.head_dim) / law.flops;
    CHECK(fit.pairs.back().seconds == Approx(pair_s).epsilon(0.05));
  }
  REQUIRE(profile.fits.gemm);
  CHECK(profile.fits.gemm->quality.held_out.mean <= close);
  for (const MemoryBoundFit& fit : profile.fits.memory_bound) {
    CAPTURE(fit.kernel);
    CHECK(fit.quality.held_out.mean <= close);
  }
  REQUIRE(profile.fits.messages.size() == 5);
  for (const MessageFit& fit : profile.fits.messages) CHECK(fit.quality.held_out.mean <= close);
}

}  // namespace
}  // namespace hdpsim::calib
