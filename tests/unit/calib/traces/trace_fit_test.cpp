#include "calib/traces/trace_fit.h"

#include <algorithm>

#include "sim/cost/cost_model.h"
#include "sim/document/document.h"
#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"
#include "tests/support/synthetic_training.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim::calib {
namespace {

using test::SyntheticTraining;
using test::TrainingTruth;

DeviceProfile start() {
  Diagnostics diagnostics;
  const auto profile =
      load_profile(HDPSIM_SOURCE_DIR "/calib/profiles/h100-published.yaml", "", {"test", 0, 0}, diagnostics);
  diagnostics.throw_if_any();
  return *profile;
}

Recording recorded(SyntheticTraining& training) {
  const test::TemporaryFolder folder;
  return read_recording({training.trace().write(folder.path() / "rank0.json")});
}

Recording everything(const TrainingTruth& truth) {
  SyntheticTraining training(truth);
  training.everything();
  return recorded(training);
}

DeviceProfile fitted(const Recording& recording) {
  return fit_to_traces(recording, start(), {.source = "a test"});
}

const TracedPart* part_of(const DeviceProfile& profile, const std::string& name) {
  const std::vector<TracedPart>& parts = profile.provenance.traces->parts;
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const TracedPart& part) { return part.part == name; });
  return found == parts.end() ? nullptr : &*found;
}

std::string kept_because(const DeviceProfile& profile, const std::string& name) {
  for (const KeptPart& part : profile.provenance.traces->kept) {
    if (part.part == name) return part.why;
  }
  return "";
}

Approx within(double value, double share) {
  return Approx(value).epsilon(share);
}

constexpr double us = 1e-6;

// Noise of 2 % leaves the median of six times 2 % x 1.25 / sqrt(6) = 1 %, and a law of many such less: intervals of 3 %
// are three standard deviations of a single size.

TEST_CASE("a device's laws come back from its trace", "[traces]") {
  const TrainingTruth truth;
  const DeviceProfile profile = fitted(everything(truth));
  const std::unique_ptr<CostModel> model = make_cost_model(profile);

  SECTION("products, of measured shapes and of others") {
    for (const auto& [m, n, k] : {std::tuple(8192, 4096, 4096), std::tuple(8192, 8192, 4096)}) {
      const double seconds = us * (truth.gap_us + truth.product_us + 2.0 * m * n * k / truth.product_rate);
      CHECK(model->gemm({m, n, k}).time.seconds() == within(seconds, 0.05));
    }
    REQUIRE(part_of(profile, "gemm") != nullptr);
    CHECK(part_of(profile, "gemm")->how == "fitted");
    CHECK(part_of(profile, "gemm")->sizes == std::ssize(SyntheticTraining::products()));
  }
  SECTION("attention, of a length that was not in the trace, too") {
    for (const double tokens : {4096.0, 12288.0}) {
      const Attention op{
          .blocks = {{static_cast<std::int64_t>(tokens), static_cast<std::int64_t>(tokens), Mask::causal, 1}},
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .direction = Direction::forward};
      const double area = tokens * (tokens + 1) / 2;
      const double seconds = us * (truth.gap_us + truth.attention_us + 4 * 32 * 128 * area / truth.attention_rate);
      CHECK(model->attention(op).time.seconds() == within(seconds, 0.05));
    }
    REQUIRE(part_of(profile, "attention causal forward 128") != nullptr);
    CHECK(part_of(profile, "attention causal forward 128")->samples == 5 * truth.repeats);
  }
  SECTION("memory") {
    const double bytes = 300e6;
    const double seconds = us * (truth.gap_us + truth.memory_us + bytes / truth.memory_bytes_per_us);
    CHECK(model->memory_bound({Bytes(300'000'000), 1, MemoryKernel::add}).time.seconds() == within(seconds, 0.03));
    CHECK(us * static_cast<double>(profile.memory_bound->bandwidth.bytes_per_second()) ==
          within(truth.memory_bytes_per_us, 0.03));
  }
  SECTION("messages") {
    const CollectiveRate& rate = *profile.nvlink->all_gather;
    CHECK(us * static_cast<double>(rate.bandwidth.bytes_per_second()) == within(truth.gather_bytes_per_us, 0.03));
    CHECK(rate.latency.seconds() + 7 * rate.step_latency.seconds() == within(us * truth.gather_us, 0.05));
    CHECK(rate.line_rate == start().nvlink->all_gather->line_rate);
    REQUIRE(profile.fits.messages.size() == 1);
    CHECK(profile.fits.messages[0].ranks == 8);
  }
  SECTION("the host, the gap between kernels, and the slowdown beside messages") {
    CHECK(profile.overheads.kernel_launch.time.seconds() == within(us * truth.gap_us, 0.02));
    CHECK(profile.overheads.host_issue->time.seconds() == within(us * truth.issue_us, 0.01));
    CHECK(profile.overheads.compute_beside_communication->factor == within(truth.slowdown, 0.03));
  }
}

