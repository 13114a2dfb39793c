#include "sim/profile/profile_file.h"

#include <fstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

struct ReadProfile {
  std::optional<DeviceProfile> profile;
  std::string problems;
};

ReadProfile read_text(const std::string& yaml) {
  Diagnostics diagnostics;
  const Value document = parse_document("p.yaml", yaml, diagnostics);
  ReadProfile read{read_profile(document, "p", diagnostics), ""};
  read.problems = diagnostics.text();
  return read;
}

// What is read of a profile's own text.
std::optional<DeviceProfile> again(const DeviceProfile& profile) {
  const auto [read, problems] = read_text(profile_text(profile));
  INFO(problems);
  REQUIRE(read.has_value());
  return read;
}

const std::string measured_head = R"(schema: hdpsim.profile/1
provenance: {label: measured, source: own kernels, device: H200-141GB, driver: "570.1", date: 2025-01-31}
datasheet: {peak: 989.4 TFLOP/s, memory_bandwidth: 4800 GB/s, memory: 141 GB, multiprocessors: 132}
overheads:
  per_step: {time: 1 ms}
  per_micro_batch: {time: 0 s}
  kernel_launch: {time: 3 us}
)";

TEST_CASE("a data sheet alone is a legal profile", "[profile]") {
  const auto [profile, problems] = read_text(measured_head);
  CHECK(problems.empty());
  REQUIRE(profile.has_value());
  CHECK(profile->datasheet.multiprocessors == 132);
  CHECK(profile->overheads.per_step.time == 1_ms);
  CHECK(profile->attention.empty());
  CHECK_FALSE(profile->network.has_value());
}

TEST_CASE("a rate over the exact mask area stands for a time", "[profile]") {
  const auto [profile, problems] = read_text(measured_head + R"(
attention:
  - mask: causal
    direction: backward
    head_dim: 128
    heads: 8
    tile: {queries: 64, keys: 128}
    launch: 9 us
    samples:
      - {queries: 4096, keys: 4096, count: 2, rate: 400 TFLOP/s}
      - {queries: 8192, keys: 8192, time: 1.5 ms, p10: 1.4 ms, p90: 1.75 ms, runs: 20}
gemm:
  tile: {m: 128, n: 256}
  launch: 3 us
  full_rate: 800 TFLOP/s
  by_shape:
    - {m: 8192, n: 4096, k: 4096, rate: 500 TFLOP/s}
)");
  CHECK(problems.empty());
  REQUIRE(profile.has_value());
  const AttentionCurve& curve = profile->attention.at(0);
  // Backward 2.5 x 4 heads head_dim area, two blocks of 4096 x 4097 / 2 pairs.
  const double work = 2.5 * 4 * 8 * 128 * 2 * 4096 * 4097 / 2;
  CHECK(sample_work(curve, curve.samples[0]).count() == work);
  CHECK(curve.samples[0].time == Duration::seconds(work / 400e12));
  CHECK(curve.samples[1].time == 1500_us);
  CHECK(curve.samples[1].spread->p90 == 1750_us);
  CHECK(profile->gemm->by_shape.at(0).time == Duration::seconds(2.0 * 8192 * 4096 * 4096 / 500e12));
  CHECK(again(*profile) == profile);
}

TEST_CASE("samples of short benchmarks are no faster than what the device keeps", "[profile]") {
  const auto [profile, problems] = read_text(measured_head + R"(
attention:
  - mask: full
    direction: forward
    head_dim: 128
    heads: 8
    tile: {queries: 64, keys: 128}
    launch: 3 us
    sustained: {rate: 400 TFLOP/s, from: 10 ms}
    samples:
      - {queries: 4096, keys: 4096, rate: 500 TFLOP/s}
      - {queries: 2048, keys: 2048, rate: 300 TFLOP/s}
      - {queries: 65536, keys: 65536, rate: 450 TFLOP/s}
gemm:
  tile: {m: 128, n: 256}
  launch: 3 us
  full_rate: 800 TFLOP/s
  sustained: {rate: 600 TFLOP/s, from: 1 ms}
  by_work:
    - {gflop: 8000, efficiency: 0.8}
    - {gflop: 64, efficiency: 1}
    - {gflop: 1, efficiency: 0.5}
  by_shape:
    - {m: 4096, n: 4096, k: 4096, rate: 700 TFLOP/s}
    - {m: 16384, n: 16384, k: 16384, rate: 650 TFLOP/s}
)");
  CHECK(problems.empty());
  REQUIRE(profile.has_value());
  const AttentionCurve& curve = profile->attention.at(0);
  const auto rate = [&](std::size_t sample) {
    return sample_work(curve, curve.samples.at(sample)).count() / curve.samples.at(sample).time.seconds() / 1e12;
  };
  CHECK(rate(0) == Approx(400));
  CHECK(rate(1) == Approx(300));
  CHECK(rate(2) == Approx(450));
  CHECK(profile->gemm->by_shape.at(0).time == Duration::seconds(2.0 * 4096 * 4096 * 4096 / 600e12));
  CHECK(profile->gemm->by_shape.at(1).time == Duration::seconds(2.0 * 16384 * 16384 * 16384 / 650e12));
  CHECK(profile->gemm->by_work.at(0).efficiency == 0.8);
  CHECK(profile->gemm->by_work.at(1).efficiency == 0.75);
  CHECK(profile->gemm->by_work.at(2).efficiency == 0.5);
  CHECK(again(*profile) == profile);
  CHECK_THAT(read_text(measured_head + "gemm: {tile: {m: 1, n: 1}, launch: 3 us, full_rate: 8 TFLOP/s, "
                                       "sustained: {rate: 6 TFLOP/s}, by_work: [{gflop: 1, efficiency: 1}]}\n")
                 .problems,
             Catch::Contains("needs 'from'"));
}

