#include "sim/cost/cost_model.h"

#include <algorithm>
#include <array>
#include <memory>

#include "sim/cost/impl/fitted.h"
#include "sim/cost/impl/table_cost_model.h"

namespace hdpsim {
namespace {

/// Answers as another model does; what differs is overridden.
class WrappedCostModel : public CostModel {
 public:
  explicit WrappedCostModel(std::unique_ptr<CostModel> model) : model_(std::move(model)) {}
  [[nodiscard]] Estimate gemm(const Gemm& op) const override { return model_->gemm(op); }
  [[nodiscard]] Estimate attention(const Attention& op) const override { return model_->attention(op); }
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override { return model_->memory_bound(op); }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return model_->kernels(op); }

 protected:
  std::unique_ptr<CostModel> model_;
};

/// Attention as frameworks computed it before FlashAttention: the whole square of scores is written to memory, also
/// above the diagonal of a causal mask. Forward: scores = Q K^T, one kernel for scale, mask and softmax, one for
/// dropout if there is any, output = P V. Backward: the gradients of V, P, Q and K, and the kernels of dropout and
/// softmax between them.
///
/// Traffic of the kernels between the products, in bytes per score (fp16 values; the mask of dropout is one byte, as
/// Korthikanti et al. 2022, section 4.1, count it): softmax reads 2 and writes 2, dropout reads 2 and writes 2 + 1;
/// backward dropout reads 2 + 1 and writes 2, softmax reads 2 (its output) + 2 and writes 2.
class UnfusedAttentionCostModel final : public WrappedCostModel {
 public:
  using WrappedCostModel::WrappedCostModel;
  [[nodiscard]] Estimate attention(const Attention& op) const override;
  /// The number of products and of kernels between them, for each kind of block.
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override;
};

/// Attention that a CUDA graph launches: the host issues none of its kernels.
class CapturedAttentionCostModel final : public WrappedCostModel {
 public:
  using WrappedCostModel::WrappedCostModel;
  [[nodiscard]] std::int64_t kernels(const Attention& /*op*/) const override { return 0; }
};

std::int64_t kernels_between(const Attention& op) {
  return op.dropout ? 2 : 1;
}

std::int64_t bytes_per_score(const Attention& op) {
  const bool forward = op.direction == Direction::forward;
  const std::int64_t softmax = forward ? 2 + 2 : 2 + 2 + 2;
  const std::int64_t dropout = forward ? 2 + 2 + 1 : 2 + 1 + 2;
  return op.dropout ? softmax + dropout : softmax;
}

// The products of all heads and equal blocks as one product: it is cut into the same tiles. The short side, the head,
// lies along the short side of a tile, as libraries choose.
struct Products {
  Gemm scores;   // queries x keys, summed over the head; also the gradient of P
  Gemm queries;  // head x queries, summed over the keys: the output, the gradient of Q
  Gemm keys;     // head x keys, summed over the queries: the gradients of K and V
};

Products products_of(const AttentionBlock& block, const Attention& op) {
  const std::int64_t batch = op.heads * block.count;
  return {{batch * block.queries, block.keys, op.head_dim},
          {op.head_dim, batch * block.queries, block.keys},
          {op.head_dim, batch * block.keys, block.queries}};
}

Estimate UnfusedAttentionCostModel::attention(const Attention& op) const {
  Estimate sum{Duration{}, Evidence::measured};
  const auto add = [&](const Estimate& part, std::int64_t times) {
    sum.time += times * part.time;
    sum.evidence = std::max(sum.evidence, part.evidence);
  };
  const bool forward = op.direction == Direction::forward;
  for (const AttentionBlock& block : op.blocks) {
    const Products products = products_of(block, op);
    const Bytes traffic = Bytes(bytes_per_score(op) * op.heads * block.count) * block.queries * block.keys;
    add(model_->gemm(products.scores), 1);
    add(model_->gemm(products.queries), 1);
    if (!forward) add(model_->gemm(products.keys), 2);
    add(model_->memory_bound({traffic, kernels_between(op)}), 1);
  }
  return sum;
}

std::int64_t UnfusedAttentionCostModel::kernels(const Attention& op) const {
  const std::int64_t products = op.direction == Direction::forward ? 2 : 4;
  return std::ssize(op.blocks) * (products + kernels_between(op));
}

/// Products that add their result to a sum (Gemm::sum_bytes). A plain product writes an element for each number of its
/// result; these read and write the number of the sum in its place. The product takes what another model says, and a
/// share of the time in which the memory carries the further bytes at the bandwidth of its data sheet.
///
/// The share, 0.72, is what shows of them in products that SimuMax v1.2 timed (configs/system, matmul): gradients of
/// weights that are added up in fp32 (layout NT) against the two other products of the same weight. On an A100 they
/// take longer by 3.7 of 6 bytes a number (median of 61), on a B200 by 4.9 (of 144).
class SummingCostModel final : public WrappedCostModel {
 public:
  SummingCostModel(std::unique_ptr<CostModel> model, const DeviceProfile& profile)
      : WrappedCostModel(std::move(model)),
        bandwidth_(profile.datasheet.memory_bandwidth),
        element_bytes_(profile.element_bytes) {}

