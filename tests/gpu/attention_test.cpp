// Attention on a GPU against fp64, by the kernels that are best there and by the portable ones.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/reference/attention.h"
#include "kernels/spec/error.h"
#include "tests/gpu/attention_on_device.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"

namespace hdpsim::kernels {
namespace {

using emulator::attention_case;
using emulator::AttentionCase;
using test::relative_error;

constexpr std::array<AttentionPath, 2> paths{AttentionPath::best, AttentionPath::portable};

const char* name_of(AttentionPath path) {
  return path == AttentionPath::best ? "best path" : "portable path";
}

AttentionHeads heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
  return {.heads = heads, .kv_heads = kv_heads, .dim = dim, .scale = 1 / std::sqrt(static_cast<float>(dim))};
}

/// Lengths around the edges of all tiles, documents with more queries than keys and with fewer, and empty sides.
std::vector<AttentionBlock> many_shapes() {
  std::vector<AttentionBlock> blocks;
  for (const Mask mask : {Mask::causal, Mask::full}) {
    for (const std::int64_t length : {1, 63, 64, 65, 127, 128, 129}) blocks.push_back({0, length, 0, length, mask});
    for (const auto& [queries, keys] : {std::pair{1, 200}, {200, 1}, {130, 70}, {70, 260}, {9, 0}, {0, 9}}) {
      blocks.push_back({0, queries, 0, keys, mask});
    }
  }
  return blocks;
}

/// Documents, each twice, that tests of bits use: of several tiles, and longer and shorter than one.
AttentionCase some_documents(std::int64_t dim) {
  return attention_case(heads_of(4, 2, dim),
                        {{0, 300, 0, 300, Mask::causal}, {0, 65, 0, 65, Mask::causal}, {0, 130, 0, 400, Mask::full}},
                        3);
}

struct Expected {
  explicit Expected(const AttentionCase& given)
      : forward(reference::attention_forward(given.input())), ordinary_o(emulator::ordinary_forward(given)) {
    // The device's backward begins with the o that its forward has rounded to bf16.
    std::vector<double> stored = forward.o;
    for (double& value : stored) value = emulator::rounded(value);
    const std::vector<double> delta = reference::attention_delta(given.heads, stored, given.d_o);
    gradients = reference::attention_backward(given.input(), given.d_o, forward.lse, delta);
    ordinary_gradients = emulator::ordinary_backward(given, forward.lse, delta);
  }
  reference::AttentionResult forward;
  std::vector<double> ordinary_o;
  reference::AttentionGradients gradients, ordinary_gradients;
};

// Of gradients against those of the other path, or added up from parts: P and dS enter the products of backward in
// bf16, each off by at most 2^-9 of itself; the errors of a sum's terms have no common sign, but a few of them may.
constexpr double gradient_bound = 8e-3;

/// No more than twice as far from what is right as an ordinary bf16 implementation, and a little that both share.
bool within_twice(const std::vector<double>& found, const std::vector<double>& ordinary,
                  const std::vector<double>& right) {
  return relative_error(found, right, 1e-3) <= 2 * relative_error(ordinary, right, 1e-3) + 1e-4;
}

void check(Backend& backend, const AttentionCase& given, const Expected& expected) {
  AttentionOnDevice device(backend, given);
  device.forward();
  device.backward();
  CHECK(within_twice(device.query_rows(device.o.dense()), device.query_rows(expected.ordinary_o),
                     device.query_rows(expected.forward.o)));
  CHECK(relative_error(device.used_lse(device.lse.dense()), device.used_lse(expected.forward.lse), 1) <= 1e-4);
  CHECK(within_twice(device.query_rows(device.d_q.dense()), device.query_rows(expected.ordinary_gradients.d_q),
                     device.query_rows(expected.gradients.d_q)));
  CHECK(within_twice(device.key_rows(device.d_k.dense()), device.key_rows(expected.ordinary_gradients.d_k),
                     device.key_rows(expected.gradients.d_k)));
  CHECK(within_twice(device.key_rows(device.d_v.dense()), device.key_rows(expected.ordinary_gradients.d_v),
                     device.key_rows(expected.gradients.d_v)));
  CHECK(device.kept_to_its_rows());
}

}  // namespace