TEST_CASE("what a trace does not determine is the starting profile's, with the reason", "[traces]") {
  const DeviceProfile profile = fitted(everything({}));
  CHECK(profile.nvlink->all_reduce == start().nvlink->all_reduce);
  CHECK(profile.network == start().network);
  CHECK(profile.host_copies == start().host_copies);
  CHECK(profile.gemm_narrow == start().gemm_narrow);
  CHECK(kept_because(profile, "nvlink all_reduce") == "the traces have no such messages with their sizes");
  CHECK(kept_because(profile, "network all_gather") == "the traces have no such messages with their sizes");
  CHECK_FALSE(kept_because(profile, "host_copies").empty());
  CHECK_FALSE(kept_because(profile, "per_step").empty());
  // Attention that the trace has not is still there.
  const auto backward = [](const AttentionCurve& curve) { return curve.backward && curve.causal; };
  CHECK(std::any_of(profile.attention.begin(), profile.attention.end(), backward));
}

TEST_CASE("few sizes scale the starting profile by one factor", "[traces]") {
  TrainingTruth truth;
  truth.noise = 0;
  SyntheticTraining training(truth);
  const std::unique_ptr<CostModel> before = make_cost_model(start());
  for (int i = 0; i < 5; ++i) training.product(8192, 4096, 4096);
  const DeviceProfile profile = fitted(recorded(training));
  REQUIRE(part_of(profile, "gemm") != nullptr);
  CHECK(part_of(profile, "gemm")->how == "scaled");
  const std::unique_ptr<CostModel> after = make_cost_model(profile);
  const double seconds = us * (truth.gap_us + truth.product_us + 2.0 * 8192 * 4096 * 4096 / truth.product_rate);
  CHECK(after->gemm({8192, 4096, 4096}).time.seconds() == within(seconds, 0.02));
  // Another shape has changed alike.
  const double factor = seconds / before->gemm({8192, 4096, 4096}).time.seconds();
  CHECK(after->gemm({16384, 8192, 4096}).time.seconds() ==
        within(factor * before->gemm({16384, 8192, 4096}).time.seconds(), 0.02));
}

TEST_CASE("messages of one size tell the bandwidth beside known latencies", "[traces]") {
  TrainingTruth truth;
  truth.noise = 0;
  SyntheticTraining training(truth);
  for (int i = 0; i < 5; ++i) training.gather(64'000'000);
  const DeviceProfile profile = fitted(recorded(training));
  const CollectiveRate& rate = *profile.nvlink->all_gather;
  CHECK(rate.latency == start().nvlink->all_gather->latency);
  CHECK(rate.step_latency == start().nvlink->all_gather->step_latency);
  const double latency = rate.latency.seconds() + 7 * rate.step_latency.seconds();
  const double seconds = us * (truth.gather_us + 7.0 / 8 * 64e6 / truth.gather_bytes_per_us);
  CHECK(latency + 7.0 / 8 * 64e6 / static_cast<double>(rate.bandwidth.bytes_per_second()) == within(seconds, 1e-3));
  CHECK(part_of(profile, "nvlink all_gather")->how == "scaled");
}

struct TimedMessage {
  std::int64_t bytes;
  double seconds;
};

// All-reduces of two devices of a node, of one of which there is a trace, or of both.
DeviceProfile fitted_to(const std::vector<TimedMessage>& messages, bool both = false) {
  Recording recording;
  for (const auto& [bytes, seconds] : messages) {
    MessageSamples& samples = recording.messages[{MessageKind::all_reduce, 2, bytes, LinkKind::nvlink}];
    samples.seconds.add(seconds);
    if (both) samples.of_all_ranks.add(seconds);
  }
  return fitted(recording);
}

// As long for 8 MB as for 31 MB.
const std::vector<TimedMessage> waiting = {
    {8'000'000, 3.3e-3}, {10'000'000, 2.1e-3}, {26'000'000, 2.37e-3}, {26'400'000, 2.64e-3}, {31'200'000, 2.42e-3}};

