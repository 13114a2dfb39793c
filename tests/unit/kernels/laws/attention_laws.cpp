// Attention on every device of the test program, against fp64 and against itself.

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/attention_twins.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"

namespace hdpsim::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Mask causal = Mask::causal;
constexpr Mask full = Mask::full;

/// Lengths around the edges of tiles, more queries than keys and fewer, and sides that are empty.
std::vector<AttentionBlock> edges(Mask mask, const std::vector<std::int64_t>& lengths) {
  std::vector<AttentionBlock> blocks;
  for (const std::int64_t length : lengths) blocks.push_back(block(length, length, mask));
  for (const auto& [queries, keys] : {std::pair{1, 200}, {200, 1}, {130, 70}, {70, 130}, {9, 0}, {0, 9}}) {
    blocks.push_back(block(queries, keys, mask));
  }
  return blocks;
}

std::vector<AttentionBlock> windows(std::int64_t length, const std::vector<std::int64_t>& lengths_of_windows) {
  std::vector<AttentionBlock> blocks;
  for (const std::int64_t window : lengths_of_windows) blocks.push_back(block(length, length, causal, window));
  return blocks;
}

/// The parts of a document before its queries, just before and out of reach of all but the first queries, or of all.
const std::vector<AttentionBlock> earlier_keys = {block(130, 130, causal, 150, 130),
                                                  block(130, 130, causal, 150, 260),
                                                  block(40, 40, causal, 30, 500),
                                                  block(140, 70, causal, 20, -15),
                                                  block(90, 7, causal),
                                                  block(60, 100, causal, 0, -120)};
const std::vector<AttentionBlock> leads = {block(140, 130, causal, 0, 70), block(70, 70, causal, 0, 1000),
                                           block(130, 70, causal, 0, -60), block(70, 70, causal, 0, -70)};
const std::vector<AttentionBlock> windows_across_chunks = {block(3400, 3400, causal, 70), block(50, 3300, causal, 300),
                                                           block(2000, 80, causal, 30)};
const std::vector<AttentionBlock> some_of_each = {block(129, 129, causal), block(65, 200, full), block(1, 1, full),
                                                  block(90, 7, causal), block(5, 0, full)};

std::vector<AttentionCase> attention_cases() {
  return {
      {"edges, causal", 1, 1, 64, edges(causal, {1, 63, 64, 65, 127, 128, 129})},
      {"edges, full", 1, 1, 64, edges(full, {1, 65, 128})},
      {"edges, heads of 128", 1, 1, 128, edges(causal, {1, 63, 64, 65})},
      {"heads of 128 that share keys", 2, 1, 128, {block(66, 130, full), block(1, 1, full)}},
      {"a group of heads", 4, 1, 64, {block(66, 66, causal)}},
      {"groups of heads", 4, 2, 64, {block(33, 90, full)}},
      {"a long document, of many keys", 1, 1, 64, {block(70, 600, full)}},
      {"a long document, of many queries", 1, 1, 128, {block(330, 60, full)}},
      {"leads", 1, 1, 64, leads},
      {"windows", 1, 1, 64, windows(130, {1, 16, 17, 64, 65, 97})},
      {"windows, heads of 128", 1, 1, 128, windows(130, {65, 129})},
      {"windows and leads", 1, 1, 128, earlier_keys},
      {"a small scale", 2, 1, 64, {block(33, 140, causal), block(20, 90, full)}, 0, 1e-4},
      {"a large scale", 1, 1, 64, {block(33, 47, causal)}, 0, 0.5},
      {"scores of hundreds", 1, 1, 64, {block(70, 140, causal)}, 0, 30},
      {"a negative scale", 2, 1, 64, {block(33, 47, causal)}, 0, -0.2},
      // exp(100) is more than fp32 holds.
      {"rows whose exp(-LSE) overflows", 1, 1, 128, {block(70, 70, full)}, 0, 0, -4},
      {"sinks", 4, 2, 64, some_of_each, 2},
      {"sinks and windows", 2, 2, 128, earlier_keys, 2},
      {"heads of 192", 2, 1, 192, some_of_each, 1},
      {"heads of 256, windows", 2, 2, 256, earlier_keys},
      // CPUs pack 3,072 keys at once in forward, 960 queries and keys in backward.
      {"keys beyond a chunk", 1, 1, 64, {block(70, 3200, causal), block(40, 3100, full), block(3200, 200, causal)}, 1},
      {"queries and keys beyond a chunk", 1, 1, 64, {block(970, 1000, causal), block(970, 1000, causal, 965)}},
      {"windows that cross chunks", 1, 1, 64, windows_across_chunks},
      {"wide heads beyond a chunk", 1, 1, 192, {block(40, 3200, causal), block(1100, 1000, causal, 100)}},
  };
}

