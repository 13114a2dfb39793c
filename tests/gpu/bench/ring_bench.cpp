// A ring of virtual ranks on one GPU against one launch over the whole documents.

#include <chrono>
#include <mutex>
#include <numeric>

#include "kernels/cuda/local_gpu_transport.h"
#include "tests/gpu/bench/bench.h"
#include "tests/support/attention_tensors.h"
#include "tests/support/ring_attention.h"

namespace hdpsim::kernels::bench {
namespace {

constexpr int ranks = 4;
constexpr std::int64_t tokens_of_a_rank = 8192;
constexpr int runs = 5;

/// One rank's tensors.
class RingRank {
 public:
  RingRank(Backend& backend, Transport& transport, const ShardedDocuments& documents)
      : backend_(backend), transport_(transport), ring_(backend, transport) {
    group_.heads = heads_of(64, 8, 128);
    group_.documents = &documents;
    group_.members.resize(static_cast<std::size_t>(ranks));
    std::iota(group_.members.begin(), group_.members.end(), 0);
    const std::int64_t rows = documents.rows(transport.rank());
    const std::int64_t query = rows * group_.heads.heads * group_.heads.dim;
    const std::int64_t key = rows * 2 * group_.heads.kv_heads * group_.heads.dim;
    q_ = random_elements(backend, query, 1);
    kv_ = random_elements(backend, key, 2);
    d_o_ = random_elements(backend, query, 3);
    o_ = zeros(backend, static_cast<std::size_t>(query) * 2);
    lse_ = zeros(backend, static_cast<std::size_t>(rows * group_.heads.heads) * 4);
    d_q_ = zeros(backend, static_cast<std::size_t>(query) * 4);
    d_kv_ = zeros(backend, static_cast<std::size_t>(key) * 4);
  }

  void forward() {
    ring_.forward(group_, {.q = q_.get(), .kv = kv_.get(), .o = o_.get(), .lse = static_cast<float*>(lse_.get())});
  }
  void backward() {
    ring_.backward(group_, {.q = q_.get(),
                            .kv = kv_.get(),
                            .o = o_.get(),
                            .lse = static_cast<const float*>(lse_.get()),
                            .d_o = d_o_.get(),
                            .d_q = static_cast<float*>(d_q_.get()),
                            .d_kv = static_cast<float*>(d_kv_.get())});
  }
  /// Seconds from a common start until this rank's part of `runs` passes is done, each.
  template <class Pass>
  std::vector<double> time(const Pass& pass) {
    std::vector<double> seconds;
    pass();  // not counted
    for (int run = 0; run < runs; ++run) {
      backend_.synchronize();
      transport_.barrier();
      backend_.synchronize();
      const auto begin = std::chrono::steady_clock::now();
      pass();
      backend_.synchronize();
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return seconds;
  }

 private:
  Backend& backend_;
  Transport& transport_;
  RingAttention ring_;
  RingGroup group_;
  DeviceMemory q_, kv_, d_o_, o_, lse_, d_q_, d_kv_;
};

void take_slowest(std::vector<double>& slowest, const std::vector<double>& seconds) {
  slowest.resize(seconds.size());
  for (std::size_t i = 0; i < seconds.size(); ++i) slowest[i] = std::max(slowest[i], seconds[i]);
}

}  // namespace

void measure_ring(Backend& backend, Report& report) {
  const std::int64_t tokens = ranks * tokens_of_a_rank;
  AttentionTensors whole(backend, heads_of(64, 8, 128), {{0, tokens, 0, tokens, Mask::causal}});
  const double whole_forward = median(measure(backend, [&] { whole.forward(); }));
  const double whole_backward = median(measure(backend, [&] { whole.backward(); }));

  const ShardedDocuments documents({tokens}, ranks);
  std::mutex mutex;
  std::vector<double> forward;
  std::vector<double> backward;
  run_local_gpu_ranks(ranks, [&](Backend& of_rank, Transport& transport) {
    RingRank rank(of_rank, transport, documents);
    const std::vector<double> forward_s = rank.time([&] { rank.forward(); });
    const std::vector<double> backward_s = rank.time([&] { rank.backward(); });
    const std::scoped_lock lock(mutex);
    take_slowest(forward, forward_s);
    take_slowest(backward, backward_s);
  });
  nlohmann::ordered_json what{
      {"kernel", "virtual_ring"}, {"pass", "forward"}, {"ranks", ranks}, {"tokens_of_a_rank", tokens_of_a_rank}};
  report.add(what, forward, "flops", whole.forward_flops());
  what["pass"] = "backward";
  report.add(what, backward, "flops", whole.backward_flops());
  report.at_least("virtual_ring_forward_of_one_shot", whole_forward / median(forward), 0.92);
  report.at_least("virtual_ring_backward_of_one_shot", whole_backward / median(backward), 0.92);
}

}  // namespace hdpsim::kernels::bench
