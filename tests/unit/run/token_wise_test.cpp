// Token-wise offload as MEMO (Zhao et al. 2024, arXiv 2407.12117) has it: what its rule gives for the models, hosts and
// lengths of the paper, by the equations of the paper's section 4.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/run/step.h"
#include "sim/study/study_point.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::StudyFile;

constexpr std::int64_t ki = 1024;

/// A GPT of the paper's table 2, with tp 8 on each node.
struct Gpt {
  std::string name = "7B";
  std::int64_t layers = 32;
  std::int64_t hidden = 4096;
  std::int64_t heads = 32;
  std::int64_t gpus = 8;

  // On a device, of a token: 16 values of 2 bytes a hidden element, and the log-sum-exp of each head.
  [[nodiscard]] double kept() const { return static_cast<double>(32 * hidden + 4 * heads) / static_cast<double>(gpus); }
  // Of it the layer's input and attention's output, with the log-sum-exp.
  [[nodiscard]] double whole() const { return static_cast<double>(4 * hidden + 4 * heads) / static_cast<double>(gpus); }
};

/// One sequence on nodes of eight A800 with 2 TiB each.
class OneSequence {
 public:
  OneSequence(const Gpt& gpt, std::int64_t tokens, std::vector<std::string> overrides = {}) {
    const StudyFile file(text(gpt, tokens));
    overrides.insert(overrides.begin(),
                     fmt::format("mesh.capacity={}", (tokens * 16 / gpt.gpus + gpt.layers - 1) / gpt.layers));
    study_ = file.load(overrides);
  }

  static std::string text(const Gpt& gpt, std::int64_t tokens) {
    return fmt::format(
        "name: one\ncluster: {{preset: a800-rail, gpus: {}, node: {{host_memory: 2 TiB}}}}\n"
        "model: {{preset: gpt-7.5b, n_layer: {}, n_embd: {}, n_head: {}, n_inner: {}, vocab_size: 50257}}\n"
        "profile: a800-published\ndata: {{lengths: {{fixed: {}}}, context: {}, tokens_per_step: {}, steps: 1}}\n"
        "mesh: {{tp: 8}}\nmemory: {{fragmentation: 0}}\nplans: [{{hdp-naive: {{offload: token-wise}}}}]\n",
        gpt.gpus, gpt.layers, gpt.hidden, gpt.heads, 4 * gpt.hidden, tokens, tokens, tokens);
  }

  [[nodiscard]] MicroBatch micro_batch() const {
    const Plan plan = make_plan(point(), 0, 0, point().batches->step(0));
    REQUIRE(plan.micro_batches.size() == 1);
    return plan.micro_batches.front();
  }
  [[nodiscard]] StepResult step() const {
    const auto world = point().make_world();
    return simulate_step(point(), 0, 0, *world).result;
  }
  [[nodiscard]] double seconds() const { return step().time.seconds(); }
  [[nodiscard]] double device_bytes() const { return static_cast<double>(step().memory.device.count()); }
  // Of one layer.
  [[nodiscard]] double forward_seconds() const {
    const auto world = point().make_world();
    const PlanningContext context = planning_context(point().spec, world->job());
    const std::int64_t tokens = context.context / context.ranks;
    return context.work.forward_seconds(causal_pairs(context.context) / static_cast<double>(context.ranks), tokens) /
           static_cast<double>(context.layers);
  }

 private:
  [[nodiscard]] const StudyPoint& point() const { return study_.points.at(0); }

  Study study_;
};

// Two GPUs share an uplink.
std::string at_rate(double bytes_per_second) {
  return fmt::format("cluster.node.pcie.bandwidth={:.0f} MB/s", 2 * bytes_per_second / 1e6);
}