TEST_CASE("attention of packed documents of all shapes is as close to fp64 as bf16 allows", "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    for (const auto& [heads, kv_heads] : {std::pair{2, 2}, {4, 1}, {8, 1}}) {
      const AttentionCase given = attention_case(heads_of(heads, kv_heads, dim), many_shapes(), 7);
      const Expected expected(given);
      for (const AttentionPath path : paths) {
        CAPTURE(dim, heads, kv_heads, name_of(path));
        check(*make_cuda_backend(0, path), given, expected);
      }
    }
  }
}

TEST_CASE("windows, and keys from earlier in the document, are as close to fp64 as bf16 allows",
          "[attention][sanitizer]") {
  for (const std::int64_t dim : {64, 128}) {
    const AttentionCase given = attention_case(heads_of(4, 2, dim),
                                               {{0, 300, 0, 300, Mask::causal, 1},
                                                {0, 300, 0, 300, Mask::causal, 65},
                                                {0, 700, 0, 700, Mask::causal, 128},
                                                {0, 130, 0, 130, Mask::causal, 150, 130},
                                                {0, 130, 0, 130, Mask::causal, 150, 260},
                                                {0, 40, 0, 40, Mask::causal, 30, 500},
                                                {0, 140, 0, 130, Mask::causal, 0, 70}},
                                               8);
    const Expected expected(given);
    for (const AttentionPath path : paths) {
      CAPTURE(dim, name_of(path));
      check(*make_cuda_backend(0, path), given, expected);
    }
  }
}

TEST_CASE("attention scales scores as it is told", "[attention][sanitizer]") {
  for (const float scale : {1e-4F, 0.3F}) {
    AttentionHeads heads = heads_of(2, 1, 128);
    heads.scale = scale;
    const AttentionCase given = attention_case(heads, {{0, 200, 0, 200, Mask::causal}}, 9);
    const Expected expected(given);
    for (const AttentionPath path : paths) {
      CAPTURE(scale, name_of(path));
      check(*make_cuda_backend(0, path), given, expected);
    }
  }
}

TEST_CASE("keys in parts, accumulated, give what all keys give at once", "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    const AttentionCase given = attention_case(heads_of(4, 2, dim), {{0, 200, 0, 500, Mask::full}}, 13);
    const reference::AttentionResult expected = reference::attention_forward(given.input());
    for (const AttentionPath path : paths) {
      for (const std::int64_t parts : {1, 2, 7}) {
        CAPTURE(dim, parts, name_of(path));
        const auto backend = make_cuda_backend(0, path);
        AttentionOnDevice device(*backend, given, true);
        AttentionBlock whole = given.blocks[0];
        for (std::int64_t part = parts - 1; part >= 0; --part) {
          AttentionBlock block = whole;
          block.key_begin = whole.key_begin + whole.keys * part / parts;
          block.keys = whole.key_begin + whole.keys * (part + 1) / parts - block.key_begin;
          device.forward({&block, 1});
        }
        // P alone is rounded to bf16: 2^-9 of each weight.
        CHECK(relative_error(device.query_rows(device.o_sum.dense()), device.query_rows(expected.o)) <= 2e-3);
        CHECK(relative_error(device.used_lse(device.lse.dense()), device.used_lse(expected.lse), 1) <= 1e-4);
        CHECK(device.kept_to_its_rows());
      }
    }
  }
}

