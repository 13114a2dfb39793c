// Ring attention over virtual ranks of one GPU equals attention on one device, in fp64, and one launch on the GPU.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/local_gpu_transport.h"
#include "tests/support/catch.h"
#include "tests/support/ring_laws.h"
#include "tests/support/transport_laws.h"

namespace hdpsim::kernels {
namespace {

using Catch::Matchers::Equals;

// The probabilities and the gradients of scores enter their products in bf16: 2^-9 of each term, of which hundreds add
// up. Of the largest value.
constexpr double bf16_tolerance = 1e-2;

RingCase ring_of(int ranks, std::vector<std::int64_t> lengths, AttentionHeads heads, Sharding sharding, unsigned seed) {
  RingCase ring_case{.lengths = std::move(lengths), .members = {}, .sharding = sharding, .heads = heads, .seed = seed};
  ring_case.element = Element::bf16;
  ring_case.tolerance = bf16_tolerance;
  for (int rank = 0; rank < ranks; ++rank) ring_case.members.push_back(rank);
  return ring_case;
}

void check_ring(int ranks, const RingCase& ring_case, AttentionPath path) {
  CAPTURE(ranks, ring_case.text(), path == AttentionPath::best);
  const WholeAttention whole(ring_case);
  LawReport report;
  run_local_gpu_ranks(
      ranks,
      [&](Backend& backend, Transport& transport) { RingRank(backend, transport).check(ring_case, whole, report); }, 0,
      path);
  REQUIRE_THAT(report.text(), Equals(""));
}

TEST_CASE("a ring of virtual ranks on a GPU equals one device: cp 1, 2, 3, 4, 8", "[gpu][ring]") {
  const AttentionHeads mha{.heads = 2, .kv_heads = 2, .dim = 64, .scale = 0.125F};
  const AttentionHeads gqa{.heads = 4, .kv_heads = 1, .dim = 128, .scale = 0.09F};
  for (const AttentionPath path : {AttentionPath::best, AttentionPath::portable}) {
    unsigned seed = 0;
    for (const int ranks : {1, 2, 3, 4, 8}) {
      check_ring(ranks, ring_of(ranks, {640}, mha, Sharding::zigzag, ++seed), path);
      check_ring(ranks, ring_of(ranks, {129, 0, 1, 300, 17, 64}, gqa, Sharding::zigzag, ++seed), path);
      check_ring(ranks, ring_of(ranks, {5, 211, 130}, gqa, Sharding::contiguous, ++seed), path);
    }
  }
}

TEST_CASE("rings of different members run side by side on one GPU, and a rank changes rings", "[gpu][ring]") {
  const AttentionHeads heads{.heads = 2, .kv_heads = 1, .dim = 64, .scale = 0.125F};
  RingCase front = ring_of(2, {300, 90}, heads, Sharding::zigzag, 1);
  RingCase back = ring_of(3, {257}, heads, Sharding::zigzag, 2);
  back.members = {4, 2, 3};
  const RingCase all = ring_of(5, {400, 33}, heads, Sharding::zigzag, 3);
  const WholeAttention whole_front(front);
  const WholeAttention whole_back(back);
  const WholeAttention whole_all(all);
  LawReport report;
  run_local_gpu_ranks(5, [&](Backend& backend, Transport& transport) {
    RingRank rank(backend, transport);
    for (int round = 0; round < 3; ++round) {
      rank.check(front, whole_front, report);
      rank.check(back, whole_back, report);
      rank.check(all, whole_all, report);
    }
  });
  REQUIRE_THAT(report.text(), Equals(""));
}

// Each rank's outputs as bits, run after run.
TEST_CASE("a ring on a GPU gives the same bits in 20 runs: forward always, backward where asked", "[gpu][ring]") {
  constexpr int ranks = 3;
  const AttentionHeads heads{.heads = 4, .kv_heads = 2, .dim = 64, .scale = 0.125F};
  const ShardedDocuments documents({700, 130, 65}, ranks);
  std::mutex mutex;
  bool same = true;
  run_local_gpu_ranks(ranks, [&](Backend& backend, Transport& transport) {
    RingAttention ring(backend, transport);
    const std::int64_t rows = documents.rows(transport.rank());
    const auto query_bytes = static_cast<std::size_t>(rows * heads.heads * heads.dim * 2);
    const auto kv_bytes = static_cast<std::size_t>(rows * 2 * heads.kv_heads * heads.dim * 2);
    std::mt19937 random(static_cast<unsigned>(transport.rank()) + 1);
    const auto drawn = [&](std::size_t bytes) {
      std::vector<cuda::bf16> values(bytes / 2);
      for (auto& value : values) value = cuda::to_bf16(static_cast<float>(random() % 129) / 64.0F - 1.0F);
      DeviceMemory memory = backend.allocate(bytes);
      backend.upload(memory.get(), values.data(), bytes);
      return memory;
    };
    const DeviceMemory q = drawn(query_bytes);
    const DeviceMemory kv = drawn(kv_bytes);
    const DeviceMemory d_o = drawn(query_bytes);
    const DeviceMemory o = backend.allocate(query_bytes);
    const DeviceMemory lse = backend.allocate(static_cast<std::size_t>(rows * heads.heads) * sizeof(float));
    const DeviceMemory d_q = backend.allocate(2 * query_bytes);
    const DeviceMemory d_kv = backend.allocate(2 * kv_bytes);
    const RingGroup group{.heads = heads, .documents = &documents, .members = {0, 1, 2}};
    std::vector<std::byte> first;
    for (int run = 0; run < 20; ++run) {
      ring.forward(group, {.q = q.get(), .kv = kv.get(), .o = o.get(), .lse = static_cast<float*>(lse.get())});
      ring.backward(group, {.q = q.get(),
                            .kv = kv.get(),
                            .o = o.get(),
                            .lse = static_cast<const float*>(lse.get()),
                            .d_o = d_o.get(),
                            .d_q = static_cast<float*>(d_q.get()),
                            .d_kv = static_cast<float*>(d_kv.get()),
                            .deterministic = true});
      std::vector<std::byte> bits(query_bytes * 3 + kv_bytes * 2);
      backend.download(bits.data(), o.get(), query_bytes);
      backend.download(bits.data() + query_bytes, d_q.get(), 2 * query_bytes);
      backend.download(bits.data() + 3 * query_bytes, d_kv.get(), 2 * kv_bytes);
      if (run == 0) first = bits;
      const std::lock_guard lock(mutex);
      same = same && bits == first;
    }
  });
  REQUIRE(same);
}

}  // namespace
}  // namespace hdpsim::kernels