/// Blocks of up to 150 rows a side, with windows and leads.
AttentionCase random_case(std::uint64_t seed, const TestedDevice& device) {
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t least, std::int64_t most) { return test::random_between(random, least, most); };
  AttentionCase made{"seed " + std::to_string(seed), 0, between(1, 2), between(0, 1) == 0 ? 64 : 128, {}};
  made.heads = made.kv_heads * between(1, 2);
  for (std::int64_t left = between(1, 3); left > 0; --left) {
    AttentionBlock& next = made.blocks.emplace_back(block(between(0, 150), between(0, 150), causal));
    if (between(0, 2) == 0) {
      next.mask = full;
    } else {
      next.lead = between(0, 1) * between(-60, 150);
      next.window = device.has_windows && between(0, 1) == 0 ? between(1, 120) : 0;
    }
  }
  return made;
}

/// Forward, and backward in any order of additions, in a fixed one, or in both.
void check(const TestedDevice& device, const AttentionCase& given, bool in_any_order, bool in_fixed_order) {
  INFO(device.name << ": " << given.name);
  AttentionTwins twins(device, given, 1);
  twins.forward();
  twins.delta_of_rows();
  if (in_any_order || !device.has_deterministic) twins.backward(twins.blocks, false);
  if (in_fixed_order && device.has_deterministic) twins.backward(twins.blocks, true);
}

TEST_CASE("attention is what fp64 finds, forward and backward, under every mask", "[attention][sanitizer]") {
  for (const TestedDevice& device : tested_devices()) {
    const std::vector<AttentionCase> cases = attention_cases();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      // Emulators are slow: of their backwards those of edges both, the others in turn.
      if (cases[i].is_for(device)) check(device, cases[i], i < 2 || i % 2 == 0, i < 2 || i % 2 == 1);
    }
    const std::uint64_t seeds = device.is_fp32() ? 6 : 2;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) check(device, random_case(seed, device), true, false);
  }
}

TEST_CASE("sinks far above and far below all scores leave nothing, or change nothing", "[attention]") {
  for (const TestedDevice& device : tested_devices()) {
    if (!device.has_sinks) continue;
    INFO(device.name);
    AttentionTwins twins(device, {"", 2, 1, 64, {block(80, 80, causal)}, 1}, 6);
    twins.tensors[AttentionTwins::sinks].set(
        0, 1, [](std::int64_t, std::int64_t head) { return head == 0 ? -infinity : 300; });
    twins.forward();
    twins.delta_of_rows();
    twins.backward(twins.blocks, false);
  }
}