TEST_CASE("token-wise: of long sequences the host's memory says how many tokens leave", "[token-wise][published]") {
  struct Case {
    Gpt gpt;
    std::int64_t tokens;
    double derived;  // from 16 values a hidden element and 2 TiB for 8 GPUs
  };
  const Gpt gpt_7b;
  const Gpt gpt_13b{"13B", 40, 5120, 40, 16};
  const Gpt gpt_30b{"30B", 48, 7168, 56, 32};
  const Gpt gpt_65b{"65B", 80, 8192, 64, 64};
  const double host = 2.0 * static_cast<double>(std::int64_t{1} << 40) / 8;
  for (const auto& [gpt, tokens, derived] :
       {Case{gpt_7b, 512 * ki, 1}, Case{gpt_7b, 768 * ki, 0.67}, Case{gpt_7b, 1024 * ki, 0.467},
        Case{gpt_7b, 1408 * ki, 0.30}, Case{gpt_13b, 512 * ki, 1}, Case{gpt_13b, 768 * ki, 0.884},
        Case{gpt_13b, 1024 * ki, 0.627}, Case{gpt_13b, 1408 * ki, 0.417}, Case{gpt_30b, 768 * ki, 1},
        Case{gpt_30b, 1024 * ki, 0.766}, Case{gpt_30b, 1408 * ki, 0.518}, Case{gpt_65b, 768 * ki, 1},
        Case{gpt_65b, 1024 * ki, 0.795}, Case{gpt_65b, 1408 * ki, 0.539}}) {
    CAPTURE(gpt.name, tokens);
    const OneSequence sequence(gpt, tokens);
    const MicroBatch micro_batch = sequence.micro_batch();
    CHECK(micro_batch.token_wise);
    CHECK(std::ssize(micro_batch.group) == gpt.gpus / 8);
    CHECK(micro_batch.offload == Approx(derived).margin(0.005));
    // (n - 2) (S_in + S_attn + alpha S_oth) <= M_host
    const double of_layer = host / static_cast<double>((gpt.layers - 2) * tokens);
    const double alpha = std::min(1.0, (of_layer - gpt.whole()) / (gpt.kept() - gpt.whole()));
    CHECK(micro_batch.offload == Approx(alpha).margin(1e-4));
    CHECK(sequence.step().memory.host <= Bytes(static_cast<std::int64_t>(host)));
  }
}

TEST_CASE("token-wise: of short sequences the forward pass of a layer says how many tokens leave",
          "[token-wise][published]") {
  // The paper's figure 1b: all copies of 7B hide from 192Ki tokens on, which follows from 10 to 12 GB/s a GPU.
  const Gpt gpt;
  const auto offload = [&](double gb_per_s, std::int64_t tokens) {
    return OneSequence(gpt, tokens, {at_rate(gb_per_s * 1e9)}).micro_batch().offload;
  };
  CHECK(offload(12, 192 * ki) == 1);
  CHECK(offload(10, 192 * ki) < 1);
  CHECK(offload(10, 256 * ki) == 1);
  // (S_in + S_attn + alpha S_oth) / B <= T_layer
  for (const std::int64_t tokens : {64 * ki, 128 * ki}) {
    const double hidden = OneSequence(gpt, tokens).forward_seconds() * 10e9 / static_cast<double>(tokens);
    CHECK(offload(10, tokens) == Approx((hidden - gpt.whole()) / (gpt.kept() - gpt.whole())).margin(1e-3));
  }
}

