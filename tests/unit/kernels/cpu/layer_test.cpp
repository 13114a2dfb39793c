#include "kernels/reference/layer.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/spec/error.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"

using namespace hdpsim::kernels;
using namespace hdpsim::test;

namespace {

constexpr double bound = 2e-6;

/// Widths around those of vectors.
constexpr std::int64_t widths[] = {1, 3, 4, 15, 16, 17, 63, 64, 65, 257};
constexpr std::int64_t tokens = 5;

std::vector<float> tensor(std::uint64_t seed, std::int64_t count) {
  return random_tensor(seed, static_cast<std::size_t>(count));
}

/// Calls check(backend) for every instruction set of this machine.
template <class Check>
void on_every_instruction_set(const Check& check) {
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set));
    check(*make_cpu_backend(set));
  }
}

template <class Check>
void for_every_width(const Check& check) {
  for (const std::int64_t width : widths) {
    INFO("width " << width);
    on_every_instruction_set([&](Backend& backend) { check(backend, width); });
  }
}

}  // namespace

TEST_CASE("RMSNorm and its gradients agree with fp64", "[layer]") {
  for_every_width([](Backend& backend, std::int64_t width) {
    const auto x = tensor(1, tokens * width);
    const auto weight = tensor(2, width);
    const auto d_y = tensor(3, tokens * width);
    const auto before = tensor(4, width);
    const auto truth = reference::rms_norm_forward(to_double(x), to_double(weight), 1e-5F);
    auto gradients = reference::rms_norm_backward(to_double(x), to_double(weight), truth.inverse_rms, to_double(d_y));
    for (std::size_t i = 0; i < before.size(); ++i) gradients.d_weight[i] += before[i];

    std::vector<float> y(x.size(), NAN);
    std::vector<float> inverse_rms(tokens, NAN);
    backend.run(RmsNormForward{.tokens = tokens,
                               .width = width,
                               .epsilon = 1e-5F,
                               .x = x.data(),
                               .weight = weight.data(),
                               .y = y.data(),
                               .inverse_rms = inverse_rms.data()});
    CHECK(relative_error(y, truth.y) <= bound);
    CHECK(relative_error(inverse_rms, truth.inverse_rms) <= bound);

    std::vector<float> d_x = d_y;  // in place
    std::vector<float> d_weight = before;
    backend.run(RmsNormBackward{.tokens = tokens,
                                .width = width,
                                .x = x.data(),
                                .weight = weight.data(),
                                .inverse_rms = inverse_rms.data(),
                                .d_y = d_x.data(),
                                .d_x = d_x.data(),
                                .d_weight = d_weight.data()});
    CHECK(relative_error(d_x, gradients.d_x, 1) <= bound);
    CHECK(relative_error(d_weight, gradients.d_weight) <= bound);
  });
}

TEST_CASE("RoPE turns each pair by its angle, far positions too, and its inverse turns back", "[layer]") {
  const std::vector<std::int32_t> positions = {0, 1, 17, 4095, 1'000'003};
  for (const std::int64_t dim : {2, 6, 64, 128, 600}) {
    INFO("dimension " << dim);
    on_every_instruction_set([&](Backend& backend) {
      const auto original = tensor(5, tokens * 3 * dim);
      auto truth = to_double(original);
      reference::rope(truth, positions, dim, 10000, false);
      GuardedRows x(tokens, 3 * dim);
      x.set_rows(0, tokens, original);
      Rope op{
          .tokens = tokens, .heads = 3, .dim = dim, .stride = x.stride(), .x = x.data(), .positions = positions.data()};
      backend.run(op);
      CHECK(relative_error(x.dense(0, tokens), truth) <= bound);
      op.inverse = true;
      backend.run(op);
      CHECK(relative_error(x.dense(0, tokens), to_double(original)) <= bound);
      CHECK(x.untouched_except([](std::int64_t) { return true; }));
    });
  }
}

