#include <set>
#include <string>

#include "sim/profile/profile_file.h"
#include "sim/profile/renamed_profiles.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

const std::string profiles_folder = std::string(HDPSIM_SOURCE_DIR) + "/calib/profiles";

DeviceProfile shipped_profile(const std::string& name) {
  Diagnostics diagnostics;
  const auto profile = load_profile(name, profiles_folder, {"study.yaml", 4, 10}, diagnostics);
  INFO(diagnostics.text());
  REQUIRE(profile.has_value());
  REQUIRE(diagnostics.empty());
  return *profile;
}

TEST_CASE("every shipped profile loads without a problem and reads back equal after writing", "[profile]") {
  const auto names = profile_names(profiles_folder);
  REQUIRE(std::set<std::string>(names.begin(), names.end()) ==
          std::set<std::string>{"a100-sxm-published", "a800-published", "b200-published", "b300-published",
                                "bytescale-implied", "cpu-datasheet", "epyc-cpu", "gb200-published", "gb300-published",
                                "h100-500w-published", "h100-published", "h20-published", "h200-published",
                                "h800-published", "l40s-published", "mi300x-published", "mi355x-published",
                                "rtx-pro-6000-published", "rtx4090-published", "v100-published"});
  for (const std::string& name : names) {
    INFO(name);
    const DeviceProfile profile = shipped_profile(name);
    CHECK(profile.name == name);
    Diagnostics diagnostics;
    const Value written = parse_document("written.yaml", profile_text(profile), diagnostics);
    const auto again = read_profile(written, name, diagnostics);
    INFO(diagnostics.text());
    REQUIRE(again.has_value());
    CHECK(*again == profile);
  }
}

TEST_CASE("a shipped profile that claims to be measured says with which program, when and how well", "[profile]") {
  for (const std::string& name : profile_names(profiles_folder)) {
    const DeviceProfile profile = shipped_profile(name);
    CAPTURE(name);
    CHECK((profile.provenance.label == ProfileLabel::measured) == (name == "epyc-cpu"));
    if (profile.provenance.label != ProfileLabel::measured) continue;
    CHECK_THAT(profile.provenance.source, Catch::Contains("hdpsim calibrate"));
    CHECK_FALSE(profile.provenance.date.empty());
    CHECK_FALSE(profile.provenance.commit.empty());
    CHECK_FALSE(profile.samples.noise.empty());
    CHECK_FALSE(profile.fits.attention.empty());
  }
}

TEST_CASE("a message of the case study's ring takes the published time, at the bandwidth that collectives reach",
          "[profile]") {
  const DeviceProfile implied = shipped_profile("bytescale-implied");
  // Keys and values of 8,192 tokens with 8 heads of 128, bf16, halved by tp 2, in 1.4 to 1.6 ms.
  const double bytes = 8192.0 * 2 * 8 * 128 * 2 / 2;
  const SendRecvRate& network = implied.network->send_recv.value();
  const double seconds = network.latency.seconds() + bytes / (network.bandwidth.gigabytes_per_second() * 1e9);
  CHECK(seconds == Approx(1.5e-3).epsilon(0.01));
  CHECK(network.efficiency() == Approx(implied.network->all_gather.value().efficiency()).epsilon(0.01));
}

TEST_CASE("a profile that had another name is read by it, and the note says what it describes", "[profile]") {
  CHECK(shipped_profile("a100-published") == shipped_profile("bytescale-implied"));
  CHECK(renamed_profile_note("a100-published") ==
        "the profile a100-published is called bytescale-implied now: the device that ByteScale's figures imply, slower "
        "than an A100 in benchmarks; for an A100 write a100-sxm-published");
  for (const std::string& name : profile_names(profiles_folder)) CHECK(renamed_profile_note(name).empty());
}

TEST_CASE("the device that ByteScale's figures imply is slower than an A100, and says whose figures they are",
          "[profile]") {
  const DeviceProfile implied = shipped_profile("bytescale-implied");
  const DeviceProfile a100 = shipped_profile("a100-sxm-published");
  CHECK_FALSE(implied.provenance.implied_by.empty());
  CHECK(a100.provenance.implied_by.empty());
  const auto rate = [](const DeviceProfile& profile) {
    const AttentionCurve& curve = profile.attention.at(0);
    return sample_work(curve, curve.samples.back()).count() / curve.samples.back().time.seconds();
  };
  CHECK(rate(a100) > 1.5 * rate(implied));
}

TEST_CASE("devices of one chip differ in what their profiles state, and share the rest", "[profile]") {
  const DeviceProfile h100 = shipped_profile("h100-published");
  const DeviceProfile h800 = shipped_profile("h800-published");
  CHECK(h800.provenance.device == "H800-80GB");
  CHECK(h800.attention == h100.attention);
  CHECK(h800.gemm == h100.gemm);
  CHECK(h800.nvlink->all_gather == h100.nvlink->all_gather);
  CHECK(h800.nvlink->send_recv->line_rate == 200_GBps);
  CHECK(h800.network == h100.network);
  // A limit of power lowers what products and attention reach, by the same clock.
  const DeviceProfile limited = shipped_profile("h100-500w-published");
  CHECK(limited.nvlink == h100.nvlink);
  const double clock = limited.gemm->full_rate.per_second() / h100.gemm->full_rate.per_second();
  CHECK(clock == Approx(608.0 / 745));
  const auto fastest = [](const DeviceProfile& profile) {
    const AttentionCurve& curve = profile.attention.at(1);
    return sample_work(curve, curve.samples.back()).count() / curve.samples.back().time.seconds();
  };
  CHECK(fastest(limited) / fastest(h100) == Approx(clock).epsilon(1e-3));
  // A part that the device does not have is left out.
  const DeviceProfile h20 = shipped_profile("h20-published");
  CHECK(h20.overheads == h100.overheads);
  CHECK_FALSE(h20.gemm_narrow.at(1).has_value());
  CHECK(h20.other_attention[static_cast<std::size_t>(OtherAttention::triton)].empty());
}

TEST_CASE("an unknown profile is reported where the study asks for it", "[profile]") {
  Diagnostics diagnostics;
  CHECK_FALSE(load_profile("bytescale-implid", profiles_folder, {"study.yaml", 4, 10}, diagnostics));
  CHECK(diagnostics.text() ==
        "study.yaml:4:10: error: there is no profile 'bytescale-implid'\n"
        "        did you mean 'bytescale-implied'?\n");
}

TEST_CASE("a profile can be given as a path", "[profile]") {
  Diagnostics diagnostics;
  const auto profile = load_profile(profiles_folder + "/cpu-datasheet.yaml", "nowhere", {}, diagnostics);
  REQUIRE(profile.has_value());
  CHECK(profile->name == "cpu-datasheet");
  CHECK(profile->attention.empty());
  CHECK_FALSE(profile->gemm.has_value());
}

}  // namespace
}  // namespace hdpsim
