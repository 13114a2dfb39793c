// Ring attention of threads or processes against one of them that computes the same documents alone. The targets, on
// two cores that have nothing else to do: two threads reach 0.90 of twice the speed of one, two processes 0.80.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/transport/in_process.h"
#include "kernels/transport/mpi_transport.h"
#include "tests/support/ring_attention.h"

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

// One repetition, as all ranks know it.
struct Round {
  Seconds alone;
  Seconds ring;
};

// A rank that says nothing of a time says 0.
Seconds slowest(Transport& transport, const Seconds& own) {
  std::vector<Seconds> all(static_cast<std::size_t>(transport.size()));
  transport.all_gather(&own, all.data(), sizeof(Seconds));
  Seconds most;
  for (const Seconds& one : all) {
    most.wall = std::max(most.wall, one.wall);
    most.computing = std::max(most.computing, one.computing);
  }
  return most;
}

Result measure(Transport& transport, std::int64_t tokens, Seconds (Share::*pass)()) {
  const auto backend = make_cpu_backend();
  Share share(*backend, transport, tokens, transport.size());
  std::unique_ptr<Share> whole;
  if (transport.rank() == 0) whole = std::make_unique<Share>(*backend, transport, tokens, 1);
  // Backward reads what forward wrote.
  share.forward();
  if (whole) whole->forward();
  std::vector<Round> rounds;
  for (int round = 0; round <= repetitions; ++round) {
    const Seconds alone = whole ? ((*whole).*pass)() : Seconds{};
    transport.barrier();
    const Seconds ring = (share.*pass)();
    const Round both{slowest(transport, alone), slowest(transport, ring)};
    if (round > 0) rounds.push_back(both);  // the first one warms up
  }
  const auto median_of = [&](Seconds Round::*part, double Seconds::*time) {
    std::vector<double> values;
    for (const Round& round : rounds) values.push_back(round.*part.*time);
    return median(values);
  };
  return {{median_of(&Round::alone, &Seconds::wall), median_of(&Round::alone, &Seconds::computing)},
          {median_of(&Round::ring, &Seconds::wall), median_of(&Round::ring, &Seconds::computing)}};
}

// efficiency: the share of the ideal, one n-th of the time alone. computing: the same for what the ranks compute, which
// neighbours on the machine disturb less, but which leaves out what a rank waits for.
void print_row(const char* name, Transport& transport, std::int64_t tokens, bool is_forward) {
  const Result result = measure(transport, tokens, is_forward ? &Share::forward : &Share::backward);
  if (transport.rank() != 0) return;
  const auto efficiency = [&](double alone, double ring) { return alone / transport.size() / ring; };
  fmt::print("  {:<12}{:>5}{:>8}  {:<10}{:>10.1f} ms{:>10.1f} ms{:>12.3f}{:>12.3f}\n", name, transport.size(), tokens,
             is_forward ? "forward" : "backward", 1e3 * result.alone.wall, 1e3 * result.ring.wall,
             efficiency(result.alone.wall, result.ring.wall),
             efficiency(result.alone.computing, result.ring.computing));
}

void print_table(const char* name, Transport& transport) {
  if (transport.rank() == 0) {
    fmt::print("  {:<12}{:>5}{:>8}  {:<10}{:>13}{:>13}{:>12}{:>12}\n", "ranks are", "many", "tokens", "pass",
               "one alone", "ring", "efficiency", "computing");
  }
  for (const std::int64_t tokens : {1024, 4096}) {
    for (const bool is_forward : {true, false}) print_row(name, transport, tokens, is_forward);
  }
}

}  // namespace
}  // namespace hdpsim::kernels

// usage: hdpsim_ring [threads]   so many threads (default: 2)
//        mpirun hdpsim_ring mpi  the processes that mpirun has started
int main(int argc, char** argv) {
  using namespace hdpsim::kernels;
  const std::string_view what = argc > 1 ? argv[1] : "2";
  try {
    if (what == "mpi") {
      const auto transport = make_mpi_transport();
      print_table("processes", *transport);
    } else {
      run_ranks(std::atoi(what.data()), [](Transport& transport) { print_table("threads", transport); });
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 3;
  }
  return 0;
}
