#include "sim/profile/physical_parameters.h"

#include <fmt/format.h>

#include <set>

#include "sim/cost/cost_model.h"
#include "sim/profile/profile_file.h"
#include "sim/profile/scaled_rates.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"

namespace hdpsim {
namespace {

const std::string shipped = HDPSIM_SOURCE_DIR "/calib/profiles";

DeviceProfile profile_of(const std::string& name) {
  Diagnostics problems;
  auto profile = load_profile(name, shipped, {}, problems);
  INFO(problems.text());
  REQUIRE(profile);
  return std::move(*profile);
}

// The profile as a fit labels it, read back from its text.
std::optional<DeviceProfile> read_back(DeviceProfile profile, std::string& problems) {
  profile.provenance.label = ProfileLabel::fitted;
  profile.provenance.fit = StepFit{.start = "a profile",
                                   .set = "steps",
                                   .source = "a log",
                                   .parameters = {{.name = "gemm", .start = 1, .value = 0.9}},
                                   .rows = {{"step_time_s", "tp 1, dp 8"}}};
  Diagnostics found;
  const Value document = parse_document("p.yaml", profile_text(profile), found);
  auto read = read_profile(document, profile.name, found);
  problems = found.text();
  if (read) CHECK(read->provenance == profile.provenance);
  return read;
}

TEST_CASE("every parameter has a name of its own, and says what it changes and what is believed of it", "[fit]") {
  std::set<std::string> names;
  for (const PhysicalParameter& parameter : fit_parameters()) {
    CAPTURE(parameter.name);
    CHECK(names.insert(std::string(parameter.name)).second);
    CHECK_FALSE(parameter.meaning.empty());
    CHECK_FALSE(parameter.prior.empty());
    CHECK(parameter.width > 0);
    CHECK(parameter.least < parameter.most);
    CHECK(&fit_parameter(parameter.name) == &parameter);
  }
}

TEST_CASE("the table of parameters in calib/README.md is that of the fit", "[fit]") {
  const std::string page = test::text_of(HDPSIM_SOURCE_DIR "/calib/README.md");
  for (const PhysicalParameter& parameter : fit_parameters()) {
    const std::string row = fmt::format("| `{}` | {} | {} |\n", parameter.name, parameter.meaning, parameter.prior);
    CAPTURE(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

TEST_CASE("a profile with any parameter at either end of its range is a profile that reads back", "[fit]") {
  // Of a kind each: published, implied by steps, measured.
  for (const std::string name : {"h100-published", "bytescale-implied", "epyc-cpu"}) {
    const DeviceProfile start = profile_of(name);
    for (const PhysicalParameter& parameter : fit_parameters()) {
      if (!parameter.start(start)) continue;
      const double ceiling = parameter.ceiling == nullptr ? parameter.most : parameter.ceiling(start);
      for (const double value : {parameter.least, std::min(parameter.most, ceiling)}) {
        CAPTURE(name, parameter.name, value);
        DeviceProfile changed = start;
        parameter.apply(changed, value);
        std::string problems;
        CHECK(read_back(changed, problems));
        CHECK(problems.empty());
      }
    }
  }
}

TEST_CASE("a factor of 1 and the value of the profile change no figure", "[fit]") {
  const DeviceProfile start = profile_of(GENERATE("a100-sxm-published", "epyc-cpu"));
  const auto cost = make_cost_model(start);
  for (const PhysicalParameter& parameter : fit_parameters()) {
    const auto value = parameter.start(start);
    if (!value) continue;
    CAPTURE(parameter.name);
    DeviceProfile same = start;
    parameter.apply(same, *value);
    CHECK(make_cost_model(same)->gemm({4096, 4096, 1024}).time == cost->gemm({4096, 4096, 1024}).time);
    CHECK(same.overheads.per_step.time == start.overheads.per_step.time);
    if (start.nvlink && start.nvlink->send_recv) {
      CHECK(same.nvlink->send_recv->bandwidth == start.nvlink->send_recv->bandwidth);
    }
  }
}

TEST_CASE("products at half their rate take twice as long, but for their launch", "[fit]") {
  const std::string name = GENERATE(as<std::string>{}, "a100-sxm-published", "h100-published", "epyc-cpu");
  const DeviceProfile start = profile_of(name);
  DeviceProfile slow = start;
  fit_parameter("gemm").apply(slow, 0.5);
  const Gemm product{8192, 8192, 8192};
  const double ratio =
      make_cost_model(slow)->gemm(product).time.seconds() / make_cost_model(start)->gemm(product).time.seconds();
  CAPTURE(name);
  CHECK(ratio == Approx(2).epsilon(0.001));  // a launch of 3 us in a product of 4 ms
  const MemoryBound copy{Bytes(1 << 26), 1};
  CHECK(make_cost_model(slow)->memory_bound(copy).time == make_cost_model(start)->memory_bound(copy).time);
}

TEST_CASE("a figure that was changed says so once", "[fit]") {
  DeviceProfile profile = profile_of("a100-sxm-published");
  const std::string before = profile.gemm->source;
  fit_parameter("gemm").apply(profile, 0.9);
  fit_parameter("gemm").apply(profile, 0.9);
  REQUIRE(before.ends_with("."));
  CHECK(profile.gemm->source == before + " Fitted to steps (see provenance)");
  std::string of_words = "assumed";
  tell_fitted(of_words);
  CHECK(of_words == "assumed; fitted to steps (see provenance)");
}

TEST_CASE("messages get no faster than their link", "[fit]") {
  DeviceProfile profile = profile_of("a100-sxm-published");
  fit_parameter("link_in_node").apply(profile, 5);
  CHECK(profile.nvlink->send_recv->bandwidth == profile.nvlink->send_recv->line_rate);
  CHECK(room_of_links(profile.nvlink) == 1);
}

TEST_CASE("a profile lacks parameters of the parts that it lacks", "[fit]") {
  DeviceProfile profile = profile_of("a100-sxm-published");
  profile.overheads.host_issue.reset();
  profile.network.reset();
  CHECK_FALSE(fit_parameter("host_issue").start(profile));
  CHECK_FALSE(fit_parameter("link_between_nodes").start(profile));
  CHECK(fit_parameter("link_in_node").start(profile) == 1.0);
}

TEST_CASE("the label of a fit and its record come together", "[fit]") {
  const std::string text = profile_text(profile_of("a100-sxm-published"));
  Diagnostics problems;
  std::string relabelled = text;
  relabelled.replace(relabelled.find("label: published"), 16, "label: fitted");
  (void)read_profile(parse_document("p.yaml", relabelled, problems), "p", problems);
  CHECK_THAT(problems.text(), Catch::Contains("says with 'fit' to what it was fitted"));
}

}  // namespace
}  // namespace hdpsim