TEST_CASE("token-wise: gaps of the allocator shorten the longest sequence", "[token-wise][published]") {
  // 7.8 GB of 65.7 (figure 1a). On a device a token takes two layers of activations, its part of the logits, and in
  // hidden states what the last norm reads and writes, the gathered input of the head, its gathered gradient, and the
  // latter's sum.
  const Gpt gpt;
  const auto bytes = [&](std::int64_t tokens, const std::string& gaps) {
    return OneSequence(gpt, tokens, {"memory.fragmentation=" + gaps}).device_bytes();
  };
  const double words = std::ceil(50257.0 / 8);
  const double hidden = 2.0 * static_cast<double>(gpt.hidden);
  const double of_token = 2 * gpt.kept() + 2 * words + hidden * (2.0 / 8 + 1 + 1 + 1.0 / 8);
  const std::int64_t half = 512 * ki;
  const double grown = bytes(2 * half, "0") - bytes(half, "0");
  CHECK(grown / static_cast<double>(half) == Approx(of_token).epsilon(1e-6));
  // Gaps grow with all that the allocator gives.
  CHECK(bytes(2 * half, "0.119") - bytes(half, "0.119") == Approx(1.119 * grown).epsilon(1e-6));
  // 80 GB hold what is there without tokens, and the rest of them.
  const auto longest = [&](double gaps) {
    const std::string text = fmt::format("{}", gaps);
    const double of_states = bytes(half, text) - (1 + gaps) * of_token * static_cast<double>(half);
    return static_cast<std::int64_t>((80e9 - of_states) / ((1 + gaps) * of_token));
  };
  const auto fits = [&](double gaps, std::int64_t tokens) {
    const StudyFile file(OneSequence::text(gpt, tokens));
    return file.problems({"mesh.capacity=auto", fmt::format("memory.fragmentation={}", gaps)}).empty();
  };
  for (const double gaps : {0.0, 0.119}) {
    CAPTURE(gaps);
    const std::int64_t most = longest(gaps);
    CHECK(fits(gaps, most - ki));  // capacity is chosen in steps of 256 tokens that stay
    CHECK_FALSE(fits(gaps, most + ki));
  }
  CHECK(longest(0) > 896 * ki);
  CHECK(longest(0.119) < 896 * ki);
}

TEST_CASE("recomputation with logits in fp32 and with gaps ends between 512Ki and 768Ki tokens of 7B on eight GPUs",
          "[token-wise][published]") {
  // Published (version 1 of the paper) are 640K of Megatron-LM.
  const auto fits = [](std::int64_t tokens) {
    const StudyFile file(OneSequence::text({}, tokens));
    return file
        .problems({"mesh.capacity=auto", "memory.fragmentation=0.119", "training.recompute=full", "training.loss=fp32",
                   "plans=[static]"})
        .empty();
  };
  CHECK(fits(512 * ki));
  CHECK_FALSE(fits(768 * ki));
}

TEST_CASE("below twice the time of a forward pass, offloading everything is worth it; above, computing again is faster",
          "[token-wise][offload]") {
  // A layer whose copy takes c times its forward pass waits c - 1 of these in forward; computing it again takes one.
  const Gpt gpt;
  const std::int64_t tokens = 64 * ki;
  const double forward = OneSequence(gpt, tokens).forward_seconds();
  const auto seconds = [&](double copies, std::vector<std::string> overrides) {
    overrides.push_back(at_rate(gpt.kept() * static_cast<double>(tokens) / (copies * forward)));
    return OneSequence(gpt, tokens, overrides).seconds();
  };
  const std::vector<std::string> everything = {"plans=[{hdp-naive: {offload: 1.0}}]"};
  const std::vector<std::string> again = {"training.recompute=full", fmt::format("mesh.capacity={}", tokens)};
  for (const double copies : {1.5, 3.0}) {
    CAPTURE(copies);
    const double split = seconds(copies, {});
    CHECK((seconds(copies, everything) < seconds(copies, again)) == (copies < 2));
    CHECK(split < seconds(copies, everything));
    CHECK(split < seconds(copies, again));
  }
  // `forward` has a share of the embedding and the head in it, which makes copies a little longer than they hide.
  const double waits = seconds(1.5, everything) - seconds(0.5, everything);
  CHECK(waits > 0.5 * forward * static_cast<double>(gpt.layers - 2));
  CHECK(waits < 0.55 * forward * static_cast<double>(gpt.layers - 2));
}

}  // namespace
}  // namespace hdpsim
