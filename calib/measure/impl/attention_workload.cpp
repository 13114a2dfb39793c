#include <cmath>

#include "calib/measure/impl/tensors.h"
#include "calib/measure/impl/workloads.h"

namespace hdpsim::calib {
namespace {

/// The documents of a launch one after the other in packed tensors.
std::vector<kernels::AttentionBlock> laid_out(const Attention& op) {
  std::vector<kernels::AttentionBlock> blocks;
  std::int64_t query = 0;
  std::int64_t key = 0;
  for (const AttentionBlock& block : op.blocks) {
    const kernels::Mask mask = block.mask == Mask::causal ? kernels::Mask::causal : kernels::Mask::full;
    for (std::int64_t i = 0; i < block.count; ++i) {
      blocks.push_back({query, block.queries, key, block.keys, mask});
      query += block.queries;
      key += block.keys;
    }
  }
  return blocks;
}

/// All tensors of attention forward and backward. Sizes: q, o, d_o, d_q [queries, heads dim]; k, v, d_k, d_v [keys,
/// kv_heads dim]; lse, delta [heads, queries].
class AttentionTensors {
 public:
  AttentionTensors(kernels::Backend& backend, const Attention& op, std::uint64_t seed)
      : backend_(backend), tensors_(backend, seed), blocks_(laid_out(op)) {
    for (const kernels::AttentionBlock& block : blocks_) {
      queries_ += block.queries;
      keys_ += block.keys;
    }
    heads_ = {op.heads, op.kv_heads, op.head_dim, 1 / std::sqrt(static_cast<float>(op.head_dim))};
    query_width_ = op.heads * op.head_dim;
    kv_width_ = op.kv_heads * op.head_dim;
    q_ = tensors_.elements(queries_ * query_width_);
    k_ = tensors_.elements(keys_ * kv_width_);
    v_ = tensors_.elements(keys_ * kv_width_);
    o_ = tensors_.results(queries_ * query_width_);
    lse_ = tensors_.sums(op.heads * queries_);
  }

  void run_forward() {
    backend_.run(kernels::AttentionForward{.heads = heads_,
                                           .blocks = blocks_,
                                           .q = {q_, query_width_},
                                           .k = {k_, kv_width_},
                                           .v = {v_, kv_width_},
                                           .o = {o_, query_width_},
                                           .lse = lse_,
                                           .lse_stride = queries_,
                                           .accumulate = false});
  }

  /// Backward needs the log-sum-exp of a forward pass: with any other the probabilities would overflow.
  void prepare_backward() {
    d_o_ = tensors_.elements(queries_ * query_width_);
    delta_ = tensors_.sums(heads_.heads * queries_);
    d_q_ = tensors_.sums(queries_ * query_width_);
    d_k_ = tensors_.sums(keys_ * kv_width_);
    d_v_ = tensors_.sums(keys_ * kv_width_);
    run_forward();
    backend_.run(kernels::AttentionDelta{
        .heads = heads_, .rows = queries_, .o = {o_, query_width_}, .d_o = {d_o_, query_width_}, .delta = delta_});
  }

  void run_backward() {
    backend_.run(kernels::AttentionBackward{.heads = heads_,
                                            .blocks = blocks_,
                                            .q = {q_, query_width_},
                                            .k = {k_, kv_width_},
                                            .v = {v_, kv_width_},
                                            .d_o = {d_o_, query_width_},
                                            .lse = lse_,
                                            .delta = delta_,
                                            .lse_stride = queries_,
                                            .d_q = {d_q_, query_width_},
                                            .d_k = {d_k_, kv_width_},
                                            .d_v = {d_v_, kv_width_},
                                            .deterministic = false});
  }

 private:
  kernels::Backend& backend_;
  Tensors tensors_;
  std::vector<kernels::AttentionBlock> blocks_;
  kernels::AttentionHeads heads_;
  std::int64_t queries_ = 0;
  std::int64_t keys_ = 0;
  std::int64_t query_width_ = 0;
  std::int64_t kv_width_ = 0;
  void* q_ = nullptr;
  void* k_ = nullptr;
  void* v_ = nullptr;
  void* o_ = nullptr;
  void* d_o_ = nullptr;
  float* lse_ = nullptr;
  float* delta_ = nullptr;
  float* d_q_ = nullptr;
  float* d_k_ = nullptr;
  float* d_v_ = nullptr;
};

}  // namespace

std::function<void()> attention_workload(kernels::Backend& backend, const Attention& op, std::uint64_t seed) {
  auto tensors = std::make_shared<AttentionTensors>(backend, op, seed);
  if (op.direction == Direction::forward) return [tensors] { tensors->run_forward(); };
  tensors->prepare_backward();
  return [tensors] { tensors->run_backward(); };
}

std::function<void()> gemm_workload(kernels::Backend& backend, const Gemm& op, std::uint64_t seed) {
  auto tensors = std::make_shared<Tensors>(backend, seed);
  // The layout of a linear layer y = x W^T.
  const kernels::MatrixProduct product = {.m = op.m,
                                          .n = op.n,
                                          .k = op.k,
                                          .a = tensors->elements(op.m * op.k),
                                          .b = tensors->elements(op.n * op.k),
                                          .c = tensors->results(op.m * op.n),
                                          .b_transposed = true};
  return [tensors, product, &backend] { backend.run(product); };
}

}  // namespace hdpsim::calib
