// Ring attention of threads against one thread that computes the same documents alone. The target: two ranks take no
// more than 1 / 0.8 of half the time of one, on two cores that have nothing else to do.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/ring/ring_attention.h"
#include "kernels/transport/in_process.h"

namespace hdpsim::kernels {
namespace {

constexpr AttentionHeads heads{.heads = 4, .kv_heads = 1, .dim = 128, .scale = 0.0884F};
constexpr int repetitions = 7;

struct Seconds {
  double wall = 0;
  double computing = 0;  // of this thread; what it waits is not in it
};

Seconds now() {
  timespec thread{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &thread);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now().time_since_epoch();
  return {wall.count(), static_cast<double>(thread.tv_sec) + 1e-9 * static_cast<double>(thread.tv_nsec)};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The calling rank's share of a document on a ring of the first `ranks` ranks, filled with noise.
class Share {
 public:
  Share(Backend& backend, Transport& transport, std::int64_t tokens, int ranks)
      : documents_({tokens}, ranks), ring_(backend, transport) {
    group_ = {.heads = heads, .documents = &documents_, .members = std::vector<int>(static_cast<std::size_t>(ranks))};
    std::iota(group_.members.begin(), group_.members.end(), 0);
    const std::int64_t rows = documents_.rows(transport.rank());
    const std::int64_t width = heads.heads * heads.dim;
    const std::int64_t kv_width = 2 * heads.kv_heads * heads.dim;
    for (auto& [tensor, count] : {std::pair{&q_, rows * width}, {&d_o_, rows * width}, {&kv_, rows * kv_width}}) {
      *tensor = noise(backend, count);
    }
    for (auto& [tensor, count] : {std::pair{&o_, rows * width},
                                  {&lse_, rows * heads.heads},
                                  {&d_q_, rows * width},
                                  {&d_kv_, rows * kv_width}}) {
      *tensor = backend.allocate(static_cast<std::size_t>(count) * sizeof(float));
    }
  }

  Seconds forward() {
    return timed([&] { ring_.forward(group_, {.q = q_.get(), .kv = kv_.get(), .o = o_.get(), .lse = fp32(lse_)}); });
  }
  Seconds backward() {
    return timed([&] {
      ring_.backward(group_, {.q = q_.get(),
                              .kv = kv_.get(),
                              .o = o_.get(),
                              .lse = fp32(lse_),
                              .d_o = d_o_.get(),
                              .d_q = fp32(d_q_),
                              .d_kv = fp32(d_kv_)});
    });
  }

 private:
  static float* fp32(const DeviceMemory& memory) { return static_cast<float*>(memory.get()); }
  static DeviceMemory noise(Backend& backend, std::int64_t count) {
    std::mt19937 random(1);
    std::vector<float> host(static_cast<std::size_t>(count));
    for (float& value : host) value = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
    DeviceMemory memory = backend.allocate(host.size() * sizeof(float));
    backend.upload(memory.get(), host.data(), host.size() * sizeof(float));
    return memory;
  }
  template <class Work>
  static Seconds timed(const Work& work) {
    const Seconds begin = now();
    work();
    const Seconds end = now();
    return {end.wall - begin.wall, end.computing - begin.computing};
  }

  ShardedDocuments documents_;
  RingAttention ring_;
  RingGroup group_;
  DeviceMemory q_, kv_, o_, lse_, d_o_, d_q_, d_kv_;
};

// Medians over repetitions in which rank 0 alone and the ring take turns, so that both see the same neighbours.
struct Result {
  Seconds alone;
  Seconds ring;  // of the slowest rank
};

Result measure(std::int64_t tokens, int ranks, Seconds (Share::*pass)()) {
  std::vector<std::vector<Seconds>> of_ring(static_cast<std::size_t>(ranks));
  std::vector<Seconds> of_one;
  run_ranks(ranks, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    Share share(*backend, transport, tokens, ranks);
    std::unique_ptr<Share> whole;
    if (transport.rank() == 0) whole = std::make_unique<Share>(*backend, transport, tokens, 1);
    // The first round warms up; backward reads what forward wrote.
    share.forward();
    if (whole) whole->forward();
    for (int round = 0; round <= repetitions; ++round) {
      if (whole) of_one.push_back(((*whole).*pass)());
      transport.barrier();
      of_ring[static_cast<std::size_t>(transport.rank())].push_back((share.*pass)());
      transport.barrier();
    }
  });
  const auto median_of = [](const auto& part) {
    std::vector<double> values;
    for (std::size_t round = 1; round <= repetitions; ++round) values.push_back(part(round));
    return median(values);
  };
  const auto slowest = [&](double Seconds::*part) {
    return median_of([&](std::size_t round) {
      double most = 0;
      for (const std::vector<Seconds>& rank : of_ring) most = std::max(most, rank[round].*part);
      return most;
    });
  };
  const auto alone = [&](double Seconds::*part) {
    return median_of([&](std::size_t round) { return of_one[round].*part; });
  };
  return {{alone(&Seconds::wall), alone(&Seconds::computing)}, {slowest(&Seconds::wall), slowest(&Seconds::computing)}};
}

// efficiency: the share of the ideal, one n-th of the time alone. compute_efficiency: the same for what the threads
// compute, which neighbours on the machine disturb less, but which leaves out what a rank waits for.
void report(benchmark::State& state, Seconds (Share::*pass)()) {
  const auto ranks = static_cast<int>(state.range(1));
  for (auto _ : state) {
    const Result result = measure(state.range(0), ranks, pass);
    state.SetIterationTime(result.ring.wall);
    state.counters["alone_ms"] = result.alone.wall * 1e3;
    state.counters["efficiency"] = result.alone.wall / ranks / result.ring.wall;
    state.counters["compute_efficiency"] = result.alone.computing / ranks / result.ring.computing;
  }
}

void ring_forward(benchmark::State& state) {
  report(state, &Share::forward);
}
void ring_backward(benchmark::State& state) {
  report(state, &Share::backward);
}
BENCHMARK(ring_forward)
    ->ArgsProduct({{1024, 4096}, {1, 2}})
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ring_backward)
    ->ArgsProduct({{1024, 4096}, {1, 2}})
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hdpsim::kernels
