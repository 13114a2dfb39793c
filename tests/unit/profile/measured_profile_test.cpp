#include <string>

#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

struct ReadMeasured {
  std::optional<DeviceProfile> profile;
  std::string problems;
};

ReadMeasured read_measured(const std::string& yaml) {
  Diagnostics diagnostics;
  const Value document = parse_document("p.yaml", yaml, diagnostics);
  ReadMeasured read{read_profile(document, "p", diagnostics), ""};
  read.problems = diagnostics.text();
  return read;
}

const std::string head = R"(schema: hdpsim.profile/1
provenance: {label: measured, source: own kernels, device: H200-141GB}
datasheet: {peak: 989.4 TFLOP/s, memory_bandwidth: 4800 GB/s, memory: 141 GB, multiprocessors: 132}
)";

const std::string quality =
    "{samples: 9, in_sample: {mean: 0.01, p95: 0.02, max: 0.03}, "
    "held_out: {mean: 0.02, p95: 0.03, max: 0.04}, residual_deciles: [-0.04, 0, 0.03]}";

const std::string all_sections = head + R"(
attention:
  - mask: full
    direction: forward
    head_dim: 128
    heads: 32
    kv_heads: 8
    tile: {queries: 128, keys: 128}
    launch: 3 us
    samples:
      - {queries: 4096, keys: 2048, count: 1, time: 1 ms}
      - {queries: 4096, keys: 2048, count: 4, time: 4 ms}
    packed:
      - {documents: [300, 4096x2048, 17], time: 1.2 ms, p10: 1.1 ms, p90: 1.3 ms, runs: 20}
  - mask: full
    direction: forward
    head_dim: 128
    heads: 16
    kv_heads: 8
    tile: {queries: 128, keys: 128}
    launch: 3 us
    samples: [{queries: 4096, keys: 2048, time: 0.5 ms}]
samples:
  memory_bound: [{kernel: adam, bytes: 4 MB, time: 5 us, p10: 4 us, p90: 6 us, runs: 30}]
  copies: [{kind: h2d_of_both, bytes: 64 MB, time: 2 ms, p10: 2 ms, p90: 2 ms, runs: 3}]
  messages: [{link: network, kind: all_to_all, ranks: 16, bytes: 1 GB, time: 50 ms, p10: 49 ms, p90: 51 ms, runs: 9}]
  interference: [{compute: gemm, traffic: p2p, ctas: 16, slowdown: 1.2, p10: 1.1, p90: 1.3}]
  noise: [{family: attention, mean: 0.01, p90: 0.02, max: 0.05, pairs: 40}]
fits:
  attention:
    - mask: full
      direction: forward
      head_dim: 128
      tile: {queries: 128, keys: 128}
      gradient_tile: {queries: 1, keys: 12}
      form: launch + pairs by length
      launch_s: 3.2e-06
      pairs: [{length: 128, pair_s: 2.5e-12}, {length: 1024, pair_s: 8.6e-13}]
      row_s: 0
      tile_row_s: 0
      document_s: 1e-9
      wave_s: 0
      lengths: {least: 17, most: 4096}
      quality: )" + quality + R"(
      packed_quality: )" + quality +
                                 R"(
  gemm: {form: work, launch_s: 0, flop_s: 1.5e-15, element_s: 0, neighbours: 6, power: 2, quality: )" +
                                 quality + R"(}
  memory_bound:
    - kernel: all
      form: latency + bytes
      curve: {latency: 3 us, costs: [{at: 1 MB, bandwidth: 9000 GB/s}, {at: 1 GB, bandwidth: 4000 GB/s}]}
      bytes: {least: 1 MB, most: 1 GB}
      quality: )" + quality + R"(
  copies:
    - {kind: d2h, latency: 9 us, bandwidth: 55 GB/s, bytes: {least: 1 MB, most: 1 GB}, quality: )" +
                                 quality + R"(}
  messages:
    - link: nvlink
      kind: all_reduce
      ranks: 8
      lines: [{latency: 8 us, bandwidth: 20 GB/s}, {latency: 45 us, bandwidth: 240 GB/s}]
      bytes: {least: 1 MB, most: 1 GB}
      quality: )" + quality + R"(
    - link: nvlink
      kind: send_recv
      ranks: 2
      curve: {latency: 8 us, costs: [{at: 1 kB}, {at: 1 MB, bandwidth: 20 GB/s}]}
      bytes: {least: 1 kB, most: 1 GB}
      quality: )" + quality + "\n";

