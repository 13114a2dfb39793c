// The rest of a transformer layer on every device of the test program, against fp64.

#include <cmath>
#include <random>
#include <vector>

#include "kernels/spec/error.h"
#include "tests/support/catch.h"
#include "tests/support/twin_launch.h"

namespace hdpsim::kernels {
namespace {

/// GPUs normalise no wider rows.
constexpr std::int64_t widest_norm = 16'384;

/// Tensors of one launch on one device, and their tolerances.
struct LayerCase {
  LayerCase(const TestedDevice& tested, const TestedDevice::Shape& of)
      : device(*tested.backend),
        tokens(of.tokens),
        width(of.width),
        shift(of.shift),
        // fp32, with a GPU's approximate exp2, log2 and rsqrt.
        tolerance{tested.is_fp32() ? 2e-6 : 4e-6},
        sum_tolerance{tested.is_fp32() ? 4e-6 : 2e-5},
        random(static_cast<std::uint64_t>(of.tokens * 31 + of.width)) {}

  [[nodiscard]] TwinTensor element(std::int64_t rows, std::int64_t columns) {
    return make(rows, columns, false, tolerance);
  }
  [[nodiscard]] TwinTensor fp32(std::int64_t rows, std::int64_t columns) {
    return make(rows, columns, true, tolerance);
  }
  [[nodiscard]] TwinTensor drawn(TwinTensor tensor, double deviation = 1) {
    tensor.draw(random, deviation);
    return tensor;
  }
  /// Each several times, if there are fewer of them than tokens; one in five is -1.
  [[nodiscard]] std::vector<std::int32_t> ids(std::int64_t below) {
    std::vector<std::int32_t> drawn_ids;
    for (std::int64_t token = 0; token < tokens; ++token) {
      const auto id = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(below));
      drawn_ids.push_back(token % 5 == 2 ? -1 : id);
    }
    return drawn_ids;
  }
  template <class Launch>
  void run(const Launch& launch, std::initializer_list<TwinTensor*> tensors) {
    run_twins(device, launch, tensors);
  }

  Backend& device;
  std::int64_t tokens, width, shift;
  Tolerance tolerance, sum_tolerance;
  std::mt19937_64 random;

  [[nodiscard]] TwinTensor make(std::int64_t rows, std::int64_t columns, bool is_fp32, const Tolerance& allowed) {
    return {device, {.rows = rows, .width = columns, .shift = shift, .fp32 = is_fp32}, allowed};
  }
};

/// Calls check(case) for every device and each of its shapes.
template <class Check>
void for_every_shape(const Check& check) {
  for (const TestedDevice& device : tested_devices()) {
    for (const TestedDevice::Shape& shape : device.shapes) {
      INFO(device.name << ": " << shape.tokens << " x " << shape.width << ", shift " << shape.shift);
      LayerCase given(device, shape);
      check(given);
    }
  }
}

}  // namespace

TEST_CASE("RMSNorm and its gradients agree with fp64", "[layer][sanitizer]") {
  for_every_shape([](LayerCase& given) {
    const auto [tokens, width] = std::pair(given.tokens, given.width);
    if (width > widest_norm) return;
    TwinTensor x = given.drawn(given.element(tokens, width), 2);
    TwinTensor weight = given.drawn(given.element(1, width));
    TwinTensor y = given.element(tokens, width);
    TwinTensor inverse_rms = given.fp32(1, tokens);
    const auto forward = [&](Side at) {
      return RmsNormForward{.tokens = tokens,
                            .width = width,
                            .epsilon = 1e-2F,
                            .x = x[at],
                            .weight = weight[at],
                            .y = y[at],
                            .inverse_rms = inverse_rms[at]};
    };
    given.run(forward, {&y, &inverse_rms, &x});
    TwinTensor d_x = given.drawn(given.element(tokens, width));  // in place of d_y
    TwinTensor d_weight = given.drawn(given.make(1, width, true, given.sum_tolerance));
    const auto backward = [&](Side at) {
      return RmsNormBackward{.tokens = tokens,
                             .width = width,
                             .x = x[at],
                             .weight = weight[at],
                             .inverse_rms = inverse_rms[at],
                             .d_y = d_x[at],
                             .d_x = d_x[at],
                             .d_weight = d_weight[at]};
    };
    given.run(backward, {&d_x, &d_weight});
  });
}