TEST_CASE("a profile may be like another, of which it has what it does not state itself", "[profile]") {
  const test::TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.path() / name) << text;
  };
  const auto load = [&](const std::string& name) {
    Diagnostics diagnostics;
    ReadProfile read{load_profile((folder.path() / name).string(), "", {}, diagnostics), ""};
    read.problems = diagnostics.text();
    return read;
  };
  write("base.yaml", measured_head +
                         "gemm: {tile: {m: 128, n: 256}, launch: 3 us, full_rate: 800 TFLOP/s, source: "
                         "base, by_work: [{gflop: 1, efficiency: 1}]}\n");
  write("other.yaml", R"(schema: hdpsim.profile/1
like: base
provenance: {label: measured, source: own kernels, device: H20-96GB}
overheads: {per_step: {time: 2 ms}}
)");
  const auto [other, problems] = load("other.yaml");
  CHECK(problems.empty());
  REQUIRE(other.has_value());
  CHECK(other->provenance.device == "H20-96GB");
  CHECK(other->provenance.driver.empty());  // a map with a source is taken whole
  CHECK(other->overheads.per_step.time == 2_ms);
  CHECK(other->overheads.kernel_launch.time == 3_us);
  CHECK(other->gemm.has_value());
  write("none.yaml", "schema: hdpsim.profile/1\nlike: bas\n");
  CHECK_THAT(load("none.yaml").problems,
             Catch::Contains("none.yaml:2:7: error: there is no profile '") && Catch::Contains("did you mean 'base'?"));
  write("circle.yaml", "schema: hdpsim.profile/1\nlike: circle\n");
  CHECK_THAT(load("circle.yaml").problems, Catch::Contains("is one of them like itself?"));
  write("without.yaml", "schema: hdpsim.profile/1\nlike: other\nwithout: [gemm]\n");
  CHECK_FALSE(load("without.yaml").profile->gemm.has_value());
  write("wrong.yaml", "schema: hdpsim.profile/1\nlike: other\nwithout: [gem]\n");
  CHECK_THAT(load("wrong.yaml").problems,
             Catch::Contains("wrong.yaml:3:11: error: the profile that this one is like") &&
                 Catch::Contains("did you mean 'gemm'?"));
}

