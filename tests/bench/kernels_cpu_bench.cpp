// Kernels on one core, as shares of what the core can do: the peak of its multiply-add units is measured in turn with
// the kernel, so that a machine that slows down slows both. Times are of the thread's CPU clock; counters are medians.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/core_peak.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/attention_tensors.h"
#include "tests/support/kernels.h"

namespace hdpsim {
namespace {

using namespace hdpsim::kernels;
using bench::AttentionTensors;
using bench::heads_of;
using bench::median;

/// Fixed, because each also measures the peak, which takes longer than a small kernel.
constexpr int repetitions = 15;

std::vector<AttentionBlock> documents(std::int64_t count, std::int64_t length, Mask mask, std::int64_t window = 0) {
  std::vector<AttentionBlock> blocks;
  for (std::int64_t i = 0; i < count; ++i) blocks.push_back({i * length, length, i * length, length, mask, window});
  return blocks;
}

/// Attention out of two matrix products and a softmax over rows, with all scores in memory.
class ComposedAttention {
 public:
  ComposedAttention(std::int64_t length, std::int64_t dim, Mask mask)
      : length_(length),
        dim_(dim),
        mask_(mask),
        q_(test::random_tensor(1, static_cast<std::size_t>(length * dim), 1 / std::sqrt(static_cast<double>(dim)))),
        k_(test::random_tensor(2, q_.size())),
        v_(test::random_tensor(3, q_.size())),
        o_(q_.size()),
        scores_(static_cast<std::size_t>(length * length)),
        lse_(static_cast<std::size_t>(length)),
        targets_(lse_.size(), 0) {}

  void forward(Backend& backend) {
    backend.run(MatrixProduct{.m = length_,
                              .n = length_,
                              .k = dim_,
                              .a = q_.data(),
                              .b = k_.data(),
                              .c = scores_.data(),
                              .b_transposed = true});
    if (mask_ == Mask::causal) {
      for (std::int64_t row = 0; row < length_; ++row) {
        std::fill(&scores_[static_cast<std::size_t>(row * length_ + row + 1)], scores_.data() + (row + 1) * length_,
                  -std::numeric_limits<float>::infinity());
      }
    }
    // The gradient of the cross-entropy is the softmax, less one at the target.
    backend.run(CrossEntropy{.tokens = length_,
                             .vocabulary = length_,
                             .logits = scores_.data(),
                             .targets = targets_.data(),
                             .loss = lse_.data()});
    for (std::int64_t row = 0; row < length_; ++row) scores_[static_cast<std::size_t>(row * length_)] += 1;
    backend.run(
        MatrixProduct{.m = length_, .n = dim_, .k = length_, .a = scores_.data(), .b = v_.data(), .c = o_.data()});
  }

