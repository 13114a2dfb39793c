#include "calib/fit/fit.h"

#include <algorithm>

#include "calib/fit/report.h"
#include "sim/cost/cost_model.h"
#include "sim/profile/profile_file.h"
#include "tests/unit/calib/fit/fit_support.h"

namespace hdpsim::calib {
namespace {

using testing::Measured;
using testing::round_circumstances;

/// Pairs that a causal kernel computes in tiles of 128 x 128.
double area_of_tiles(double tokens) {
  const double tiles = std::ceil(tokens / 128);
  return tiles * (tiles + 1) / 2 * 128 * 128;
}

/// A little of everything, with relative noise: a kernel a family and nothing exotic.
Samples samples_of_all_families(double noise = 0.01, std::uint64_t seed = 1) {
  Measured measured(noise, seed);
  Samples samples;
  samples.circumstances = round_circumstances();
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    for (std::int64_t length = 1024; length <= 65536; length *= 2) {
      const double pair_s = direction == Direction::forward ? 1e-12 : 3e-12;
      const double seconds = 1e-5 + 32 * pair_s * area_of_tiles(static_cast<double>(length));
      const Attention op{{{length, length, Mask::causal, 1}}, 32, 8, 128, direction};
      samples.attention.push_back({op, measured(seconds)});
    }
  }
  const Attention pack{{{1024, 1024, Mask::causal, 2}, {3000, 3000, Mask::causal, 1}}, 32, 8, 128};
  samples.attention.push_back({pack, measured(1e-5 + 32e-12 * (2 * area_of_tiles(1024) + area_of_tiles(3000)))});
  const Attention few_heads{{{2048, 2048, Mask::causal, 1}}, 16, 8, 128};
  samples.attention.push_back({few_heads, measured(1e-5 + 16e-12 * area_of_tiles(2048))});
  for (const std::int64_t m : {512, 1024, 2048, 4096}) {
    for (const std::int64_t k : {1024, 4096}) {
      const double work = 2.0 * static_cast<double>(m) * 4096 * static_cast<double>(k);
      samples.gemm.push_back({{m, 4096, k}, measured(4e-6 + work / 6e14)});
    }
  }
  for (std::int64_t bytes = 1 << 20; bytes <= 1 << 28; bytes *= 4) {
    const auto size = static_cast<double>(bytes);
    samples.memory_bound.push_back({"add", bytes, measured(3e-6 + size / 3e12)});
    samples.memory_bound.push_back({"adam", bytes, measured(3e-6 + size / 2.5e12)});
    for (const CopyKind kind : {CopyKind::d2h, CopyKind::h2d, CopyKind::d2h_of_both, CopyKind::h2d_of_both}) {
      samples.copies.push_back({kind, bytes, measured(1e-5 + size / 50e9)});
    }
    samples.messages.push_back({MessageKind::send_recv, LinkKind::nvlink, 2, bytes, measured(8e-6 + size / 370e9)});
    samples.messages.push_back({MessageKind::all_gather, LinkKind::nvlink, 4, bytes, measured(2e-5 + size / 460e9)});
  }
  samples.interference = {{"gemm", "p2p", 16, 1.21, 1.18, 1.25}};
  samples.noise = {{"attention", 0.011, 0.02, 0.03, 15}};
  samples.launch_s = 2.5e-6;
  return samples;
}

TEST_CASE("a fitted profile reads back as it was written", "[fit]") {
  const DeviceProfile profile = fit_profile(samples_of_all_families(), {.source = "a test"});
  Diagnostics diagnostics;
  const auto again = read_profile(parse_document("p.yaml", profile_text(profile), diagnostics), "", diagnostics);
  INFO(diagnostics.text());
  REQUIRE(again.has_value());
  CHECK(*again == profile);
  CHECK(profile.provenance.label == ProfileLabel::measured);
  CHECK(profile.provenance.device_name == round_circumstances().device_name);
  CHECK_FALSE(profile.provenance.device_name.empty());
}

TEST_CASE("a profile fitted to times that noise rules reads back, too", "[fit]") {
  const double noise = GENERATE(0.1, 0.5, 1.5);
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const DeviceProfile profile = fit_profile(samples_of_all_families(noise, seed));
    Diagnostics diagnostics;
    const auto again = read_profile(parse_document("p.yaml", profile_text(profile), diagnostics), "", diagnostics);
    INFO("noise " << noise << ", seed " << seed << "\n" << diagnostics.text());
    REQUIRE(again.has_value());
    CHECK(*again == profile);
  }
}

TEST_CASE("memory-bound kernels whose times hardly grow with bytes have rates that a profile may state", "[fit]") {
  constexpr double second_per_byte = 1e-15;  // a petabyte a second
  for (const double factor : {1.0, 2.0, 5.0}) {
    Samples samples;
    samples.circumstances = round_circumstances();
    for (std::int64_t bytes = 1 << 14; bytes <= 1 << 24; bytes *= 2) {
      const double seconds = 1e-6 + second_per_byte * static_cast<double>(bytes);
      samples.memory_bound.push_back({"slow", bytes, {factor * seconds, 0, 0, 0, 1}});
      samples.memory_bound.push_back({"fast", bytes, {seconds / factor, 0, 0, 0, 1}});
    }
    const DeviceProfile profile = fit_profile(samples);
    Diagnostics diagnostics;
    const auto again = read_profile(parse_document("p.yaml", profile_text(profile), diagnostics), "", diagnostics);
    INFO("factor " << factor << '\n' << diagnostics.text());
    REQUIRE(again.has_value());
    CHECK(*again == profile);
  }
}