TEST_CASE("launches over parts of the keys add up to one over all", "[attention][sanitizer]") {
  for (const TestedDevice& device : tested_devices()) {
    INFO(device.name);
    for (const bool sinks_first : {true, false}) {
      AttentionTwins twins(device, {"", 2, 1, 64, {block(70, 160, full)}, device.has_sinks ? 2.0 : 0}, 2, true);
      const AttentionBlock whole = twins.blocks[0];
      AttentionBlock first = whole;
      first.keys = 90;
      AttentionBlock second = whole;
      second.key_begin += 90;
      second.keys = 70;
      AttentionBlock nothing = whole;
      nothing.keys = 0;
      // Nothing yet, or results that weigh far more or less.
      const auto lse_before = [](std::int64_t query) {
        return query % 3 == 0 ? -infinity : query % 7 != 1 ? 1.0 : query % 2 == 0 ? 80.0 : -80.0;
      };
      twins.tensors[AttentionTwins::lse].set(0, 2, [&](std::int64_t, std::int64_t column) {
        const std::int64_t query = column - whole.query_begin;
        return query >= 0 && query < 70 ? lse_before(query) : std::nan("");
      });
      twins.tensors[AttentionTwins::o].set(whole.query_begin, 70, [&](std::int64_t row, std::int64_t column) {
        return lse_before(row - whole.query_begin) == -infinity ? 0 : static_cast<double>(column % 9) - 4;
      });
      twins.forward({&second, 1}, true, sinks_first);
      const auto before = twins.tensors[AttentionTwins::o].on_device(whole.query_begin, whole.queries);
      twins.forward({&nothing, 1}, true, false);
      CHECK((twins.tensors[AttentionTwins::o].on_device(whole.query_begin, whole.queries) == before));
      twins.forward({&first, 1}, true, !sinks_first);
    }
    // Of the LSE and delta of whole rows, as in a ring.
    AttentionTwins twins(device, {"", 4, 2, 128, {block(70, 160, full)}}, 3);
    twins.forward();
    twins.delta_of_rows();
    std::vector<AttentionBlock> halves(2, twins.blocks[0]);
    halves[0].keys = 90;
    halves[1].key_begin += 90;
    halves[1].keys = 70;
    for (const AttentionBlock& half : halves) twins.backward({&half, 1}, false);
  }
}

TEST_CASE("a document has the same bits wherever in the pack it lies, and every time", "[attention][determinism]") {
  for (const TestedDevice& device : tested_devices()) {
    const AttentionCase given{"", 2, 1, 64, {block(77, 77, causal), block(100, 100, causal), block(77, 77, causal)}};
    AttentionTwins twins(device, given, 4);
    const AttentionBlock& first = twins.blocks[0];
    const AttentionBlock& last = twins.blocks[2];
    using Twins = AttentionTwins;
    const auto repeat = [&](Twins::Name name, std::int64_t from, std::int64_t to) {
      TwinTensor& tensor = twins.tensors[name];
      const std::vector<float> rows = tensor.on_device(from, 77);
      tensor.set(to, 77, [&](std::int64_t row, std::int64_t column) {
        return rows[static_cast<std::size_t>((row - to) * tensor.width() + column)];
      });
    };
    for (const Twins::Name name : {Twins::q, Twins::d_o}) repeat(name, first.query_begin, last.query_begin);
    for (const Twins::Name name : {Twins::k, Twins::v}) repeat(name, first.key_begin, last.key_begin);
    std::vector<std::vector<float>> before;
    for (int run = 0; run < device.repeats; ++run) {
      INFO(device.name << ", run " << run);
      for (const AttentionBlock& at : twins.blocks) {
        twins.tensors[Twins::d_q].fill(0, at.query_begin, at.queries);
        for (const Twins::Name name : {Twins::d_k, Twins::d_v}) twins.tensors[name].fill(0, at.key_begin, at.keys);
      }
      twins.device.set_sm_margin(run % 3);  // multiprocessors left to communication
      twins.forward();
      twins.delta_of_rows();
      if (device.has_deterministic) twins.backward(twins.blocks, true);
      const auto found = twins.results_of(first);
      CHECK((found == twins.results_of(last)));
      if (run > 0) CHECK((found == before));
      before = found;
    }
  }
}

TEST_CASE("a NaN spoils what sees it and no other document", "[attention][sanitizer]") {
  for (const TestedDevice& device : tested_devices()) {
    for (const bool in_keys : {true, false}) {
      INFO(device.name << (in_keys ? ", in a key" : ", in a query"));
      AttentionTwins twins(device, {"", 2, 2, 64, {block(130, 130, causal), block(70, 70, causal)}}, 5);
      const AttentionBlock& spoiled = twins.blocks[0];
      TwinTensor& tensor = twins.tensors[in_keys ? AttentionTwins::k : AttentionTwins::q];
      tensor.fill(std::nan(""), (in_keys ? spoiled.key_begin : spoiled.query_begin) + 17, 1);
      twins.forward();
    }
  }
}

}  // namespace
}  // namespace hdpsim::kernels