  [[nodiscard]] Estimate gemm(const Gemm& op) const override {
    constexpr double visible = 0.72;  // of the time of further bytes
    Gemm plain = op;
    plain.sum_bytes = 0;
    Estimate estimate = model_->gemm(plain);
    const std::int64_t further = 2 * op.sum_bytes - element_bytes_;
    if (op.sum_bytes > 0 && further > 0) {
      estimate.time += (Bytes(further) * op.count * op.m * op.n / bandwidth_).scaled(visible);
    }
    return estimate;
  }

 private:
  Bandwidth bandwidth_;
  std::int64_t element_bytes_;
};

/// Multiplies times by a factor for each family of kernels. The evidence stays: measured times are off
/// by the same factor as their family.
class ScaledCostModel final : public WrappedCostModel {
 public:
  ScaledCostModel(std::unique_ptr<CostModel> model, const FamilyFactors& factors)
      : WrappedCostModel(std::move(model)), factors_(factors) {}
  [[nodiscard]] Estimate gemm(const Gemm& op) const override { return scaled(model_->gemm(op), CostFamily::gemm); }
  [[nodiscard]] Estimate attention(const Attention& op) const override {
    const bool forward = op.direction == Direction::forward;
    return scaled(model_->attention(op), forward ? CostFamily::attention_forward : CostFamily::attention_backward);
  }
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override {
    return scaled(model_->memory_bound(op), CostFamily::memory_bound);
  }

 private:
  [[nodiscard]] Estimate scaled(const Estimate& estimate, CostFamily family) const {
    return {estimate.time.scaled(factors_[family]), estimate.evidence};
  }

  FamilyFactors factors_;
};

}  // namespace

std::string_view evidence_name(Evidence evidence) {
  switch (evidence) {
    case Evidence::measured:
      return "measured";
    case Evidence::interpolated:
      return "interpolated";
    case Evidence::extrapolated:
      return "extrapolated";
    case Evidence::formula:
      return "formula";
  }
  return "";
}

void CostModel::asked_again(const Coverage& /*operations*/) const {}

Estimate CostModel::linear(const LinearPart& part) const {
  Estimate sum{Duration{}, Evidence::measured};
  const auto add = [&](const Estimate& estimate) {
    sum.time += estimate.time;
    sum.evidence = std::max(sum.evidence, estimate.evidence);
  };
  for (const Gemm& product : part.gemms) add(gemm(product));
  for (const MemoryBound& kernels : part.memory_bound) add(memory_bound(kernels));
  return sum;
}

std::int64_t flash_attention_kernels(const Attention& op) {
  constexpr std::int64_t forward = 1;
  constexpr std::int64_t backward = 3;
  if (op.blocks.empty()) return 0;
  return op.direction == Direction::forward ? forward : backward;
}

std::unique_ptr<CostModel> make_cost_model(const DeviceProfile& profile) {
  std::unique_ptr<CostModel> model;
  if (profile.fits.empty()) {
    model = std::make_unique<TableCostModel>(profile);
  } else {
    model = std::make_unique<FittedCostModel>(profile);
  }
  if (profile.unfused_attention) model = std::make_unique<UnfusedAttentionCostModel>(std::move(model));
  if (profile.graphs.has(GraphModule::attention))
    model = std::make_unique<CapturedAttentionCostModel>(std::move(model));
  model = std::make_unique<SummingCostModel>(std::move(model), profile);
  if (profile.factors.any()) model = std::make_unique<ScaledCostModel>(std::move(model), profile.factors);
  return model;
}

}  // namespace hdpsim