TEST_CASE("collectives of one rank whose times do not depend on their sizes have waited, and tell no rate",
          "[traces]") {
  const DeviceProfile profile = fitted_to(waiting);
  CHECK(profile.nvlink->all_reduce == start().nvlink->all_reduce);
  CHECK(profile.fits.messages.empty());
  CHECK_THAT(kept_because(profile, "nvlink all_reduce"),
             Catch::Contains("their times do not depend on their sizes") && Catch::Contains("8.00 MB took 3.30 ms") &&
                 Catch::Contains("31.2 MB took 2.42 ms") && Catch::Contains("traces of all ranks"));
  SECTION("but where all ranks were traced there is no waiting in them") {
    CHECK(part_of(fitted_to(waiting, true), "nvlink all_reduce") != nullptr);
  }
  SECTION("two sizes are enough to show it") {
    CHECK_THAT(kept_because(fitted_to({waiting.front(), waiting.back()}), "nvlink all_reduce"),
               Catch::Contains("do not depend on their sizes"));
  }
}

TEST_CASE("a slow link shows in times that grow with the size", "[traces]") {
  std::vector<TimedMessage> slow;
  for (const auto& [bytes, seconds] : waiting) slow.push_back({bytes, static_cast<double>(bytes) / 10e9});
  const DeviceProfile profile = fitted_to(slow);
  CHECK(profile.nvlink->all_reduce->bandwidth.gigabytes_per_second() == within(10, 0.1));
}

TEST_CASE("messages of one size, far slower than known, tell no rate: they may have waited", "[traces]") {
  const double known_s = 64e6 / static_cast<double>(start().nvlink->all_reduce->bandwidth.bytes_per_second());
  CHECK_THAT(kept_because(fitted_to({{64'000'000, 10 * known_s}}), "nvlink all_reduce"),
             Catch::Contains("times the known time") && Catch::Contains("too alike to tell whether they waited"));
  CHECK(part_of(fitted_to({{64'000'000, 2 * known_s}}), "nvlink all_reduce") != nullptr);
}

TEST_CASE("messages that are little but latency tell no rate", "[traces]") {
  // The norm of the gradients, and the loss.
  CHECK_THAT(kept_because(fitted_to({{4, 40e-6}, {8, 900e-6}}), "nvlink all_reduce"),
             Catch::Contains("too small to tell a rate"));
}

TEST_CASE("what nccl-tests has measured replaces the links of a profile, and nothing else", "[traces]") {
  MeasuredMessages messages{.timings = {}, .files = {{"all_reduce.txt", 11}}, .nccl = "2.25.1"};
  for (std::int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 2) {
    const double seconds = 30e-6 + 1.75 * static_cast<double>(bytes) / 300e9;
    messages.timings.push_back(
        {MessageKind::all_reduce, LinkKind::nvlink, 8, bytes, {seconds, seconds, seconds, 0, 20}});
  }
  const DeviceProfile profile = fit_to_messages(messages, start(), {.source = "a test"});
  CHECK(profile.nvlink->all_reduce->bandwidth.gigabytes_per_second() == within(300, 0.01));
  CHECK(profile.nvlink->all_gather == start().nvlink->all_gather);
  CHECK(profile.network == start().network);
  CHECK(profile.gemm == start().gemm);
  CHECK(profile.overheads == start().overheads);
  REQUIRE(profile.fits.messages.size() == 1);
  CHECK(profile.fits.messages.front().ranks == 8);
  CHECK(profile.provenance.nccl == "2.25.1");
  CHECK_THAT(parts_report(*profile.provenance.traces, "from nccl-tests"),
             Catch::Contains("nvlink all_reduce") && Catch::Contains("nccl-tests measures messages alone"));
  Diagnostics diagnostics;
  const auto again =
      read_profile(parse_document("p.yaml", profile_text(profile), diagnostics), profile.name, diagnostics);
  INFO(diagnostics.text());
  REQUIRE(again.has_value());
  CHECK(*again == profile);
}

TEST_CASE("a collective over all NICs of its nodes keeps the line of one of them, and has a curve of its own",
          "[traces]") {
  MeasuredMessages messages{.timings = {}, .files = {{"all_reduce.txt", 11}}, .nccl = {}};
  for (std::int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 2) {
    const double seconds = 30e-6 + 1.875 * static_cast<double>(bytes) / 348e9;
    messages.timings.push_back(
        {MessageKind::all_reduce, LinkKind::network, 16, bytes, {seconds, seconds, seconds, 0, 20}});
  }
  const DeviceProfile profile = fit_to_messages(messages, start(), {.source = "a test"});
  CHECK(profile.network->all_reduce == start().network->all_reduce);
  REQUIRE(profile.fits.messages.size() == 1);
  CHECK(profile.fits.messages.front().ranks == 16);
  CHECK_THAT(part_of(profile, "network all_reduce")->value, Catch::Contains("over all links of a node"));
}