TEST_CASE("gradients of parts of the keys add up to those of all keys", "[attention][sanitizer]") {
  const AttentionCase given = attention_case(heads_of(4, 2, 128), {{0, 200, 0, 300, Mask::full}}, 15);
  const Expected expected(given);
  for (const AttentionPath path : paths) {
    CAPTURE(name_of(path));
    const auto backend = make_cuda_backend(0, path);
    AttentionOnDevice device(*backend, given);
    device.forward();
    std::array<AttentionBlock, 2> halves{given.blocks[0], given.blocks[0]};
    halves[0].keys = 150;
    halves[1].key_begin += 150;
    halves[1].keys = 150;
    for (const AttentionBlock& half : halves) device.backward({&half, 1}, false);
    CHECK(relative_error(device.query_rows(device.d_q.dense()), device.query_rows(expected.gradients.d_q)) <=
          gradient_bound);
    CHECK(relative_error(device.key_rows(device.d_k.dense()), device.key_rows(expected.gradients.d_k)) <=
          gradient_bound);
    CHECK(relative_error(device.key_rows(device.d_v.dense()), device.key_rows(expected.gradients.d_v)) <=
          gradient_bound);
  }
}

TEST_CASE("forward, and backward where asked, give the same bits twenty times", "[attention][determinism]") {
  for (const std::int64_t dim : {64, 128}) {
    const AttentionCase given = some_documents(dim);
    for (const AttentionPath path : paths) {
      CAPTURE(dim, name_of(path));
      const auto backend = make_cuda_backend(0, path);
      std::vector<std::vector<std::byte>> first;
      for (int run = 0; run < 20; ++run) {
        AttentionOnDevice device(*backend, given);
        device.forward();
        device.backward(true);
        std::vector<std::vector<std::byte>> found{device.o.bytes(), device.lse.bytes(), device.d_q.bytes(),
                                                  device.d_k.bytes(), device.d_v.bytes()};
        if (run == 0) first = found;
        REQUIRE((found == first));
      }
    }
  }
}

TEST_CASE("multiprocessors left to communication change no bit of forward", "[attention]") {
  const AttentionCase given = some_documents(128);
  for (const AttentionPath path : paths) {
    CAPTURE(name_of(path));
    const auto backend = make_cuda_backend(0, path);
    AttentionOnDevice all(*backend, given);
    all.forward();
    for (const int margin : {1, 8, 100}) {
      backend->set_sm_margin(margin);
      AttentionOnDevice fewer(*backend, given);
      fewer.forward();
      CHECK((fewer.o.bytes() == all.o.bytes()));
    }
  }
}

TEST_CASE("the order of packed documents changes no bit of any document", "[attention]") {
  const AttentionHeads heads = heads_of(2, 1, 128);
  const std::int64_t rows = 150;  // two documents of it, without a gap
  const AttentionCase both =
      attention_case(heads, {{0, rows, 0, rows, Mask::causal}, {0, rows, 0, rows, Mask::causal}}, 31, 0);
  AttentionCase swapped = both;
  for (std::vector<double>* tensor : {&swapped.q, &swapped.k, &swapped.v, &swapped.d_o}) {
    std::rotate(tensor->begin(), tensor->begin() + static_cast<std::ptrdiff_t>(tensor->size() / 2), tensor->end());
  }
  for (const AttentionPath path : paths) {
    CAPTURE(name_of(path));
    const auto backend = make_cuda_backend(0, path);
    AttentionOnDevice one(*backend, both);
    AttentionOnDevice other(*backend, swapped);
    for (AttentionOnDevice* device : {&one, &other}) {
      device->forward();
      device->backward(true);
    }
    for (auto& [found, expected] : {std::pair{other.o.dense(), one.o.dense()},
                                    {other.d_q.dense(), one.d_q.dense()},
                                    {other.d_k.dense(), one.d_k.dense()},
                                    {other.d_v.dense(), one.d_v.dense()}}) {
      std::vector<double> turned = found;
      std::rotate(turned.begin(), turned.begin() + static_cast<std::ptrdiff_t>(turned.size() / 2), turned.end());
      CHECK((turned == expected));
    }
  }
}