TEST_CASE("what was not measured is absent", "[fit]") {
  Samples samples;
  samples.circumstances = round_circumstances();
  const DeviceProfile profile = fit_profile(samples);
  CHECK(profile.attention.empty());
  CHECK_FALSE(profile.gemm.has_value());
  CHECK_FALSE(profile.memory_bound.has_value());
  CHECK_FALSE(profile.nvlink.has_value());
  CHECK_FALSE(profile.network.has_value());
  CHECK_FALSE(profile.host_copies.has_value());
  CHECK(profile.fits.empty());
  const std::string text = profile_text(profile);
  CHECK(text.find("per_step") == std::string::npos);
  CHECK(text.find("kernel_launch") == std::string::npos);
  Diagnostics diagnostics;
  CHECK(read_profile(parse_document("p.yaml", text, diagnostics), "", diagnostics) == profile);
  INFO(diagnostics.text());
  CHECK(diagnostics.empty());
}

TEST_CASE("copies in one direction alone are fitted, but make no host copies", "[fit]") {
  Samples samples = samples_of_all_families();
  std::erase_if(samples.copies, [](const CopyTiming& copy) { return copy.kind != CopyKind::d2h; });
  const DeviceProfile profile = fit_profile(samples);
  CHECK(profile.fits.copies.size() == 1);
  CHECK_FALSE(profile.host_copies.has_value());
}

TEST_CASE("the simulator predicts every sample of a fitted profile", "[fit]") {
  const Samples samples = samples_of_all_families();
  const DeviceProfile profile = fit_profile(samples);
  const auto cost = make_cost_model(profile);
  for (const AttentionTiming& sample : samples.attention) {
    const Estimate estimate = cost->attention(sample.op);
    CHECK(estimate.time.seconds() == Approx(sample.timing.median_s).epsilon(0.05));
    const bool repeats_a_block = sample.op.blocks.size() > 1;
    CHECK(estimate.evidence == (repeats_a_block ? Evidence::interpolated : Evidence::measured));
  }
  for (const GemmTiming& sample : samples.gemm) {
    CHECK(cost->gemm(sample.op).time == Duration::seconds(sample.timing.median_s));
    CHECK(cost->gemm(sample.op).evidence == Evidence::measured);
  }
}

TEST_CASE("the curve with most samples stands before those of other heads", "[fit]") {
  const DeviceProfile profile = fit_profile(samples_of_all_families());
  REQUIRE(profile.attention.size() == 3);
  CHECK(profile.attention[0].heads == 32);
  CHECK(profile.attention[0].packed.size() == 1);
  CHECK(profile.attention[0].packed[0].documents.size() == 3);
  CHECK(profile.attention[1].heads == 16);
  CHECK(profile.attention[2].backward);
  CHECK(profile.fits.attention.size() == 2);
}

TEST_CASE("a peak that was measured is raised to the fastest kernel", "[fit]") {
  Samples samples = samples_of_all_families();
  samples.circumstances.peak_flops = 1e14;
  const DeviceProfile profile = fit_profile(samples);
  CHECK(profile.datasheet.peak.per_second() > 5e14);
  CHECK(profile.datasheet.source.find("raised") != std::string::npos);
  Diagnostics diagnostics;
  CHECK(read_profile(parse_document("p.yaml", profile_text(profile), diagnostics), "", diagnostics).has_value());
  INFO(diagnostics.text());
  CHECK(diagnostics.empty());
}

TEST_CASE("the report names every fit with its errors and draws it", "[fit]") {
  const DeviceProfile profile = fit_profile(samples_of_all_families(), {.source = "a test"});
  const std::string report = fit_report(profile);
  for (const char* expected : {"forward causal d128", "backward causal d128", "noise floor 1.10 % mean",
                               "Matrix products", "adam", "d2h_of_both", "nvlink send_recv x 2",
                               "nvlink all_gather x 4", "gemm         under p2p (16 thread blocks)", "o sample"}) {
    INFO(expected);
    CHECK(report.find(expected) != std::string::npos);
  }
  CHECK(fit_report(profile, {.plots = false}).find("o sample") == std::string::npos);
  CHECK(fit_report(DeviceProfile{}).find("no fits") != std::string::npos);
}

TEST_CASE("the summary has a line a family", "[fit]") {
  const std::string summary = fit_summary(fit_profile(samples_of_all_families()));
  CHECK(std::count(summary.begin(), summary.end(), '\n') == 7);
  CHECK(summary.find("attention, packed         1") != std::string::npos);
  CHECK(summary.find("copies                   12") != std::string::npos);  // 5 sizes a kind, the inner 3 held out
}

}  // namespace
}  // namespace hdpsim::calib