TEST_CASE("a measured profile holds samples, interference, noise and fits", "[profile]") {
  const auto [profile, problems] = read_measured(all_sections);
  CHECK(problems.empty());
  REQUIRE(profile.has_value());
  REQUIRE(profile->attention.size() == 2);
  CHECK(profile->attention[0].kv_heads == 8);
  CHECK(profile->attention[0].samples.size() == 2);
  CHECK(profile->attention[0].packed.at(0).documents ==
        std::vector<PackedDocument>{{300, 300}, {4096, 2048}, {17, 17}});
  CHECK(profile->samples.memory_bound.at(0).bytes == Bytes(4'000'000));
  CHECK(profile->samples.copies.at(0).kind == CopyKind::h2d_of_both);
  CHECK(profile->samples.messages.at(0).link == LinkKind::network);
  CHECK(profile->samples.messages.at(0).kind == MessageKind::all_to_all);
  CHECK(profile->samples.interference.at(0).slowdown_p90 == 1.3);
  CHECK(profile->samples.noise.at(0).pairs == 40);
  CHECK(profile->fits.attention.at(0).pairs.at(1).seconds == 8.6e-13);
  CHECK(profile->fits.attention.at(0).packed->held_out.max == 0.04);
  CHECK(profile->fits.gemm->neighbours == 6);
  CHECK(profile->fits.memory_bound.at(0).curve.costs.at(1).bandwidth == 4000_GBps);
  CHECK(profile->fits.copies.at(0).bandwidth == 55_GBps);
  CHECK(profile->fits.messages.at(0).lines.size() == 2);
  CHECK_FALSE(profile->fits.messages.at(1).curve->costs.at(0).bandwidth.has_value());
}

TEST_CASE("a measured profile reads back as it was written", "[profile]") {
  const auto profile = read_measured(all_sections).profile;
  REQUIRE(profile.has_value());
  const auto [again, problems] = read_measured(profile_text(*profile));
  CHECK(problems.empty());
  CHECK(again == profile);
}

TEST_CASE("only a measured profile may leave overheads and send/recv out, and only it has samples and fits",
          "[profile]") {
  const auto [measured, problems] = read_measured(head);
  CHECK(problems.empty());
  REQUIRE(measured.has_value());
  CHECK(measured->overheads == Overheads{});

  std::string published = head;
  published.replace(published.find("measured"), 8, "published");
  CHECK(read_measured(published).problems.find("the profile needs 'overheads'") != std::string::npos);
  const std::string with_noise = published + "samples: {noise: [{family: gemm, mean: 0, p90: 0, max: 0, pairs: 1}]}\n";
  CHECK(read_measured(with_noise).problems.find("only a profile with the label 'measured' has these") !=
        std::string::npos);
}

TEST_CASE("every problem of samples and fits is told in one go", "[profile]") {
  const auto [profile, problems] = read_measured(head + R"(attention:
  - mask: causal
    direction: forward
    head_dim: 128
    heads: 32
    tile: {queries: 128, keys: 128}
    launch: 3 us
    packed:
      - {documents: [300, 4096x2048], time: 1.2 ms}
      - {documents: [3y0], time: 1.2 ms}
samples:
  messages: [{link: infiniband, kind: send_recv, ranks: 1, bytes: 1 MB, time: 5 us}]
fits:
  memory_bound:
    - {kernel: all, form: f, curve: {latency: 3 us, costs: [{at: 1 GB}, {at: 1 MB}]}, bytes: {least: 2 MB, most: 1 MB}}
  tides: 3
)");
  CHECK_FALSE(profile.has_value());
  for (const char* expected :
       {"p.yaml:12:9: error: a causal document has as many queries as keys",
        "p.yaml:13:22: error: a document is its tokens (300) or queries by keys (300x150)",
        "p.yaml:15:21: error: there is no link 'infiniband'",
        "p.yaml:15:57: error: 'ranks' is 1, it must be from 2 to 1e+12",
        "p.yaml:18:37: error: the sizes of 'costs' must grow", "p.yaml:18:94: error: 'least' is more than 'most'",
        "error: a memory-bound fit needs 'quality'", "error: 'fits' has no key 'tides'"}) {
    INFO(expected << "\n" << problems);
    CHECK(problems.find(expected) != std::string::npos);
  }
}

}  // namespace
}  // namespace hdpsim