TEST_CASE("odd quantities are written exactly", "[profile]") {
  auto [profile, problems] = read_text(measured_head);
  REQUIRE(profile.has_value());
  profile->datasheet.peak = FlopRate(0.1 * 3e12);
  profile->datasheet.memory_bandwidth = Bandwidth::bytes_per_second(1'234'567'890'123);
  profile->datasheet.memory = Bytes(80'000'000'001);
  profile->overheads.per_step.time = Duration::picoseconds(1'000'000'000'007);
  profile->overheads.kernel_launch.time = Duration::picoseconds(1);
  profile->provenance.source = "two lines:\n  # \"quoted\"";
  CHECK(again(*profile) == profile);
}

TEST_CASE("every problem of a profile is told in one go", "[profile]") {
  const auto [profile, problems] = read_text(R"(schema: hdpsim.profile/2
provenance: {label: guessed, source: own kernels, device: A100}
datasheet: {peak: 312, memory_bandwidth: -5 GB/s, memory: 80 GB, multiprocesors: 108, source: x}
attention:
  - mask: causal
    direction: forward
    head_dim: 128
    heads: 16
    tile: {queries: 128, keys: 176}
    launch: 3 us
    source: x
    samples: []
  - mask: full
    direction: sideways
    head_dim: 0
    heads: 16
    tile: {queries: 128, keys: 4294967296}
    launch: 3 us
    source: x
    samples:
      - {queries: 512, keys: 512}
      - {queries: 512, keys: 512, rate: 100 TFLOP/s, time: 1 ms}
gemm: {tile: {m: 128, n: 256}, launch: 3 us, full_rate: 100 TFLOP/s, source: x, by_work: ~}
memory_bound: {latency: 3 us, bandwidth: 0 GB/s, source: ""}
links:
  network:
    send_recv: {latency: -1 us, bandwidth: 30 GB/s, line_rate: 200 Gbit/s, source: x}
overheads:
  per_step: {time: 5, source: x}
  per_micro_batch: {time: 0 s, source: x}
extras: 1
)");
  CHECK_FALSE(profile.has_value());
  CHECK(problems == R"(p.yaml:1:9: error: there is no schema 'hdpsim.profile/2'
    1 | schema: hdpsim.profile/2
                ^ did you mean 'hdpsim.profile/1'?
p.yaml:2:21: error: there is no label 'guessed'
    2 | provenance: {label: guessed, source: own kernels, device: A100}
                            ^ known: measured, published, datasheet, fitted, traced
p.yaml:3:12: error: the data sheet needs 'multiprocessors'
    3 | datasheet: {peak: 312, memory_bandwidth: -5 GB/s, memory: 80 GB, multiprocesors: 108, source: x}
                   ^
p.yaml:3:19: error: "312" has no unit
    3 | datasheet: {peak: 312, memory_bandwidth: -5 GB/s, memory: 80 GB, multiprocesors: 108, source: x}
                          ^ did you mean 312 TFLOP/s?
p.yaml:3:42: error: 'memory_bandwidth' is -5 GB/s, it must be from 1 MB/s to 1000 TB/s
    3 | datasheet: {peak: 312, memory_bandwidth: -5 GB/s, memory: 80 GB, multiprocesors: 108, source: x}
                                                 ^
p.yaml:3:66: error: the data sheet has no key 'multiprocesors'
    3 | datasheet: {peak: 312, memory_bandwidth: -5 GB/s, memory: 80 GB, multiprocesors: 108, source: x}
                                                                         ^ did you mean 'multiprocessors'?
p.yaml:12:14: error: 'samples' must be a list of at least one sample
   12 |     samples: []
                     ^
p.yaml:14:16: error: there is no direction 'sideways'
   14 |     direction: sideways
                       ^ known: forward, backward
p.yaml:15:15: error: 'head_dim' is 0, it must be from 1 to 1e+12
   15 |     head_dim: 0
                      ^
p.yaml:17:32: error: 'keys' is 4294967296, it must be from 1 to 65536
   17 |     tile: {queries: 128, keys: 4294967296}
                                       ^
p.yaml:21:9: error: a sample needs either 'time' or 'rate'
   21 |       - {queries: 512, keys: 512}
                ^
p.yaml:22:9: error: a sample needs either 'time' or 'rate'
   22 |       - {queries: 512, keys: 512, rate: 100 TFLOP/s, time: 1 ms}
                ^
p.yaml:22:9: error: a second sample of 512 queries and 512 keys
   22 |       - {queries: 512, keys: 512, rate: 100 TFLOP/s, time: 1 ms}
                ^
p.yaml:23:7: error: 'gemm' needs samples: 'by_work', 'by_shape' or both
   23 | gemm: {tile: {m: 128, n: 256}, launch: 3 us, full_rate: 100 TFLOP/s, source: x, by_work: ~}
              ^
p.yaml:24:42: error: 'bandwidth' is 0 GB/s, it must be from 1 MB/s to 1000 TB/s
   24 | memory_bound: {latency: 3 us, bandwidth: 0 GB/s, source: ""}
                                                 ^
p.yaml:24:58: error: 'source' says nothing
   24 | memory_bound: {latency: 3 us, bandwidth: 0 GB/s, source: ""}
                                                                 ^
p.yaml:27:26: error: 'latency' is -1 us, it must be from 0 s to 3600 s
   27 |     send_recv: {latency: -1 us, bandwidth: 30 GB/s, line_rate: 200 Gbit/s, source: x}
                                 ^
p.yaml:27:44: error: a bandwidth of 30 GB/s is more than the line rate of 25 GB/s
   27 |     send_recv: {latency: -1 us, bandwidth: 30 GB/s, line_rate: 200 Gbit/s, source: x}
                                                   ^
p.yaml:29:3: error: 'overheads' needs 'kernel_launch'
   29 |   per_step: {time: 5, source: x}
          ^
p.yaml:29:20: error: "5" has no unit
   29 |   per_step: {time: 5, source: x}
                           ^ did you mean 5 us, 5 ms or 5 s?
p.yaml:31:1: error: the profile has no key 'extras'
   31 | extras: 1
        ^ known: schema, like, without, provenance, elements, datasheet, attention, attention_triton, attention_flash2, attention_cudnn, gemm, gemm_fp8, gemm_fp8_blocks, gemm_fp8_deepgemm, gemm_mxfp8, gemm_nvfp4, memory_bound, links, host_copies, spread, overheads, connections, backward_ring, samples, fits
)");
}

TEST_CASE("a profile says what a first contact costs as far as it knows", "[profile]") {
  const auto [profile, problems] = read_text(measured_head + R"(
connections: {first_contact: 20 ms, communicator: {base: 1.5 s, per_rank: 80 ms}}
)");
  CHECK(problems.empty());
  REQUIRE(profile.has_value());
  REQUIRE(profile->connections.has_value());
  CHECK(profile->connections->first_contact == 20_ms);
  CHECK_FALSE(profile->connections->memory_per_peer);
  REQUIRE(profile->connections->communicator);
  CHECK(profile->connections->communicator->base == 1500_ms);
  CHECK(profile->connections->communicator->per_rank == 80_ms);
  CHECK(again(*profile) == profile);
}

TEST_CASE("a profile may state how much slower kernels are beside messages", "[profile]") {
  std::string text = measured_head;
  text += "  compute_beside_communication: {factor: 1.05, source: own measurement}\n";
  text += "connections: {memory_per_peer: 12 MiB}\n";
  const auto [profile, problems] = read_text(text);
  CHECK(problems.empty());
  REQUIRE(profile.has_value());
  REQUIRE(profile->overheads.compute_beside_communication);
  CHECK(profile->overheads.compute_beside_communication->factor == 1.05);
  CHECK(profile->connections->memory_per_peer == 12_MiB);
  CHECK(again(*profile) == profile);
}

TEST_CASE("every problem of a profile's connections is told", "[profile]") {
  std::string text = measured_head;
  text += "  compute_beside_communication: {factor: 0.9}\n";
  text += "connections: {first_contact: 0 ms, communicator: {base: -1 s}}\n";
  const auto [profile, problems] = read_text(text);
  CHECK_FALSE(profile.has_value());
  CHECK(problems ==
        "p.yaml:8:42: error: 'factor' is 0.9, it must be from 1 to 1e+12\n"
        "    8 |   compute_beside_communication: {factor: 0.9}\n"
        "                                                 ^\n"
        "p.yaml:9:30: error: 'first_contact' is 0 ms, it must be from 1 ps to 3600 s\n"
        "    9 | connections: {first_contact: 0 ms, communicator: {base: -1 s}}\n"
        "                                     ^\n"
        "p.yaml:9:50: error: 'communicator' needs 'per_rank'\n"
        "    9 | connections: {first_contact: 0 ms, communicator: {base: -1 s}}\n"
        "                                                         ^\n"
        "p.yaml:9:57: error: 'base' is -1 s, it must be from 0 s to 3600 s\n"
        "    9 | connections: {first_contact: 0 ms, communicator: {base: -1 s}}\n"
        "                                                                ^\n");
}

TEST_CASE("connections without a cost are a mistake", "[profile]") {
  const auto [profile, problems] = read_text(measured_head + "connections: {source: nobody}\n");
  CHECK_FALSE(profile.has_value());
  CHECK_THAT(problems, Catch::Contains("'connections' states no cost") &&
                           Catch::Contains("give 'first_contact', 'memory_per_peer' or 'communicator'"));
}

TEST_CASE("a sample faster than the device is refused", "[profile]") {
  const auto [profile, problems] = read_text(measured_head + R"(
gemm:
  tile: {m: 128, n: 256}
  launch: 3 us
  full_rate: 800 TFLOP/s
  by_shape:
    - {m: 8192, n: 8192, k: 8192, time: 1 ms}
)");
  CHECK_FALSE(profile.has_value());
  // 2 x 8192^3 FLOP in 1 ms are 1,100 TFLOP/s.
  CHECK(problems ==
        "p.yaml:14:41: error: 1 ms is faster than the peak of the data sheet\n"
        "   14 |     - {m: 8192, n: 8192, k: 8192, time: 1 ms}\n"
        "                                                ^\n");
}

TEST_CASE("others' figures need a source, our own have the provenance", "[profile]") {
  std::string published = measured_head;
  published.replace(published.find("measured"), std::string("measured").size(), "published");
  const auto [profile, problems] = read_text(published);
  CHECK_FALSE(profile.has_value());
  CHECK(problems.find("p.yaml:3:12: error: the data sheet needs 'source'\n") != std::string::npos);
  CHECK(problems.find("p.yaml:5:13: error: 'per_step' needs 'source'\n") != std::string::npos);
}

TEST_CASE("an empty file is no profile", "[profile]") {
  CHECK(read_text("").problems == "p.yaml: error: the profile must be a map, found nothing\n");
}

}  // namespace
}  // namespace hdpsim
