#include "calib/measure/sample_fit.h"

#include <algorithm>
#include <fstream>

#include "calib/measure/sample_journal.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/fitted_transfer.h"
#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/sample_text.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim::calib {
namespace {

using Catch::Contains;
using test::SampleLaws;

SampleFile samples_in(const std::string& text, const std::string& name = "a.jsonl") {
  Diagnostics diagnostics;
  auto file = parse_samples(name, text, diagnostics);
  CAPTURE(diagnostics.text());
  REQUIRE(file);
  return *file;
}

SampleFit fitted_to(const SampleFile& file, const SampleFitOptions& options = {}) {
  Diagnostics diagnostics;
  SampleFit fit = fit_samples(file, options, diagnostics);
  CAPTURE(diagnostics.text());
  REQUIRE(diagnostics.empty());
  return fit;
}

DeviceProfile shipped_profile_named(const std::string& name) {
  Diagnostics diagnostics;
  auto profile = load_profile(name, HDPSIM_SOURCE_DIR "/calib/profiles", {}, diagnostics);
  REQUIRE(profile);
  return *profile;
}

TEST_CASE("samples of another program give their laws back at sizes that nobody measured", "[samples]") {
  const SampleLaws laws;
  const DeviceProfile profile = fitted_to(samples_in(test::samples_of_laws(laws))).profile;
  const auto cost = make_cost_model(profile);
  constexpr double close = 0.01;
  for (const std::int64_t n : {768, 3000, 6000, 12288}) {
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      for (const Mask mask : {Mask::causal, Mask::full}) {
        const Attention op{
            .blocks = {{n, n, mask, 1}}, .heads = laws.heads, .kv_heads = 8, .head_dim = 128, .direction = direction};
        CAPTURE(n, direction, mask);
        CHECK(cost->attention(op).time.seconds() ==
              Approx(laws.attention(pairs_of(op), direction == Direction::backward)).epsilon(close));
      }
    }
  }
  for (const std::int64_t m : {700, 3000, 6144}) {
    const Gemm op{m, 8192, 4096};
    CAPTURE(m);
    CHECK(cost->gemm(op).time.seconds() == Approx(laws.gemm(static_cast<double>(m), 8192, 4096)).epsilon(close));
  }
  for (const std::int64_t bytes : {3'000'000, 90'000'000}) {
    CHECK(cost->memory_bound({Bytes(bytes), 1, MemoryKernel::adam}).time.seconds() ==
          Approx(laws.memory_bound(static_cast<double>(bytes))).epsilon(close));
    for (const LinkKind link : {LinkKind::nvlink, LinkKind::network}) {
      for (const MessageKind kind : {MessageKind::send_recv, MessageKind::all_reduce}) {
        const MessageFit* fit = message_fit(profile.fits, link, kind, 2);
        REQUIRE(fit != nullptr);
        CHECK(fitted_seconds(*fit, static_cast<double>(bytes)) ==
              Approx(laws.message(static_cast<double>(bytes), link == LinkKind::network)).epsilon(close));
      }
    }
  }
  CHECK(profile.network->send_recv->bandwidth.gigabytes_per_second() == Approx(laws.network_rate / 1e9).epsilon(close));
  CHECK(profile.nvlink->send_recv->bandwidth.gigabytes_per_second() == Approx(laws.node_rate / 1e9).epsilon(close));
}

TEST_CASE("a profile of samples says whose kernels were measured, and what the host takes", "[samples]") {
  const DeviceProfile profile = fitted_to(samples_in(test::samples_of_laws()), {.source = "a fit"}).profile;
  CHECK(profile.provenance.label == ProfileLabel::measured);
  CHECK(profile.provenance.source ==
        "measured through PyTorch: attention by flash-attn 2.8.1, gemm by cuBLAS of torch 2.9.0, memory_bound by eager "
        "PyTorch, messages by NCCL 2.27 (a test); a fit");
  CHECK(is_of_other_kernels(profile.provenance));
  CHECK(profile.provenance.nccl == "2.27");
  REQUIRE(profile.overheads.host_issue);
  CHECK(profile.overheads.host_issue->time == Duration::seconds(1.2e-5));
  CHECK(profile.overheads.kernel_launch.time == Duration::seconds(3e-6));
  CHECK_FALSE(profile.host_copies);
  Diagnostics diagnostics;
  const auto back = read_profile(parse_document("p", profile_text(profile), diagnostics), "", diagnostics);
  CAPTURE(diagnostics.text());
  REQUIRE(back);
  CHECK(*back == profile);
}