TEST_CASE("a NaN spoils its own document and no other", "[attention][sanitizer]") {
  AttentionCase given =
      attention_case(heads_of(2, 2, 64), {{0, 130, 0, 130, Mask::causal}, {0, 70, 0, 70, Mask::causal}}, 5);
  const std::int64_t width = 2 * 64;
  given.k[static_cast<std::size_t>((given.blocks[0].key_begin + 3) * width)] = std::numeric_limits<double>::quiet_NaN();
  for (const AttentionPath path : paths) {
    CAPTURE(name_of(path));
    const auto backend = make_cuda_backend(0, path);
    AttentionOnDevice device(*backend, given);
    device.forward();
    const std::vector<double> o = device.o.dense();
    const auto element = [&](std::int64_t row) { return o[static_cast<std::size_t>(row * width)]; };
    CHECK(std::isfinite(element(given.blocks[0].query_begin + 2)));
    CHECK(std::isnan(element(given.blocks[0].query_begin + 3)));
    CHECK(std::isfinite(element(given.blocks[1].query_begin + 60)));
  }
}

TEST_CASE("both paths agree on long documents", "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    const AttentionCase given =
        attention_case(heads_of(4, 1, dim), {{0, 4096, 0, 4096, Mask::causal}, {0, 1500, 0, 3000, Mask::full}}, 17, 0);
    const auto best = make_cuda_backend(0, AttentionPath::best);
    const auto portable = make_cuda_backend(0, AttentionPath::portable);
    AttentionOnDevice one(*best, given);
    AttentionOnDevice other(*portable, given);
    for (AttentionOnDevice* device : {&one, &other}) {
      device->forward();
      device->backward();
    }
    CAPTURE(dim);
    // Twice the rounding of o to bf16, and of P.
    CHECK(relative_error(one.o.dense(), other.o.dense()) <= 1e-2);
    CHECK(relative_error(one.lse.dense(), other.lse.dense(), 1) <= 1e-4);
    CHECK(relative_error(one.d_q.dense(), other.d_q.dense()) <= 2 * gradient_bound);
    CHECK(relative_error(one.d_k.dense(), other.d_k.dense()) <= 2 * gradient_bound);
    CHECK(relative_error(one.d_v.dense(), other.d_v.dense()) <= 2 * gradient_bound);
  }
}

TEST_CASE("a hundred launches of random packs end, with the result of the first where they repeat",
          "[attention][stress]") {
  std::mt19937_64 random(23);
  for (const AttentionPath path : paths) {
    const auto backend = make_cuda_backend(0, path);
    for (int round = 0; round < 10; ++round) {
      std::vector<AttentionBlock> blocks;
      for (int document = 0; document < 6; ++document) {
        const std::int64_t length = test::random_between(random, 0, 700);
        blocks.push_back({0, length, 0, length, Mask::causal});
      }
      CAPTURE(name_of(path), round);
      const AttentionCase given = attention_case(heads_of(4, 2, round % 2 == 0 ? 64 : 128), blocks, 41);
      AttentionOnDevice device(*backend, given);
      device.forward();
      const std::vector<std::byte> first = device.o.bytes();
      for (int repeat = 0; repeat < 9; ++repeat) device.forward();
      device.backward();
      REQUIRE((device.o.bytes() == first));
      REQUIRE(device.kept_to_its_rows());
    }
  }
}

TEST_CASE("attention refuses what no kernel takes by name", "[attention]") {
  const auto backend = make_cuda_backend();
  const AttentionHeads odd{.heads = 1, .kv_heads = 1, .dim = 96, .scale = 1};
  CHECK_THROWS_AS(backend->run(AttentionForward{.heads = odd, .blocks = {}, .q = {}, .k = {}, .v = {}, .o = {}}),
                  UnsupportedInput);
}

}  // namespace hdpsim::kernels
