// Attention: over lengths, masks and head dimensions; of packed documents; with an epilogue that accumulates.

#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "tests/gpu/bench/bench.h"
#include "tests/support/attention_tensors.h"

namespace hdpsim::kernels::bench {
namespace {

const char* word(Mask mask) {
  return mask == Mask::causal ? "causal" : "full";
}

nlohmann::ordered_json describe(const char* path, const char* pass, const AttentionHeads& heads, std::int64_t length,
                                Mask mask) {
  return {{"kernel", "attention"},      {"path", path},     {"pass", pass},
          {"mask", word(mask)},         {"dim", heads.dim}, {"heads", heads.heads},
          {"kv_heads", heads.kv_heads}, {"length", length}};
}

void measure_length(Backend& backend, const char* path, const AttentionHeads& heads, std::int64_t length, Mask mask,
                    Report& report) {
  AttentionTensors tensors(backend, heads, {{0, length, 0, length, mask}});
  report.add(describe(path, "forward", heads, length, mask), measure(backend, [&] { tensors.forward(); }), "flops",
             tensors.forward_flops());
  report.add(describe(path, "backward", heads, length, mask), measure(backend, [&] { tensors.backward(); }), "flops",
             tensors.backward_flops());
}

/// Documents of a mean length, from a quarter of it to seven quarters, of `tokens` in all.
std::vector<AttentionBlock> documents(std::int64_t mean, std::int64_t tokens, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<AttentionBlock> blocks;
  for (std::int64_t begin = 0; begin < tokens;) {
    const auto drawn = mean / 4 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(mean * 3 / 2));
    const std::int64_t length = std::min(drawn, tokens - begin);
    blocks.push_back({begin, length, begin, length, Mask::causal});
    begin += length;
  }
  return blocks;
}

}  // namespace

void measure_attention(Backend& best, Backend& portable, Report& report, bool quick) {
  const std::vector<std::int64_t> lengths =
      quick ? std::vector<std::int64_t>{4096, 8192} : std::vector<std::int64_t>{2048, 4096, 8192, 16384, 32768};
  for (const std::int64_t dim : {128, 64}) {
    for (const std::int64_t length : lengths) {
      for (const Mask mask : {Mask::causal, Mask::full}) {
        measure_length(best, "best", heads_of(64, 8, dim), length, mask, report);
        if (length <= 8192) measure_length(portable, "portable", heads_of(64, 8, dim), length, mask, report);
      }
    }
  }
}

void measure_packed_attention(Backend& backend, Report& report) {
  constexpr std::int64_t tokens = 65536;
  // A kernel that pads tiles and waits for the longest document loses more on short ones.
  for (const auto& [mean, goal] : {std::pair{8192, 0.80}, {2048, 0.60}}) {
    AttentionTensors packed(backend, heads_of(64, 8, 128), documents(mean, tokens, 7));
    // One document of the same area: that of a causal mask is about half a square.
    const auto side = static_cast<std::int64_t>(std::sqrt(2.0 * static_cast<double>(packed.area())));
    AttentionTensors dense(backend, heads_of(64, 8, 128), {{0, side, 0, side, Mask::causal}});
    nlohmann::ordered_json what = describe("best", "forward", heads_of(64, 8, 128), tokens, Mask::causal);
    what["mean_document"] = mean;
    const std::vector<double> packed_forward = measure(backend, [&] { packed.forward(); });
    const std::vector<double> dense_forward = measure(backend, [&] { dense.forward(); });
    const std::vector<double> packed_backward = measure(backend, [&] { packed.backward(); });
    const std::vector<double> dense_backward = measure(backend, [&] { dense.backward(); });
    report.add(what, packed_forward, "flops", packed.forward_flops());
    what["pass"] = "backward";
    report.add(what, packed_backward, "flops", packed.backward_flops());
    const auto share = [&](const std::vector<double>& of_packed, const std::vector<double>& of_dense) {
      return median(of_dense) / median(of_packed) * packed.forward_flops() / dense.forward_flops();
    };
    const std::string name = "packed_" + std::to_string(mean);
    report.at_least(name + "_forward_of_dense", share(packed_forward, dense_forward), goal);
    report.at_least(name + "_backward_of_dense", share(packed_backward, dense_backward), goal);
  }
}

void measure_accumulation(Backend& backend, Report& report) {
  // A step of a zigzag ring: all queries of a rank with half of the keys of another.
  AttentionTensors step(backend, heads_of(64, 8, 128), {{0, 8192, 0, 4096, Mask::full}});
  nlohmann::ordered_json what = describe("best", "forward", heads_of(64, 8, 128), 8192, Mask::full);
  what["keys"] = 4096;
  const std::vector<double> written = measure(backend, [&] { step.forward(); });
  const std::vector<double> accumulated = measure(backend, [&] { step.forward_accumulating(); });
  report.add(what, written, "flops", step.forward_flops());
  what["accumulate"] = true;
  report.add(what, accumulated, "flops", step.forward_flops());
  report.at_most("accumulation_overhead_of_a_ring_step", median(accumulated) / median(written) - 1, 0.03);
}

}  // namespace hdpsim::kernels::bench