TEST_CASE("what samples lack comes from another profile, which that part then names", "[samples]") {
  const DeviceProfile like = shipped_profile_named("h100-published");
  const SampleFile file = samples_in(test::sample_header("") + test::kernel_lines({}));
  const SampleFit fit = fitted_to(file, {.source = {}, .like = &like});
  const DeviceProfile& profile = fit.profile;
  CHECK(profile.datasheet.peak == like.datasheet.peak);
  CHECK_THAT(profile.datasheet.source, Contains("peak_flops") && Contains("of h100-published"));
  CHECK(profile.gemm->source.empty());
  REQUIRE(profile.attention.size() == like.attention.size());
  const AttentionCurve& kept = profile.attention.front();
  CHECK(kept.samples == like.attention.front().samples);
  CHECK(kept.source == "of h100-published: " + like.attention.front().source);
  REQUIRE(profile.network);
  CHECK(profile.network->all_gather->bandwidth == like.network->all_gather->bandwidth);
  for (const char* part : {"attention", "nvlink", "network"}) {
    CAPTURE(part);
    CHECK(std::count(fit.kept.begin(), fit.kept.end(), part) == 1);
  }
  CHECK_THAT(profile.provenance.source, Contains("kept of h100-published (published): "));

  // What is another's is not said to be measured here.
  const auto cost = make_cost_model(profile);
  const AttentionSample& known = kept.samples.front();
  const Attention op{.blocks = {{known.queries, known.keys, kept.causal ? Mask::causal : Mask::full, known.count}},
                     .heads = kept.heads,
                     .kv_heads = kept.kv_heads,
                     .head_dim = kept.head_dim,
                     .direction = kept.backward ? Direction::backward : Direction::forward};
  CHECK(cost->attention(op).time == known.time);
  CHECK(cost->attention(op).evidence == Evidence::interpolated);
  CHECK(cost->gemm({512, 4096, 4096}).evidence == Evidence::measured);
}

TEST_CASE("the peak of a device is not below that of kernels that are kept", "[samples]") {
  const DeviceProfile like = shipped_profile_named("h100-published");
  const std::string slow =
      R"("memory_bytes": 80000000000, "peak_flops": 1e12, "memory_bandwidth": 3.35e12, "multiprocessors": 132, )";
  const SampleFile file = samples_in(test::sample_header(slow) + test::message_lines({}));
  CHECK(fitted_to(file, {.source = {}, .like = &like}).profile.datasheet.peak == like.datasheet.peak);
  CHECK(fitted_to(file).profile.datasheet.peak.per_second() == Approx(1e12));
}

TEST_CASE("a data sheet that nobody states is said to be missing", "[samples]") {
  Diagnostics diagnostics;
  (void)fit_samples(samples_in(test::sample_header("") + test::attention_lines({})), {}, diagnostics);
  for (const char* missing : {"memory_bytes", "peak_flops", "memory_bandwidth", "multiprocessors"}) {
    CHECK_THAT(diagnostics.text(), Contains(fmt::format("a.jsonl:1:1: error: the header has no '{}'", missing)));
  }
  CHECK(diagnostics.count() == 4);
}

TEST_CASE("sizes that cannot be those of their times are refused", "[samples]") {
  std::string lines;
  for (const int m : {128, 256, 512, 1024}) {
    lines += test::sample_lines(fmt::format(R"("family": "gemm", "m": {}, "n": 4096, "k": 4096)", m), 4e-6);
  }
  Diagnostics diagnostics;
  (void)fit_samples(samples_in(test::sample_header(test::sheet_of_samples) + lines), {}, diagnostics);
  // 1,024 x 4,096 x 4,096 in 4 us are 8.6e15 FLOP/s, at a peak of 0.99e15.
  CHECK(diagnostics.empty());
  lines += test::sample_lines(R"("family": "gemm", "m": 2048, "n": 4096, "k": 4096)", 4e-6);
  (void)fit_samples(samples_in(test::sample_header(test::sheet_of_samples) + lines), {}, diagnostics);
  CHECK_THAT(diagnostics.text(), Contains("a.jsonl: error: gemm 2048x4096x4096 in 4e-06 s is more than 10 times"));
  CHECK(diagnostics.count() == 1);
}

TEST_CASE("files of one device are one calibration, and others are refused with all differences", "[samples]") {
  const std::string header = test::sample_header(test::sheet_of_samples);
  const SampleFile kernels = samples_in(header + test::kernel_lines({}));
  const SampleFile messages = samples_in(header + test::message_lines({}), "b.jsonl");
  Diagnostics diagnostics;
  const SampleFile both = merged_samples({kernels, messages}, diagnostics);
  CHECK(diagnostics.empty());
  CHECK(both.measurements.size() == kernels.measurements.size() + messages.measurements.size());

  SampleFile other = messages;
  other.header.circumstances.device = "H200-141GB";
  other.header.circumstances.peak_flops = 1e15;
  other.header.kernels["gemm"] = "cuBLAS of torch 2.10.0";
  other.header.circumstances.memory_bandwidth = 0;  // not said is no difference
  (void)merged_samples({kernels, other}, diagnostics);
  CHECK_THAT(diagnostics.text(), Contains("b.jsonl:1:1: error: device: H200-141GB here, H100-80GB in a.jsonl:1"));
  CHECK_THAT(diagnostics.text(), Contains("peak_flops") && Contains("kernels of gemm"));
  CHECK(diagnostics.count() == 3);
}