TEST_CASE("SwiGLU and its gradients agree with fp64, for huge gates too", "[layer]") {
  for_every_width([](Backend& backend, std::int64_t width) {
    auto gate_up = tensor(6, tokens * 2 * width);
    gate_up[0] = 200;  // exp(-200) is no fp32
    gate_up[static_cast<std::size_t>(2 * width)] = -200;
    const auto d_y = tensor(7, tokens * width);
    std::vector<float> y(d_y.size(), NAN);
    backend.run(SwigluForward{.tokens = tokens, .width = width, .gate_up = gate_up.data(), .y = y.data()});
    CHECK(relative_error(y, reference::swiglu_forward(to_double(gate_up), width)) <= bound);

    const auto truth = reference::swiglu_backward(to_double(gate_up), to_double(d_y), width);
    std::vector<float> d_gate_up = gate_up;  // in place
    backend.run(SwigluBackward{.tokens = tokens,
                               .width = width,
                               .gate_up = d_gate_up.data(),
                               .d_y = d_y.data(),
                               .d_gate_up = d_gate_up.data()});
    CHECK(relative_error(d_gate_up, truth) <= bound);
  });
}

TEST_CASE("sums and copies are exact, in place too", "[layer]") {
  for_every_width([](Backend& backend, std::int64_t width) {
    const auto a = tensor(8, width);
    const auto b = tensor(9, width);
    std::vector<float> y = a;
    backend.run(Add{.count = width, .a = y.data(), .b = b.data(), .y = y.data()});
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == a[i] + b[i]);
    std::vector<float> copied(a.size(), NAN);
    backend.run(Cast{.count = width, .from = a.data(), .to = copied.data()});
    CHECK(copied == a);
  });
}

TEST_CASE("embedding rows are looked up, and gradients of repeated ids add up", "[layer]") {
  const std::vector<std::int32_t> ids = {3, 0, 3, 6, 3};
  for_every_width([&](Backend& backend, std::int64_t width) {
    const auto table = tensor(10, 7 * width);
    std::vector<float> y(static_cast<std::size_t>(tokens * width), NAN);
    backend.run(EmbeddingForward{
        .tokens = tokens, .vocabulary = 7, .width = width, .table = table.data(), .ids = ids.data(), .y = y.data()});
    CHECK(to_double(y) == reference::embedding_forward(to_double(table), ids, width));

    std::vector<float> d_table(table.size(), 0.0F);
    backend.run(EmbeddingBackward{.tokens = tokens,
                                  .vocabulary = 7,
                                  .width = width,
                                  .ids = ids.data(),
                                  .d_y = y.data(),
                                  .d_table = d_table.data()});
    CHECK(relative_error(d_table, reference::embedding_backward(ids, to_double(y), 7)) <= bound);
  });
}

TEST_CASE("the embedding of a token in another device's table is zero, and has no gradient here", "[layer]") {
  const auto backend = make_cpu_backend();
  const std::vector<std::int32_t> ids = {1, -1};
  const auto table = tensor(10, 2 * 3);
  std::vector<float> y(6, NAN);
  backend->run(EmbeddingForward{
      .tokens = 2, .vocabulary = 2, .width = 3, .table = table.data(), .ids = ids.data(), .y = y.data()});
  CHECK(y == std::vector<float>{table[3], table[4], table[5], 0, 0, 0});
  const std::vector<float> d_y = {1, 2, 3, 4, 5, 6};
  std::vector<float> d_table(6, 0);
  backend->run(EmbeddingBackward{
      .tokens = 2, .vocabulary = 2, .width = 3, .ids = ids.data(), .d_y = d_y.data(), .d_table = d_table.data()});
  CHECK(d_table == std::vector<float>{0, 0, 0, 1, 2, 3});
}

TEST_CASE("an id outside the vocabulary is refused by name", "[layer]") {
  const auto backend = make_cpu_backend();
  const std::vector<std::int32_t> ids = {0, 7};
  std::vector<float> table(28, 0.0F);
  std::vector<float> y(8, 0.0F);
  EmbeddingForward lookup{
      .tokens = 2, .vocabulary = 7, .width = 4, .table = table.data(), .ids = ids.data(), .y = y.data()};
  CHECK_THROWS_WITH(backend->run(lookup), "embedding: token 1 is 7, but the vocabulary has 7 entries");
  const std::vector<std::int32_t> targets = {-2, 0};
  const CrossEntropy loss{
      .tokens = 2, .vocabulary = 4, .logits = y.data(), .targets = targets.data(), .loss = table.data()};
  CHECK_THROWS_WITH(backend->run(loss), "cross-entropy: token 0 is -2, but the vocabulary has 4 entries");
}

