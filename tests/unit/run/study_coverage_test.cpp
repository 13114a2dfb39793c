#include "sim/run/study_coverage.h"

#include <fstream>

#include "sim/run/runner.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

const std::string quality = "{samples: 9, in_sample: {mean: 0, p95: 0, max: 0}, held_out: {mean: 0, p95: 0, max: 0}}";

// Attention forward under the full mask, send/recv of small messages, and nothing else.
const std::string narrow_profile = R"(schema: hdpsim.profile/1
provenance: {label: measured, source: a test, device: A100-80GB}
datasheet: {peak: 312 TFLOP/s, memory_bandwidth: 2039 GB/s, memory: 80 GB, multiprocessors: 108}
links:
  nvlink: {send_recv: {latency: 10 us, bandwidth: 200 GB/s, line_rate: 300 GB/s}}
fits:
  attention:
    - mask: full
      direction: forward
      head_dim: 128
      tile: {queries: 128, keys: 128}
      form: pairs
      launch_s: 0
      pairs: [{length: 128, pair_s: 1e-12}]
      row_s: 0
      tile_row_s: 0
      document_s: 0
      wave_s: 0
      lengths: {least: 128, most: 256}
      quality: )" + quality + R"(
  messages:
    - link: nvlink
      kind: send_recv
      ranks: 2
      lines: [{latency: 10 us, bandwidth: 200 GB/s}]
      bytes: {least: 1 kB, most: 1 MB}
      quality: )" + quality + "\n";

std::vector<std::string> warnings_of(const std::vector<std::string>& overrides, std::size_t jobs) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const Study study = load_study(HDPSIM_SOURCE_DIR "/configs/studies/tiny.yaml", overrides, catalog);
  StudyCoverage coverage;
  const auto runs = run_study(
      study, {.jobs = jobs, .cover = [&](const auto& profile, const Coverage& part) { coverage.add(profile, part); }});
  REQUIRE(runs.has_value());
  return coverage.warnings(study, *runs);
}

TEST_CASE("a study on a published profile has no calibration to ask for more", "[coverage]") {
  CHECK(warnings_of({}, 1).empty());
}

TEST_CASE("a study on a measured profile says what lies outside of it, whatever the number of threads", "[coverage]") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "narrow.yaml";
  std::ofstream(path) << narrow_profile;
  const std::vector<std::string> overrides = {"profile=" + path.string()};
  const std::vector<std::string> warnings = warnings_of(overrides, 1);
  std::string text;
  for (const std::string& line : warnings) text += line + "\n";
  INFO(text);
  for (const char* expected :
       {"parts of tiny lie outside of what the profile narrow was measured for",
        "forward attention of head dimension 128", "backward attention of head dimension 128: never measured",
        "matrix products: never measured", "memory-bound kernels: never measured",
        "messages within a node: a ring step sends", "messages between nodes: never measured",
        "kernels that overlap with communication: never measured", "copies to host memory: never measured",
        "hdpsim calibrate"}) {
    INFO(expected);
    CHECK(text.find(expected) != std::string::npos);
  }
  CHECK(warnings.size() == 10);
  CHECK(warnings_of(overrides, 3) == warnings);
}

}  // namespace
}  // namespace hdpsim
