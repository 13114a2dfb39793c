#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/exec/parameters.h"
#include "kernels/exec/tokens.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/layer.h"
#include "sim/model/transformer.h"

namespace hdpsim::kernels::exec {

/// One training step of a whole batch on one device in fp64, from the plain formulas of kernels/reference: what every
/// sharding must compute.
class ReferenceTransformer {
 public:
  using Numbers = std::vector<double>;

  /// `parameters` are in the order of ParameterLayout.
  ReferenceTransformer(const Transformer& model, std::span<const float> parameters)
      : model_(model), layout_(model), parameters_(parameters.begin(), parameters.end()) {}

  struct Step {
    double loss = 0;    ///< Mean over the tokens that have a next one.
    Numbers gradients;  ///< In the order of ParameterLayout.
  };
  Step step(const std::vector<std::int64_t>& lengths, std::int64_t number, const TokenSource& tokens) {
    read_batch(lengths, number, tokens);
    gradients_.assign(parameters_.size(), 0);
    Numbers x = reference::embedding_forward(of(layout_.embedding()), ids_, model_.hidden);
    for (const LayerTensors& tensors : layout_.layers()) x = forward(tensors, std::move(x));
    const auto normed = norm(x, layout_.final_norm());
    const Numbers logits = linear(normed.y, layout_.head(), model_.vocabulary);
    std::int64_t count = 0;
    for (const std::int32_t target : targets_) count += target >= 0 ? 1 : 0;
    const auto end = reference::cross_entropy(logits, targets_, 1 / static_cast<double>(count));
    Numbers d_x = norm_back(x, normed, linear_back(normed.y, end.d_logits, layout_.head()), layout_.final_norm());
    for (std::size_t i = layout_.layers().size(); i-- > 0;) d_x = backward(layout_.layers()[i], kept_[i], d_x);
    add_to(layout_.embedding(), reference::embedding_backward(ids_, d_x, model_.vocabulary));
    Step step{0, gradients_};
    for (const double loss : end.loss) step.loss += loss / static_cast<double>(count);
    kept_.clear();
    return step;
  }

 private:
  struct Kept {
    Numbers x, middle, q, k, v, gate_up, inner;
    reference::RmsNormResult normed, mlp_normed;
    reference::AttentionResult attention;
  };

  void read_batch(const std::vector<std::int64_t>& lengths, std::int64_t number, const TokenSource& tokens) {
    ids_.clear();
    targets_.clear();
    positions_.clear();
    blocks_.clear();
    for (std::size_t sequence = 0; sequence < lengths.size(); ++sequence) {
      const auto begin = static_cast<std::int64_t>(ids_.size());
      const std::int64_t length = lengths[sequence];
      blocks_.push_back({begin, length, begin, length, Mask::causal});
      std::vector<std::int32_t> read(static_cast<std::size_t>(length));
      tokens.read(number, static_cast<std::int64_t>(sequence), 0, read);
      ids_.insert(ids_.end(), read.begin(), read.end());
      targets_.insert(targets_.end(), read.begin() + 1, read.end());
      targets_.push_back(-1);
      for (std::int32_t i = 0; i < length; ++i) positions_.push_back(i);
    }
  }

  Numbers forward(const LayerTensors& t, Numbers x) {
    Kept kept;
    kept.x = std::move(x);
    kept.normed = norm(kept.x, t.attention_norm);
    kept.q = linear(kept.normed.y, t.query, model_.heads * model_.head_dim);
    split(linear(kept.normed.y, t.key_value, 2 * kv_width()), kept.k, kept.v);
    rotate(kept.q, false);
    rotate(kept.k, false);
    kept.attention = reference::attention_forward(input(kept));
    kept.middle = sum(kept.x, linear(kept.attention.o, t.output, model_.hidden));
    kept.mlp_normed = norm(kept.middle, t.mlp_norm);
    kept.gate_up = linear(kept.mlp_normed.y, t.gate_up, 2 * model_.ffn_hidden);
    kept.inner = reference::swiglu_forward(kept.gate_up, model_.ffn_hidden);
    Numbers out = sum(kept.middle, linear(kept.inner, t.down, model_.hidden));
    kept_.push_back(std::move(kept));
    return out;
  }