TEST_CASE("cross-entropy and its gradient agree with fp64; ignored tokens give zero", "[layer]") {
  for_every_width([](Backend& backend, std::int64_t vocabulary) {
    auto logits = tensor(11, tokens * vocabulary);
    for (std::int64_t i = 0; i < vocabulary; ++i) logits[static_cast<std::size_t>(i)] += 300;  // exp(300) is no fp32
    const std::vector<std::int32_t> targets = {0, static_cast<std::int32_t>(vocabulary - 1), -1, 0,
                                               static_cast<std::int32_t>(vocabulary / 2)};
    const auto truth = reference::cross_entropy(to_double(logits), targets, 0.25);
    std::vector<float> loss(tokens, NAN);
    backend.run(CrossEntropy{.tokens = tokens,
                             .vocabulary = vocabulary,
                             .scale = 0.25F,
                             .logits = logits.data(),
                             .targets = targets.data(),
                             .loss = loss.data()});
    // The first row's loss is a difference of numbers around 300.
    CHECK(std::abs(loss[0] - truth.loss[0]) <= 300 * 2e-7);
    CHECK(relative_error(std::vector<float>(loss.begin() + 1, loss.end()),
                         std::vector<double>(truth.loss.begin() + 1, truth.loss.end()), 1) <= bound);
    CHECK(relative_error(logits, truth.d_logits, 0.25) <= 2 * bound);
    CHECK(loss[2] == 0);
    CHECK(logits[static_cast<std::size_t>(2 * vocabulary)] == 0);
  });
}

TEST_CASE("columns of a vocabulary that is cut have the loss and the gradient of the whole", "[layer]") {
  for_every_width([](Backend& backend, std::int64_t vocabulary) {
    auto logits = tensor(11, tokens * vocabulary);
    for (std::int64_t i = 0; i < vocabulary; ++i) logits[static_cast<std::size_t>(i)] += 300;
    const std::vector<std::int32_t> targets = {0, static_cast<std::int32_t>(vocabulary - 1), -1, 0,
                                               static_cast<std::int32_t>(vocabulary / 2)};
    const auto truth = reference::cross_entropy(to_double(logits), targets, 0.25);
    std::vector<float> whole(tokens, NAN);
    backend.run(LogSumExp{.tokens = tokens, .vocabulary = vocabulary, .logits = logits.data(), .result = whole.data()});

    const std::int64_t cut = vocabulary / 3;
    std::vector<float> parts(2 * tokens, NAN);
    for (const auto& [begin, end] : {std::pair(std::int64_t{0}, cut), std::pair(cut, vocabulary)}) {
      std::vector<float> part;
      for (std::int64_t token = 0; token < tokens; ++token) {
        part.insert(part.end(), logits.begin() + token * vocabulary + begin, logits.begin() + token * vocabulary + end);
      }
      backend.run(LogSumExp{.tokens = tokens,
                            .vocabulary = end - begin,
                            .logits = part.data(),
                            .result = parts.data() + (end == vocabulary ? tokens : 0)});
    }
    backend.run(JoinLogSumExp{.tokens = tokens, .parts = 2, .partial = parts.data(), .result = parts.data()});
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(parts[i] == Approx(whole[i]).epsilon(1e-6));

    std::vector<double> loss(tokens, 0);
    std::vector<float> gradient(logits.size(), NAN);
    for (const auto& [begin, end] : {std::pair(std::int64_t{0}, cut), std::pair(cut, vocabulary)}) {
      const std::int64_t count = end - begin;
      std::vector<float> part;
      std::vector<std::int32_t> here;
      for (std::int64_t token = 0; token < tokens; ++token) {
        const auto row = logits.begin() + token * vocabulary;
        part.insert(part.end(), row + begin, row + end);
        const std::int64_t target = targets[static_cast<std::size_t>(token)];
        const bool is_here = target >= begin && target < end;
        here.push_back(static_cast<std::int32_t>(target < 0 ? -1 : is_here ? target - begin : count));
      }
      std::vector<float> part_loss(tokens, NAN);
      backend.run(CrossEntropy{.tokens = tokens,
                               .vocabulary = count,
                               .scale = 0.25F,
                               .logits = part.data(),
                               .targets = here.data(),
                               .loss = part_loss.data(),
                               .log_sum_exp = whole.data()});
      for (std::int64_t token = 0; token < tokens; ++token) {
        loss[static_cast<std::size_t>(token)] += part_loss[static_cast<std::size_t>(token)];
        std::copy_n(part.begin() + token * count, count, gradient.begin() + token * vocabulary + begin);
      }
    }
    // A number around 300 is known to 2^-24 of that, and so is the first row's logarithm.
    CHECK(std::abs(loss[0] - truth.loss[0]) <= 300 * 2e-7);
    for (std::size_t i = 1; i < loss.size(); ++i) CHECK(loss[i] == Approx(truth.loss[i]).margin(4 * bound));
    CHECK(relative_error(gradient, truth.d_logits, 0.25) <= 300 * 2e-7);
  });
}