 private:
  std::int64_t length_;
  std::int64_t dim_;
  Mask mask_;
  std::vector<float> q_, k_, v_, o_, scores_, lse_;
  std::vector<std::int32_t> targets_;
};

/// Times `work` of so many operations in turn with the peak.
template <class Work>
void measure(benchmark::State& state, Backend& backend, double operations, const Work& work) {
  std::vector<double> seconds;
  std::vector<double> peaks;
  for (auto _ : state) {
    peaks.push_back(fma_peak_flops());
    seconds.push_back(backend.time(1, false, work)[0]);
    state.SetIterationTime(seconds.back());
  }
  const double rate = operations / median(seconds);
  state.counters["GFLOP/s"] = rate * 1e-9;
  state.counters["share_of_peak"] = rate / median(peaks);
}

Mask mask_of(const benchmark::State& state) {
  return state.range(2) == 0 ? Mask::full : Mask::causal;
}

void forward(benchmark::State& state) {
  const auto backend = make_cpu_backend();
  AttentionTensors attention(*backend, heads_of(2, 1, state.range(1)), documents(1, state.range(0), mask_of(state)));
  measure(state, *backend, attention.forward_flops(), [&] { attention.forward(); });
}

void backward(benchmark::State& state) {
  const auto backend = make_cpu_backend();
  AttentionTensors attention(*backend, heads_of(2, 1, state.range(1)), documents(1, state.range(0), mask_of(state)));
  attention.forward();
  measure(state, *backend, attention.backward_flops(), [&] { attention.backward(); });
}

/// How many times faster than composed attention, measured in turn.
void forward_against_composed(benchmark::State& state) {
  const auto backend = make_cpu_backend();
  const std::int64_t length = state.range(0);
  AttentionTensors attention(*backend, heads_of(1, 1, state.range(1)), documents(1, length, mask_of(state)));
  ComposedAttention composed(length, state.range(1), mask_of(state));
  std::vector<double> ratios;
  for (auto _ : state) {
    const double apart = backend->time(1, false, [&] { composed.forward(*backend); })[0];
    const double together = backend->time(1, false, [&] { attention.forward(); })[0];
    ratios.push_back(apart / together);
    state.SetIterationTime(together);
  }
  state.counters["times_faster"] = median(ratios);
}

void attention_grid(benchmark::internal::Benchmark* grid) {
  grid->ArgNames({"length", "dim", "causal"})->UseManualTime()->Iterations(repetitions)->Unit(benchmark::kMillisecond);
  for (const std::int64_t length : {512, 2048, 4096}) {
    for (const std::int64_t dim : {64, 128}) {
      for (const std::int64_t causal : {0, 1}) grid->Args({length, dim, causal});
    }
  }
}
void composed_grid(benchmark::internal::Benchmark* grid) {
  grid->ArgNames({"length", "dim", "causal"})->UseManualTime()->Iterations(repetitions)->Unit(benchmark::kMillisecond);
  for (const std::int64_t length : {2048, 4096}) {
    for (const std::int64_t causal : {0, 1}) grid->Args({length, 128, causal});
  }
}
BENCHMARK(forward)->Name("cpu_attention_forward")->Apply(attention_grid);
BENCHMARK(backward)->Name("cpu_attention_backward")->Apply(attention_grid);
BENCHMARK(forward_against_composed)->Name("cpu_attention_against_composed")->Apply(composed_grid);

/// Many short causal documents in one launch.
void packed(benchmark::State& state) {
  const auto backend = make_cpu_backend();
  AttentionTensors attention(*backend, heads_of(2, 1, 128),
                             documents(8192 / state.range(0), state.range(0), Mask::causal));
  attention.forward();
  if (state.range(1) == 0) {
    measure(state, *backend, attention.forward_flops(), [&] { attention.forward(); });
  } else {
    measure(state, *backend, attention.backward_flops(), [&] { attention.backward(); });
  }
}
BENCHMARK(packed)
    ->Name("cpu_attention_packed")
    ->ArgNames({"length", "backward"})
    ->ArgsProduct({{64, 256, 1024, 2048}, {0, 1}})
    ->UseManualTime()
    ->Iterations(repetitions)
    ->Unit(benchmark::kMillisecond);

void matrix_product(benchmark::State& state) {
  const auto backend = make_cpu_backend();
  const std::int64_t size = state.range(0);
  const auto a = test::random_tensor(1, static_cast<std::size_t>(size * size));
  const auto b = test::random_tensor(2, a.size());
  std::vector<float> c(a.size());
  const MatrixProduct op{
      .m = size, .n = size, .k = size, .a = a.data(), .b = b.data(), .c = c.data(), .b_transposed = true};
  measure(state, *backend, 2.0 * static_cast<double>(size * size * size), [&] { backend->run(op); });
}
BENCHMARK(matrix_product)
    ->Name("cpu_matrix_product")
    ->Arg(512)
    ->Arg(2048)
    ->UseManualTime()
    ->Iterations(repetitions)
    ->Unit(benchmark::kMillisecond);

/// Kernels that memory bounds: bytes that they read and write, as a share of what a copy moves.
template <class Op>
void measure_traffic(benchmark::State& state, Backend& backend, const Op& op, std::int64_t floats) {
  std::vector<double> seconds;
  const double copied = copy_bandwidth();
  for (auto _ : state) {
    seconds.push_back(backend.time(1, false, [&] { backend.run(op); })[0]);
    state.SetIterationTime(seconds.back());
  }
  const double rate = 4.0 * static_cast<double>(floats) / median(seconds);
  state.counters["GB/s"] = rate * 1e-9;
  state.counters["share_of_copy"] = rate / copied;
}

constexpr std::int64_t tokens = 4096;
constexpr std::int64_t width = 4096;

void rms_norm(benchmark::State& state) {
  const auto backend = make_cpu_backend();
  const auto x = test::random_tensor(1, tokens * width);
  const auto weight = test::random_tensor(2, width);
  std::vector<float> y(x.size());
  std::vector<float> inverse_rms(tokens);
  const RmsNormForward op{.tokens = tokens,
                          .width = width,
                          .x = x.data(),
                          .weight = weight.data(),
                          .y = y.data(),
                          .inverse_rms = inverse_rms.data()};
  measure_traffic(state, *backend, op, 2 * tokens * width);
}
BENCHMARK(rms_norm)->Name("cpu_rms_norm")->UseManualTime()->Iterations(repetitions)->Unit(benchmark::kMillisecond);

void swiglu(benchmark::State& state) {
  const auto backend = make_cpu_backend();
  const auto gate_up = test::random_tensor(1, tokens * 2 * width);
  std::vector<float> y(tokens * width);
  const SwigluForward op{.tokens = tokens, .width = width, .gate_up = gate_up.data(), .y = y.data()};
  measure_traffic(state, *backend, op, 3 * tokens * width);
}
BENCHMARK(swiglu)->Name("cpu_swiglu")->UseManualTime()->Iterations(repetitions)->Unit(benchmark::kMillisecond);

void cross_entropy(benchmark::State& state) {
  const auto backend = make_cpu_backend();
  constexpr std::int64_t rows = 512;
  constexpr std::int64_t vocabulary = 32768;
  auto logits = test::random_tensor(1, rows * vocabulary);
  const std::vector<std::int32_t> targets(rows, 7);
  std::vector<float> loss(rows);
  const CrossEntropy op{.tokens = rows,
                        .vocabulary = vocabulary,
                        .logits = logits.data(),
                        .targets = targets.data(),
                        .loss = loss.data()};
  measure_traffic(state, *backend, op, 2 * rows * vocabulary);
}
BENCHMARK(cross_entropy)
    ->Name("cpu_cross_entropy")
    ->UseManualTime()
    ->Iterations(repetitions)
    ->Unit(benchmark::kMillisecond);

void adam_step(benchmark::State& state) {
  const auto backend = make_cpu_backend();
  constexpr std::int64_t count = tokens * width;
  auto master = test::random_tensor(1, count);
  const auto gradient = test::random_tensor(2, count);
  std::vector<float> m(count);
  std::vector<float> v(count);
  const Adam op{.count = count, .master = master.data(), .gradient = gradient.data(), .m = m.data(), .v = v.data()};
  measure_traffic(state, *backend, op, 7 * count);
}
BENCHMARK(adam_step)->Name("cpu_adam")->UseManualTime()->Iterations(repetitions)->Unit(benchmark::kMillisecond);

// How the cost of a layer's attention grows with the length of a document: linearly under a window and with a state,
// with the square of the length where every token sees all before it.

/// One causal document of more and more tokens: under a window each token costs the same however long the document is,
/// without one as many times more.
void by_length(benchmark::State& state, std::int64_t window, bool is_backward) {
  const auto backend = make_cpu_backend();
  const std::int64_t length = state.range(0);
  AttentionTensors attention(*backend, heads_of(1, 1, 64), documents(1, length, Mask::causal, window));
  if (is_backward) attention.forward();
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(backend->time(1, false, [&] {
      if (is_backward) return attention.backward();
      attention.forward();
    })[0]);
    state.SetIterationTime(seconds.back());
  }
  state.SetComplexityN(length);
  state.counters["ns_per_token"] = 1e9 * median(seconds) / static_cast<double>(length);
}
void windowed_lengths(benchmark::internal::Benchmark* series) {
  series->RangeMultiplier(2)->Range(4 << 10, 64 << 10)->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);
  series->Complexity(benchmark::oN);
}
/// Once each: seconds.
void full_lengths(benchmark::internal::Benchmark* series) {
  series->RangeMultiplier(2)->Range(4 << 10, 32 << 10)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
  series->Complexity();
}
BENCHMARK_CAPTURE(by_length, windowed_forward, 1024, false)
    ->Name("cpu_attention_by_length/windowed_forward")
    ->Apply(windowed_lengths);
