// How the cost of a layer's attention grows with the length of a document, on one core: linearly under a window and
// with a state, with the square of the length where every token sees all before it. Times are of the thread's CPU
// clock.

#include <benchmark/benchmark.h>

#include "kernels/cpu/cpu_backend.h"
#include "tests/bench/attention_tensors.h"

namespace hdpsim {
namespace {

using namespace hdpsim::kernels;
using bench::Attention;
using bench::median;

/// One causal document of more and more tokens: under a window each token costs the same however long the document is,
/// without one as many times more.
void by_length(benchmark::State& state, std::int64_t window, bool is_backward) {
  const auto backend = make_cpu_backend();
  const std::int64_t length = state.range(0);
  Attention attention{1, 1, 64, {{0, length, 0, length, Mask::causal, window}}};
  if (is_backward) attention.forward(*backend);
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(backend->time(1, false, [&] {
      if (is_backward) return attention.backward(*backend);
      attention.forward(*backend);
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