TEST_CASE("AdamW steps agree with fp64 from the first to the thousandth", "[layer]") {
  for_every_width([](Backend& backend, std::int64_t count) {
    Adam op{.count = count, .rate = 0.01F, .decay = 0.1F, .gradient_scale = 0.5F};
    auto master = tensor(12, count);
    std::vector<float> m(master.size(), 0.0F);
    std::vector<float> v(master.size(), 0.0F);
    std::vector<float> parameter(master.size(), NAN);
    auto true_master = to_double(master);
    std::vector<double> true_m(master.size(), 0.0);
    std::vector<double> true_v(master.size(), 0.0);
    for (const std::int64_t step : {1, 2, 3, 1000}) {
      const auto gradient = tensor(13 + static_cast<std::uint64_t>(step), count);
      op.step = step;
      op.master = master.data();
      op.gradient = gradient.data();
      op.m = m.data();
      op.v = v.data();
      op.parameter = parameter.data();
      backend.run(op);
      reference::adam(op, true_master, true_m, true_v, to_double(gradient));
      CHECK(relative_error(master, true_master) <= bound);
      CHECK(relative_error(m, true_m) <= bound);
      CHECK(relative_error(v, true_v) <= bound);
      CHECK(parameter == master);
    }
    op.step = 0;
    CHECK_THROWS_WITH(backend.run(op), "adam: steps are counted from 1");
  });
}

TEST_CASE("matrix products agree with fp64, however the operands are stored", "[layer]") {
  const auto backend = make_cpu_backend();
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const float beta : {0.0F, 1.0F}) {
        MatrixProduct op{
            .m = 7, .n = 33, .k = 65, .a_transposed = a_transposed, .b_transposed = b_transposed, .beta = beta};
        CAPTURE(a_transposed, b_transposed, beta);
        const auto a = tensor(20, op.m * op.k);
        const auto b = tensor(21, op.k * op.n);
        auto truth = reference::matrix_product(op, to_double(a), to_double(b));
        std::vector<float> c = tensor(22, op.m * op.n);
        for (std::size_t i = 0; i < c.size(); ++i) truth[i] += static_cast<double>(beta) * static_cast<double>(c[i]);
        if (beta == 0) std::fill(c.begin(), c.end(), NAN);  // not even read
        op.a = a.data();
        op.b = b.data();
        op.c = c.data();
        backend->run(op);
        CHECK(relative_error(c, truth) <= bound);
      }
    }
  }
}

TEST_CASE("a NaN comes out of every operation that it goes into", "[layer]") {
  on_every_instruction_set([](Backend& backend) {
    constexpr std::int64_t width = 37;
    const auto weight = tensor(30, width);
    for (const std::size_t at : {std::size_t{0}, std::size_t{20}, std::size_t{36}}) {
      CAPTURE(at);
      auto x = tensor(31, 2 * width);
      x[at] = NAN;
      std::vector<float> y(x.size(), 0.0F);
      std::vector<float> statistic(1, 0.0F);
      backend.run(RmsNormForward{.tokens = 1,
                                 .width = width,
                                 .x = x.data(),
                                 .weight = weight.data(),
                                 .y = y.data(),
                                 .inverse_rms = statistic.data()});
      CHECK(std::isnan(y[5]));
      backend.run(SwigluForward{.tokens = 1, .width = width, .gate_up = x.data(), .y = y.data()});
      CHECK(std::isnan(y[at]));
      const std::int32_t target = 4;
      backend.run(CrossEntropy{
          .tokens = 1, .vocabulary = width, .logits = x.data(), .targets = &target, .loss = statistic.data()});
      CHECK(std::isnan(statistic[0]));
      CHECK(std::isnan(x[5]));
    }
  });
}