BENCHMARK_CAPTURE(by_length, windowed_backward, 1024, true)
    ->Name("cpu_attention_by_length/windowed_backward")
    ->Apply(windowed_lengths);
BENCHMARK_CAPTURE(by_length, full_forward, 0, false)->Name("cpu_attention_by_length/full_forward")->Apply(full_lengths);
BENCHMARK_CAPTURE(by_length, full_backward, 0, true)
    ->Name("cpu_attention_by_length/full_backward")
    ->Apply(full_lengths);

/// The same of linear attention, with a state of 128 x 128.
void linear_by_length(benchmark::State& state, bool is_backward) {
  const auto backend = make_cpu_backend();
  const std::int64_t length = state.range(0);
  constexpr std::int64_t dim = 128;
  const LinearHeads heads{1, 1, dim, dim};
  const Document document{0, length};
  const auto q = test::random_tensor(1, static_cast<std::size_t>(length * dim), 0.1);
  const auto k = test::random_tensor(2, q.size(), 0.1);
  const auto v = test::random_tensor(3, q.size());
  const std::vector<float> log_decay(static_cast<std::size_t>(length), -0.01F);
  std::vector<float> o(q.size());
  std::vector<float> d_q(q.size());
  std::vector<float> d_k(q.size());
  std::vector<float> d_v(q.size());
  std::vector<float> d_log_decay(log_decay.size());
  std::vector<float> states(static_cast<std::size_t>(linear_chunks({&document, 1}) * dim * dim));
  const LinearAttentionForward forward{.heads = heads,
                                       .documents = {&document, 1},
                                       .q = {q.data(), dim},
                                       .k = {k.data(), dim},
                                       .v = {v.data(), dim},
                                       .log_decay = log_decay.data(),
                                       .decay_stride = length,
                                       .o = {o.data(), dim},
                                       .chunk_states = states.data()};
  const LinearAttentionBackward backward{.heads = heads,
                                         .documents = {&document, 1},
                                         .q = {q.data(), dim},
                                         .k = {k.data(), dim},
                                         .v = {v.data(), dim},
                                         .d_o = {v.data(), dim},
                                         .log_decay = log_decay.data(),
                                         .decay_stride = length,
                                         .chunk_states = states.data(),
                                         .d_q = {d_q.data(), dim},
                                         .d_k = {d_k.data(), dim},
                                         .d_v = {d_v.data(), dim},
                                         .d_log_decay = d_log_decay.data()};
  backend->run(forward);
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(backend->time(1, false, [&] {
      if (is_backward) return backend->run(backward);
      backend->run(forward);
    })[0]);
    state.SetIterationTime(seconds.back());
  }
  state.SetComplexityN(length);
  state.counters["ns_per_token"] = 1e9 * median(seconds) / static_cast<double>(length);
}
BENCHMARK_CAPTURE(linear_by_length, forward, false)
    ->Name("cpu_attention_by_length/linear_forward")
    ->Apply(windowed_lengths);
BENCHMARK_CAPTURE(linear_by_length, backward, true)
    ->Name("cpu_attention_by_length/linear_backward")
    ->Apply(windowed_lengths);

}  // namespace
}  // namespace hdpsim