  Numbers backward(const LayerTensors& t, const Kept& kept, const Numbers& d_out) {
    const Numbers d_inner = linear_back(kept.inner, d_out, t.down);
    const Numbers d_gate_up = reference::swiglu_backward(kept.gate_up, d_inner, model_.ffn_hidden);
    const Numbers d_mlp = linear_back(kept.mlp_normed.y, d_gate_up, t.gate_up);
    const Numbers d_middle = sum(d_out, norm_back(kept.middle, kept.mlp_normed, d_mlp, t.mlp_norm));
    const Numbers d_o = linear_back(kept.attention.o, d_middle, t.output);
    const reference::AttentionInput in = input(kept);
    const Numbers delta = reference::attention_delta(in.heads, kept.attention.o, d_o);
    auto d = reference::attention_backward(in, d_o, kept.attention.lse, delta);
    rotate(d.d_q, true);
    rotate(d.d_k, true);
    const Numbers d_normed =
        sum(linear_back(kept.normed.y, d.d_q, t.query), linear_back(kept.normed.y, joined(d.d_k, d.d_v), t.key_value));
    return sum(d_middle, norm_back(kept.x, kept.normed, d_normed, t.attention_norm));
  }

  [[nodiscard]] reference::AttentionInput input(const Kept& kept) const {
    const AttentionHeads heads{.heads = model_.heads,
                               .kv_heads = model_.kv_heads,
                               .dim = model_.head_dim,
                               .scale = 1 / std::sqrt(static_cast<float>(model_.head_dim))};
    return {.heads = heads, .blocks = blocks_, .q = kept.q, .k = kept.k, .v = kept.v};
  }

  [[nodiscard]] reference::RmsNormResult norm(const Numbers& x, const Tensor& weight) const {
    return reference::rms_norm_forward(x, of(weight), 1e-5F);
  }
  Numbers norm_back(const Numbers& x, const reference::RmsNormResult& result, const Numbers& d_y,
                    const Tensor& weight) {
    auto d = reference::rms_norm_backward(x, of(weight), result.inverse_rms, d_y);
    add_to(weight, d.d_weight);
    return std::move(d.d_x);
  }
  [[nodiscard]] Numbers linear(const Numbers& x, const Tensor& weight, std::int64_t out) const {
    return reference::matrix_product({.m = rows(), .n = out, .k = weight.count / out, .b_transposed = true}, x,
                                     of(weight));
  }
  Numbers linear_back(const Numbers& x, const Numbers& d_y, const Tensor& weight) {
    const std::int64_t out = static_cast<std::int64_t>(d_y.size()) / rows();
    const std::int64_t in = weight.count / out;
    add_to(weight, reference::matrix_product({.m = out, .n = in, .k = rows(), .a_transposed = true}, d_y, x));
    return reference::matrix_product({.m = rows(), .n = in, .k = out}, d_y, of(weight));
  }
  void rotate(Numbers& x, bool inverse) const { reference::rope(x, positions_, model_.head_dim, 10000, inverse); }

  void split(const Numbers& kv, Numbers& k, Numbers& v) const {
    for (std::size_t at = 0; at < kv.size(); at += 2 * width()) {
      k.insert(k.end(), kv.begin() + offset(at), kv.begin() + offset(at + width()));
      v.insert(v.end(), kv.begin() + offset(at + width()), kv.begin() + offset(at + 2 * width()));
    }
  }
  [[nodiscard]] Numbers joined(const Numbers& k, const Numbers& v) const {
    Numbers kv;
    for (std::size_t at = 0; at < k.size(); at += width()) {
      kv.insert(kv.end(), k.begin() + offset(at), k.begin() + offset(at + width()));
      kv.insert(kv.end(), v.begin() + offset(at), v.begin() + offset(at + width()));
    }
    return kv;
  }
  static std::ptrdiff_t offset(std::size_t at) { return static_cast<std::ptrdiff_t>(at); }
  static Numbers sum(Numbers a, const Numbers& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(ids_.size()); }
  [[nodiscard]] std::int64_t kv_width() const { return model_.kv_heads * model_.head_dim; }
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(kv_width()); }
  [[nodiscard]] std::span<const double> of(const Tensor& tensor) const {
    return std::span(parameters_)
        .subspan(static_cast<std::size_t>(tensor.begin), static_cast<std::size_t>(tensor.count));
  }
  void add_to(const Tensor& tensor, const Numbers& values) {
    for (std::size_t i = 0; i < values.size(); ++i) gradients_[static_cast<std::size_t>(tensor.begin) + i] += values[i];
  }

  Transformer model_;
  ParameterLayout layout_;
  Numbers parameters_;
  Numbers gradients_;
  std::vector<std::int32_t> ids_, targets_, positions_;
  std::vector<AttentionBlock> blocks_;
  std::vector<Kept> kept_;
};

}  // namespace hdpsim::kernels::exec