TEST_CASE("all that is wrong in a file of samples is said at once, with its lines", "[samples]") {
  const std::string lines =
      test::sample_header(test::sheet_of_samples) +
      R"({"subject": {"family": "gemn", "m": 1, "n": 2, "k": 3}, "median_s": 1})"
      "\n\nnot json\n"
      R"({"subject": {"family": "gemm", "m": 0, "n": 2}, "median_s": -1, "runs": 3})"
      "\n"
      R"({"subject": {"family": "gemm", "m": 1, "n": 2, "k": 3}, "median_s": 2, "p10_s": 3, "p90_s": 4})"
      "\n"
      R"({"subject": {"family": "attention", "backward": false, "heads": 8, "kv_heads": 3, "dim": 64, "blocks": [[4, 8, true, 1]]}, "median_s": 1})"
      "\n"
      R"({"subject": {"family": "copies", "kind": "d2h", "bytes": 8}, "round": 1, "median_s": 1, "mean_s": 1})"
      "\n"
      R"({"subject": {"family": "gemm", "m": 7, "n": 2, "k": 3}, "median_s": 2})"
      "\n"
      R"({"subject": {"family": "gemm", "m": 7, "n": 2, "k": 3}, "median_s": 2})"
      "\n" +
      test::sample_header("");
  Diagnostics diagnostics;
  CHECK_FALSE(parse_samples("a.jsonl", lines, diagnostics));
  const std::string text = diagnostics.text();
  for (const char* problem :
       {"a.jsonl:2:24: error", "did you mean 'gemm'?", "a.jsonl:4:1: error: this line is no JSON object",
        "a.jsonl:5:37: error: 'm' is 0", "a.jsonl:5:13: error: a subject needs 'k'", "'median_s' is -1",
        "a.jsonl:6:1: error: 'median_s' is not between 'p10_s' and 'p90_s'", "'kv_heads' does not divide 'heads'",
        "a causal block has as many queries as keys", "'mean_s'", "round 0 of this subject is in line 9, too",
        "a.jsonl:11:1: error: a second header"}) {
    CHECK_THAT(text, Contains(problem));
  }
  Diagnostics others;
  CHECK_FALSE(parse_samples("b.jsonl", "{\"a\": 1}\n", others));
  CHECK_FALSE(parse_samples("c.jsonl", "", others));
  CHECK_FALSE(parse_samples("d.jsonl", test::sample_header(""), others));
  CHECK_FALSE(parse_samples(
      "e.jsonl", test::sample_header("") + test::sample_lines(R"("family": "copies", "kind": "d2h", "bytes": 8)", 1),
      others));
  CHECK_THAT(others.text(), Contains("b.jsonl:1:1: error: these are no samples of kernels") &&
                                Contains("c.jsonl: error: the file is empty") &&
                                Contains("d.jsonl: error: there is no measurement behind the header") &&
                                Contains("e.jsonl:1:1: error: 'kernels' does not say whose those of 'copies' are"));
}

TEST_CASE("the journal of a calibration is fitted again, as its own kernels", "[samples]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "samples.jsonl").string();
  SampleFile measured = samples_in(test::samples_of_laws());
  {
    SampleTitle title{.program = "1.0", .plan = "quick", .circumstances = measured.header.circumstances};
    title.circumstances.gemm_tile_m = 64;
    SampleJournal journal = SampleJournal::start(path, title);
    for (const Measurement& measurement : measured.measurements) journal.add(measurement);
  }
  CHECK(holds_samples(path));
  Diagnostics diagnostics;
  const auto back = read_sample_file(path, diagnostics);
  REQUIRE(back);
  CHECK(back->measurements.size() == measured.measurements.size());
  const DeviceProfile profile = fitted_to(*back).profile;
  CHECK(profile.gemm->tile_m == 64);
  CHECK(profile.provenance.source == "measured by hdpsim 1.0");
  CHECK_FALSE(is_of_other_kernels(profile.provenance));
  CHECK(profile.network);

  std::string text = test::text_of(path);
  text[text.find("median_s") + 12] ^= 1;
  std::ofstream(path, std::ios::binary) << text;
  Diagnostics damaged;
  (void)read_sample_file(path, damaged);
  CHECK_THAT(damaged.text(), Contains("samples.jsonl:3:1: error: this line is damaged"));
}

}  // namespace
}  // namespace hdpsim::calib
