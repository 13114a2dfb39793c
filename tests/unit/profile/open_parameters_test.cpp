#include "sim/profile/open_parameters.h"

#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// A profile that was fitted: products at 0.9 of their rate, half a second more in every step.
DeviceProfile fitted() {
  Diagnostics problems;
  DeviceProfile profile = *load_profile("a100-sxm-published", HDPSIM_SOURCE_DIR "/calib/profiles", {}, problems);
  fit_parameter("gemm").apply(profile, 0.9);
  fit_parameter("per_step").apply(profile, 0.5);
  profile.provenance.label = ProfileLabel::fitted;
  profile.provenance.fit =
      StepFit{.start = "a profile",
              .set = "steps",
              .source = "a log",
              .parameters = {{.name = "gemm", .start = 1, .value = 0.9, .p5 = 0.8, .p95 = 1},
                             {.name = "per_step", .value = 0.5, .p5 = 0.2, .p95 = 0.8, .correlations = {-0.6}}},
              .rows = {{.figure = "step_time_s", .row = "a step"}}};
  return profile;
}

TEST_CASE("a fitted profile leaves its parameters open, and can be had with another value of one", "[fit]") {
  const DeviceProfile profile = fitted();
  const std::vector<OpenParameter> open = open_parameters(profile);
  REQUIRE(open.size() == 2);
  const DeviceProfile fast = open[0].at(profile, 1);
  CHECK(fast.gemm->full_rate.per_second() == Approx(profile.gemm->full_rate.per_second() / 0.9).epsilon(1e-4));
  CHECK(fast.overheads == profile.overheads);
  CHECK(open[1].at(profile, 0.2).overheads.per_step.time.seconds() == Approx(0.2));
  DeviceProfile as_published = profile;
  as_published.provenance.fit.reset();
  CHECK(open_parameters(as_published).empty());
}

TEST_CASE("a figure that a study states instead of the fitted one is not open", "[fit]") {
  DeviceProfile profile = fitted();
  profile.overheads.per_step.time = 1_s;
  REQUIRE(open_parameters(profile).size() == 1);
  CHECK(open_parameters(profile).front().parameter->name == "gemm");
}

TEST_CASE("the root of correlations makes independent numbers correlated", "[fit]") {
  const DeviceProfile profile = fitted();
  const auto root = correlation_root(open_parameters(profile), profile);
  REQUIRE(root.size() == 2);
  CHECK(root[0] == std::vector<double>{1});
  CHECK(root[1][0] == Approx(-0.6));
  CHECK(root[1][1] == Approx(0.8));  // sqrt(1 - 0.6^2)
}

TEST_CASE("correlations are kept in the file of a profile", "[fit]") {
  const DeviceProfile profile = fitted();
  Diagnostics problems;
  const auto read = read_profile(parse_document("p.yaml", profile_text(profile), problems), profile.name, problems);
  INFO(problems.text());
  REQUIRE(read);
  CHECK(read->provenance.fit->parameters[1].correlations == std::vector<double>{-0.6});
}

}  // namespace
}  // namespace hdpsim