TEST_CASE("messages that take no time are no samples", "[traces]") {
  TrainingTruth truth;
  truth.gather_us = 0;
  truth.gather_bytes_per_us = 1e30;
  SyntheticTraining training(truth);
  for (const std::int64_t bytes : {1'000'000, 4'000'000, 16'000'000, 64'000'000}) training.gather(bytes);
  const DeviceProfile profile = fitted(recorded(training));
  CHECK(profile.nvlink->all_gather == start().nvlink->all_gather);
}

TEST_CASE("shapes that would make kernels faster than the device are no samples", "[traces]") {
  TrainingTruth truth;
  truth.product_rate = 2000e6;  // twice the data sheet's 989 TFLOP/s
  SyntheticTraining training(truth);
  for (const auto& [m, n, k] : SyntheticTraining::products()) training.product(m, n, k);
  const DeviceProfile profile = fitted(recorded(training));
  CHECK(profile.gemm == start().gemm);
  CHECK(kept_because(profile, "gemm") == "recorded shapes make kernels faster than the data sheet allows");
}

TEST_CASE("times in a wrong unit make neither memory nor links fast", "[traces]") {
  TrainingTruth truth;  // nanoseconds taken for picoseconds
  truth.memory_us /= 1000;
  truth.memory_bytes_per_us *= 1000;
  truth.gather_us /= 1000;
  truth.gather_bytes_per_us *= 1000;
  truth.noise = 0;
  SyntheticTraining training(truth);
  for (const std::int64_t mega : {8, 16, 32}) training.add(mega * 1'000'000);  // up to 192 MB
  for (const std::int64_t mega : {1, 4, 16, 64, 256}) training.gather(mega * 1'000'000);
  const DeviceProfile profile = fitted(recorded(training));
  CHECK(profile.memory_bound == start().memory_bound);
  CHECK(profile.nvlink->all_gather == start().nvlink->all_gather);
  CHECK(kept_because(profile, "memory_bound") == "recorded shapes make kernels faster than the data sheet allows");
  CHECK_THAT(kept_because(profile, "nvlink all_gather"), Catch::Contains("more than its link can carry"));
}

TEST_CASE("a trace without shapes says so and measures no rate", "[traces]") {
  test::KinetoTrace trace;
  for (int i = 0; i < 20; ++i) trace.kernel("nvjet_tst_128x256", 100 * i, 50, 1, 0);
  const test::TemporaryFolder folder;
  const DeviceProfile profile = fitted(read_recording({trace.write(folder.path() / "t.json")}));
  CHECK(kept_because(profile, "gemm") == "no shapes were recorded: profile with record_shapes=True");
  CHECK(profile.gemm == start().gemm);
  CHECK(profile.provenance.traces->parts.empty());
}

TEST_CASE("the profile of a trace is read back as it was written, with its label and its record", "[traces]") {
  const DeviceProfile profile = fitted(everything({}));
  CHECK(profile.provenance.label == ProfileLabel::traced);
  CHECK(profile.provenance.device_name == "NVIDIA H100 80GB HBM3");
  CHECK(profile.provenance.device == "H100-80GB");
  REQUIRE(profile.provenance.traces->files.size() == 1);
  CHECK(profile.provenance.traces->start == "h100-published (published)");
  Diagnostics diagnostics;
  const auto again =
      read_profile(parse_document("traced.yaml", profile_text(profile), diagnostics), profile.name, diagnostics);
  INFO(diagnostics.text());
  REQUIRE(again.has_value());
  CHECK(*again == profile);
}

TEST_CASE("the report has all classes, what came from the trace, and what is unclassified", "[traces]") {
  SyntheticTraining training({});
  training.everything();
  training.unknown("selective_scan_fwd_kernel", 100);
  training.unknown("a_kernel_of_another", 300);
  const Recording recording = recorded(training);
  const std::string report = trace_report(recording, fitted(recording));
  for (const char* text :
       {"NVIDIA H100 80GB HBM3, 132 multiprocessors", "attention forward", "products", "collectives", "memory-bound",
        "a_kernel_of_another", "unclassified: ", "host_issue", "kept of h100-published"}) {
    INFO(text);
    CHECK(report.find(text) != std::string::npos);
  }
  CHECK(report.find("a_kernel_of_another") != std::string::npos);
}

TEST_CASE("the share of kernels that nobody knows is that of their time", "[traces]") {
  SyntheticTraining training({});
  training.everything();
  training.unknown("selective_scan_fwd_kernel", 300);
  const Recording recording = recorded(training);
  const double share = fitted(recording).provenance.traces->unclassified;
  CHECK(share == within(us * 300 / recording.kernel_s(), 1e-6));
  CHECK(share < 0.05);
}

}  // namespace
}  // namespace hdpsim::calib