TEST_CASE("RoPE turns each pair of a wider row by its angle, far positions too, and its inverse turns back",
          "[layer]") {
  const std::vector<std::int32_t> positions = {0, 1, 17, 4095, 131'071, 2'097'151};
  const auto tokens = std::ssize(positions);
  for (const TestedDevice& device : tested_devices()) {
    for (const std::int64_t dim : {2, 6, 64, 128, 600}) {
      if (dim > 256 && !device.is_fp32()) continue;  // GPUs take no wider heads
      for (const std::int64_t room : {0, 8, 5}) {
        INFO(device.name << ", dimension " << dim << ", " << room << " elements between rows");
        TwinTensor x(*device.backend, {.rows = tokens, .width = 3 * dim, .room = room}, {4e-6});
        std::mt19937_64 random(5);
        x.draw(random);
        const TwinIds at_position(*device.backend, positions);
        for (const bool inverse : {false, true}) {
          const auto launch = [&](Side at) {
            return Rope{.tokens = tokens,
                        .heads = 3,
                        .dim = dim,
                        .stride = x.stride(),
                        .base = 500'000,
                        .inverse = inverse,
                        .x = x[at],
                        .positions = at_position[at]};
          };
          run_twins(*device.backend, launch, {&x});
        }
      }
    }
  }
}

TEST_CASE("SwiGLU and its gradients agree with fp64, for huge gates too", "[layer]") {
  for_every_shape([](LayerCase& given) {
    TwinTensor gate_up = given.drawn(given.element(given.tokens, 2 * given.width), 10);
    gate_up.set(0, 1, [&](std::int64_t, std::int64_t column) { return column % 2 == 0 ? 200 : -200; });
    TwinTensor d_y = given.drawn(given.element(given.tokens, given.width));
    TwinTensor y = given.element(given.tokens, given.width);
    const auto forward = [&](Side at) {
      return SwigluForward{.tokens = given.tokens, .width = given.width, .gate_up = gate_up[at], .y = y[at]};
    };
    given.run(forward, {&y, &gate_up});
    const auto backward = [&](Side at) {  // in place
      return SwigluBackward{.tokens = given.tokens,
                            .width = given.width,
                            .gate_up = gate_up[at],
                            .d_y = d_y[at],
                            .d_gate_up = gate_up[at]};
    };
    given.run(backward, {&gate_up, &d_y});
  });
}

TEST_CASE("sums, in place, and casts are exact but for the element's rounding", "[layer]") {
  for_every_shape([](LayerCase& given) {
    const std::int64_t count = given.tokens * given.width;
    for (const bool fp32 : {false, true}) {
      TwinTensor a = given.drawn(given.make(1, count, fp32, {}));
      TwinTensor b = given.drawn(given.make(1, count, fp32, {6e-8}));
      const auto add = [&](Side at) { return Add{.count = count, .a = a[at], .b = b[at], .y = b[at], .fp32 = fp32}; };
      given.run(add, {&b, &a});
    }
    TwinTensor wide = given.drawn(given.make(1, count, true, {}));
    TwinTensor narrow = given.make(1, count, false, {});
    TwinTensor again = given.make(1, count, true, {});
    given.run([&](Side at) { return Cast{.count = count, .from = wide[at], .to = narrow[at]}; }, {&narrow, &wide});
    const auto widen = [&](Side at) {
      return Cast{.count = count, .from = narrow[at], .to = again[at], .to_fp32 = true};
    };
    given.run(widen, {&again});
  });
}

TEST_CASE("embedding rows are copied, those of other devices are zero, and gradients of repeated ids add up",
          "[layer]") {
  for_every_shape([](LayerCase& given) {
    constexpr std::int64_t vocabulary = 7;
    TwinTensor table = given.drawn(given.make(vocabulary, given.width, false, {}));
    TwinTensor y = given.make(given.tokens, given.width, false, {});
    TwinTensor d_table = given.drawn(given.make(vocabulary, given.width, true, given.sum_tolerance));
    const TwinIds ids(given.device, given.ids(vocabulary));
    const auto forward = [&](Side at) {
      return EmbeddingForward{.tokens = given.tokens,
                              .vocabulary = vocabulary,
                              .width = given.width,
                              .table = table[at],
                              .ids = ids[at],
                              .y = y[at]};
    };
    given.run(forward, {&y, &table});
    const auto backward = [&](Side at) {
      return EmbeddingBackward{.tokens = given.tokens,
                               .vocabulary = vocabulary,
                               .width = given.width,
                               .ids = ids[at],
                               .d_y = y[at],
                               .d_table = d_table[at]};
    };
    given.run(backward, {&d_table});
  });
}

TEST_CASE("cross-entropy and its gradient agree with fp64, of a whole vocabulary and of one that is cut", "[layer]") {
  for_every_shape([](LayerCase& given) {
    const std::int64_t vocabulary = given.width;
    const std::vector<std::int32_t> targets = given.ids(vocabulary);
    // Numbers around 300, whose exponentials are no fp32; each, and each logarithm, is known to 2^-24 of that.
    const Tolerance loose{given.tolerance.of_largest / 10, 300.0};
    TwinTensor logits = given.make(given.tokens, vocabulary, false, {1e-4, 0.25});
    logits.draw(given.random, 4);
    logits.set(0, 1, [](std::int64_t, std::int64_t column) { return 300 + static_cast<double>(column % 3); });
    std::vector<TwinTensor> parts;
    const std::int64_t cut = vocabulary / 3;
    for (const auto& [begin, end] : {std::pair(std::int64_t{0}, cut), std::pair(cut, vocabulary)}) {
      TwinTensor& part = parts.emplace_back(given.make(given.tokens, end - begin, false, {1e-4, 0.25}));
      const std::vector<float> all = logits.on_device(0, given.tokens);
      part.set(0, given.tokens, [&](std::int64_t row, std::int64_t column) {
        return all[static_cast<std::size_t>(row * vocabulary + begin + column)];
      });
    }
    const auto cross_entropy = [&](TwinTensor& part, const std::vector<std::int32_t>& of_part, TwinTensor* sums) {
      TwinTensor loss = given.make(1, given.tokens, true, loose);
      const TwinIds ids(given.device, of_part);
      const auto launch = [&](Side at) {
        return CrossEntropy{.tokens = given.tokens,
                            .vocabulary = part.width(),
                            .scale = 0.25F,
                            .logits = part[at],
                            .targets = ids[at],
                            .loss = loss[at],
                            .log_sum_exp = sums != nullptr ? static_cast<float*>((*sums)[at]) : nullptr};
      };
      given.run(launch, {&part, &loss});
    };
    cross_entropy(logits, targets, nullptr);

    TwinTensor sums = given.make(2, given.tokens, true, loose);
    // Of each part in its row; then both, in place of the first.
    for (std::size_t part = 0; part < 2; ++part) {
      const auto launch = [&](Side at) {
        return LogSumExp{.tokens = given.tokens,
                         .vocabulary = parts[part].width(),
                         .logits = parts[part][at],
                         .result = static_cast<float*>(sums[at]) + static_cast<std::int64_t>(part) * given.tokens};
      };
      given.run(launch, {&sums, &parts[part]});
    }
    const auto join = [&](Side at) {
      return JoinLogSumExp{.tokens = given.tokens, .parts = 2, .partial = sums[at], .result = sums[at]};
    };
    given.run(join, {&sums});
    for (std::size_t part = 0; part < 2; ++part) {
      const std::int64_t begin = part == 0 ? 0 : cut;
      std::vector<std::int32_t> here;
      for (const std::int32_t target : targets) {
        const bool is_here = target >= begin && target < begin + parts[part].width();
        here.push_back(static_cast<std::int32_t>(target < 0 ? -1 : is_here ? target - begin : parts[part].width()));
      }
      cross_entropy(parts[part], here, &sums);
    }
  });
}

TEST_CASE("AdamW steps agree with fp64 from the first to the thousandth, with a parameter and without", "[layer]") {
  for_every_shape([](LayerCase& given) {
    const std::int64_t count = given.tokens * given.width;
    TwinTensor master = given.drawn(given.fp32(1, count));
    TwinTensor m = given.fp32(1, count);
    TwinTensor v = given.fp32(1, count);
    for (TwinTensor* const moment : {&m, &v}) moment->fill(0, 0, 1);
    TwinTensor parameter = given.element(1, count);
    TwinTensor none = given.element(0, 0);
    for (const std::int64_t step : {1, 2, 3, 1000}) {
      TwinTensor gradient = given.drawn(given.fp32(1, count));
      const auto launch = [&](Side at) {
        return Adam{.count = count,
                    .step = step,
                    .rate = 0.01F,
                    .decay = 0.1F,
                    .gradient_scale = 0.5F,
                    .master = master[at],
                    .gradient = gradient[at],
                    .m = m[at],
                    .v = v[at],
                    .parameter = step == 3 ? none[at] : parameter[at]};
      };
      given.run(launch, {&master, &m, &v, &parameter, &gradient});
    }
  });
}

TEST_CASE("delta is the row sum of dO o O for every head", "[layer]") {
  for (const TestedDevice& device : tested_devices()) {
    for (const std::int64_t dim : {64, 128}) {
      for (const std::int64_t room : {0, 8, 3}) {
        INFO(device.name << ", heads of " << dim << ", " << room << " elements between rows");
        std::mt19937_64 random(6);
        TwinTensor o(*device.backend, {.rows = 37, .width = 3 * dim, .room = room});
        TwinTensor d_o(*device.backend, {.rows = 37, .width = 3 * dim, .room = room});
        TwinTensor delta(*device.backend, {.rows = 3, .width = 37, .fp32 = true}, {4e-6});
        o.draw(random);
        d_o.draw(random);
        const auto launch = [&](Side at) {
          return AttentionDelta{.heads = {.heads = 3, .kv_heads = 1, .dim = dim, .scale = 1},
                                .rows = 37,
                                .o = o[at],
                                .d_o = d_o[at],
                                .delta = delta[at]};
        };
        run_twins(*device.backend, launch, {&delta});
      }
    }
  }
}

TEST_CASE("matrix products agree with fp64, however the operands are stored", "[layer][gemm]") {
  for (const TestedDevice& device : tested_devices()) {
    if (!device.has_products) continue;
    for (const auto& [m, n, k] : {std::array{7, 33, 65}, {64, 128, 256}, {1, 8, 16}, {130, 72, 200}, {2, 3, 0}}) {
      if (!device.is_fp32() && n % 8 != 0) continue;
      for (int way = 0; way < 16; ++way) {
        const bool with_fp32 = (way & 8) != 0;
        std::mt19937_64 random(7);
        MatrixProduct op{.m = m, .n = n, .k = k, .a_transposed = (way & 1) != 0, .b_transposed = (way & 2) != 0};
        op.fp32_result = with_fp32;
        op.beta = (way & 4) != 0 ? 1.0F : 0.0F;
        INFO(device.name << ": " << m << " x " << n << " x " << k << ", way " << way);
        TwinTensor a(*device.backend, {.rows = m, .width = k});
        TwinTensor b(*device.backend, {.rows = k, .width = n});
        TwinTensor c(*device.backend, {.rows = m, .width = n, .fp32 = with_fp32}, {device.is_fp32() ? 2e-6 : 1e-5});
        a.draw(random);
        b.draw(random);
        if (op.beta != 0) c.draw(random);  // otherwise not even read
        const auto launch = [&](Side at) {
          MatrixProduct placed = op;
          placed.a = a[at];
          placed.b = b[at];
          placed.c = c[at];
          return placed;
        };
        run_twins(*device.backend, launch, {&c});
      }
    }
  }
}

TEST_CASE("a NaN comes out of every row that it goes into, and of no other", "[layer]") {
  for_every_shape([](LayerCase& given) {
    if (given.width > 100) return;
    for (const std::int64_t bad : {std::int64_t{0}, given.width / 2, given.width - 1}) {
      TwinTensor x = given.drawn(given.element(given.tokens, given.width));
      x.set(0, 1, [&](std::int64_t, std::int64_t column) { return column == bad ? std::nan("") : 1; });
      TwinTensor weight = given.drawn(given.element(1, given.width));
      TwinTensor y = given.element(given.tokens, given.width);
      TwinTensor statistic = given.make(1, given.tokens, true, {4e-6, 20});
      const auto norm = [&](Side at) {
        return RmsNormForward{.tokens = given.tokens,
                              .width = given.width,
                              .x = x[at],
                              .weight = weight[at],
                              .y = y[at],
                              .inverse_rms = statistic[at]};
      };
      given.run(norm, {&y, &statistic});
      const TwinIds targets(given.device, std::vector<std::int32_t>(static_cast<std::size_t>(given.tokens), 0));
      const auto loss = [&](Side at) {
        return CrossEntropy{.tokens = given.tokens,
                            .vocabulary = given.width,
                            .logits = x[at],
                            .targets = targets[at],
                            .loss = statistic[at]};
      };
      given.run(loss, {&x, &statistic});
    }
  });
}

}  // namespace hdpsim::kernels
