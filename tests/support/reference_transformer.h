#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/exec/impl/layer_kinds.h"
#include "kernels/exec/parameter_tensors.h"
#include "kernels/exec/tokens.h"
#include "kernels/reference/reference_attention.h"
#include "kernels/reference/reference_layer.h"
#include "kernels/reference/reference_linear_attention.h"
#include "sim/model/transformer.h"

namespace hdpsim::kernels::exec {

/// One training step of a whole batch on one device in fp64, from the plain formulas of kernels/reference: what every
/// sharding must compute.
class ReferenceTransformer {
 public:
  using Numbers = std::vector<double>;

  /// `parameters` are in the order of ParameterLayout.
  ReferenceTransformer(const Transformer& model, std::span<const float> parameters)
      : whole_(model), kinds_(model, {}), layout_(model), parameters_(parameters.begin(), parameters.end()) {}

  struct Step {
    double loss = 0;    ///< Mean over the tokens that have a next one.
    Numbers gradients;  ///< In the order of ParameterLayout.
    /// The least difference of scores between the last expert that a token chose and the first that it did not: where
    /// rounding is not far below it, another device may choose another one.
    double least_choice = std::numeric_limits<double>::infinity();
  };
  Step step(const std::vector<std::int64_t>& lengths, std::int64_t number, const TokenSource& tokens) {
    read_batch(lengths, number, tokens);
    gradients_.assign(parameters_.size(), 0);
    Numbers x = reference::embedding_forward(of(layout_.embedding()), ids_, whole_.hidden);
    for (std::size_t i = 0; i < layout_.layers().size(); ++i) x = forward(i, std::move(x));
    const auto normed = norm(x, layout_.final_norm());
    const Numbers logits = linear(normed.y, layout_.head(), whole_.vocabulary);
    std::int64_t count = 0;
    for (const std::int32_t target : targets_) count += target >= 0 ? 1 : 0;
    const auto end = reference::cross_entropy(logits, targets_, 1 / static_cast<double>(count));
    Numbers d_x = norm_back(x, normed, linear_back(normed.y, end.d_logits, layout_.head()), layout_.final_norm());
    for (std::size_t i = layout_.layers().size(); i-- > 0;) d_x = backward(i, d_x);
    add_to(layout_.embedding(), reference::embedding_backward(ids_, d_x, whole_.vocabulary));
    Step step{0, gradients_, least_choice_};
    for (const double loss : end.loss) step.loss += loss / static_cast<double>(count);
    kept_.clear();
    return step;
  }

 private:
  /// One expert of one token.
  struct Chosen {
    std::int64_t expert = 0;
    double weight = 0;
    Numbers gate_up, inner, output;
  };
  struct Kept {
    Numbers x, middle, q, k, v, gate_up, inner;
    reference::RmsNormResult normed, mlp_normed;
    reference::AttentionResult attention;
    Numbers latent_q, latent_kv;
    reference::RmsNormResult latent_q_normed, latent_kv_normed;
    std::vector<std::vector<Chosen>> chosen;  ///< By token.
    Numbers mixing_inputs, gate, mixed, o;
    reference::RmsNormResult mixed_normed;
  };

  void read_batch(const std::vector<std::int64_t>& lengths, std::int64_t number, const TokenSource& tokens) {
    ids_.clear();
    targets_.clear();
    positions_.clear();
    documents_.clear();
    for (std::size_t sequence = 0; sequence < lengths.size(); ++sequence) {
      const auto begin = static_cast<std::int64_t>(ids_.size());
      const std::int64_t length = lengths[sequence];
      documents_.push_back({begin, length, begin, length, Mask::causal});
      std::vector<std::int32_t> read(static_cast<std::size_t>(length));
      tokens.read(number, static_cast<std::int64_t>(sequence), 0, read);
      ids_.insert(ids_.end(), read.begin(), read.end());
      targets_.insert(targets_.end(), read.begin() + 1, read.end());
      targets_.push_back(-1);
      for (std::int32_t i = 0; i < length; ++i) positions_.push_back(i);
    }
  }

  // `model_` is the model with all layers of the kind of this one.
  const LayerTensors& enter(std::size_t layer) {
    model_ = kinds_.of(static_cast<std::int64_t>(layer));
    blocks_.clear();
    for (AttentionBlock document : documents_) {
      document.window = model_.window;
      if (model_.attention_chunk == 0) {
        blocks_.push_back(document);
        continue;
      }
      const std::vector<AttentionBlock> parts = chunked_blocks(document, model_.attention_chunk);
      blocks_.insert(blocks_.end(), parts.begin(), parts.end());
    }
    return layout_.layers()[layer];
  }

  Numbers forward(std::size_t layer, Numbers x) {
    const LayerTensors& t = enter(layer);
    Kept kept;
    kept.x = std::move(x);
    kept.normed = norm(kept.x, t.norm(DensePart::attention_norm));
    if (model_.linear) {
      mix(t, kept);
    } else {
      model_.latent ? latents(t, kept) : inputs(t, kept);
      kept.attention = reference::attention_forward(input(kept));
      kept.o = kept.attention.o;
    }
    kept.middle = sum(kept.x, linear(kept.o, t.product(DensePart::attention_output).weight, model_.hidden));
    kept.mlp_normed = norm(kept.middle, t.norm(DensePart::mlp_norm));
    Numbers out = kept.middle;
    if (has_inner()) {
      const Linear& gate_up = t.product(mlp_part(), 0);
      kept.gate_up = linear(kept.mlp_normed.y, gate_up.weight, gate_up.out);
      kept.inner = reference::swiglu_forward(kept.gate_up, gate_up.out / 2);
      out = sum(std::move(out), linear(kept.inner, t.product(mlp_part(), 1).weight, model_.hidden));
    }
    if (model_.moe) add_experts(t, kept, out);
    kept_.push_back(std::move(kept));
    return out;
  }

  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  // The heads of linear mixing, documents, and decays of all tokens: -2^(-8 (h + 1) / H) of head h.
  struct MixingInput {
    LinearHeads heads;
    std::vector<Document> documents;
    Numbers q, k, v, log_decay;
    [[nodiscard]] reference::LinearAttentionInput input() const {
      return {.heads = heads, .documents = documents, .q = q, .k = k, .v = v, .log_decay = log_decay};
    }
  };
  [[nodiscard]] MixingInput mixing_input(const Kept& kept) const {
    const LinearMixing& mixing = *model_.linear;
    MixingInput in{.heads = {mixing.heads, mixing.key_heads, mixing.key_dim, mixing.value_dim},
                   .documents = {},
                   .q = {},
                   .k = {},
                   .v = {},
                   .log_decay = {}};
    for (const AttentionBlock& document : documents_) in.documents.push_back({document.query_begin, document.queries});
    const std::int64_t columns = mixing.heads * mixing.value_dim;
    for (std::int64_t row = 0; row < rows(); ++row) {
      for (Numbers* const part : {&in.q, &in.k, &in.v}) {
        const std::int64_t first = (3 * row + (part == &in.q ? 0 : part == &in.k ? 1 : 2)) * columns;
        for (std::int64_t i = first; i < first + columns; ++i) {
          const double x = kept.mixing_inputs[static_cast<std::size_t>(i)];
          part->push_back(x * sigmoid(x));
        }
      }
    }
    for (std::int64_t head = 1; head <= mixing.heads; ++head) {
      const auto slope =
          static_cast<double>(-std::exp2(-8 * static_cast<float>(head) / static_cast<float>(mixing.heads)));
      in.log_decay.insert(in.log_decay.end(), static_cast<std::size_t>(rows()), slope);
    }
    return in;
  }

  [[nodiscard]] Tensor mixing_inputs(const LayerTensors& t) const {
    const Linear& all = t.product(DensePart::qkv);
    return all.rows(0, all.out / 4 * 3).weight;
  }
  [[nodiscard]] Tensor mixing_gate(const LayerTensors& t) const {
    const Linear& all = t.product(DensePart::qkv);
    return all.rows(all.out / 4 * 3, all.out / 4).weight;
  }

  void mix(const LayerTensors& t, Kept& kept) const {
    const std::int64_t columns = model_.linear->heads * model_.linear->value_dim;
    kept.mixing_inputs = linear(kept.normed.y, mixing_inputs(t), 3 * columns);
    kept.gate = linear(kept.normed.y, mixing_gate(t), columns);
    kept.mixed = reference::linear_attention_forward(mixing_input(kept).input()).o;
    kept.mixed_normed = norm(kept.mixed, t.norm(DensePart::mixing));
    kept.o = kept.mixed_normed.y;
    for (std::size_t i = 0; i < kept.o.size(); ++i) kept.o[i] *= sigmoid(kept.gate[i]);
  }

  Numbers mix_back(const LayerTensors& t, const Kept& kept, const Numbers& d_o) {
    Numbers d_gate = d_o;
    Numbers d_normed = d_o;
    for (std::size_t i = 0; i < d_o.size(); ++i) {
      const double s = sigmoid(kept.gate[i]);
      d_gate[i] *= s * (1 - s) * kept.mixed_normed.y[i];
      d_normed[i] *= s;
    }
    const Numbers d_mixed = norm_back(kept.mixed, kept.mixed_normed, d_normed, t.norm(DensePart::mixing));
    const MixingInput in = mixing_input(kept);
    const auto d = reference::linear_attention_backward(in.input(), d_mixed);
    const auto columns = static_cast<std::size_t>(model_.linear->heads * model_.linear->value_dim);
    Numbers d_inputs;
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows()); ++row) {
      for (const Numbers* const part : {&d.d_q, &d.d_k, &d.d_v}) {
        d_inputs.insert(d_inputs.end(), part->begin() + offset(row * columns),
                        part->begin() + offset((row + 1) * columns));
      }
    }
    for (std::size_t i = 0; i < d_inputs.size(); ++i) {
      const double s = sigmoid(kept.mixing_inputs[i]);
      d_inputs[i] *= s * (1 + kept.mixing_inputs[i] * (1 - s));
    }
    return sum(linear_back(kept.normed.y, d_inputs, mixing_inputs(t)),
               linear_back(kept.normed.y, d_gate, mixing_gate(t)));
  }

  // The gradient of the layer's normed input.
  Numbers attention_back(const LayerTensors& t, const Kept& kept, const Numbers& d_o) {
    const reference::AttentionInput in = input(kept);
    const Numbers delta = reference::attention_delta(in.heads, kept.attention.o, d_o);
    auto d = reference::attention_backward(in, d_o, kept.attention.lse, delta);
    return model_.latent ? latents_back(t, kept, d) : inputs_back(t, kept, d);
  }

  [[nodiscard]] std::int64_t query_columns() const { return model_.heads * model_.head_dim; }
  [[nodiscard]] Tensor query(const LayerTensors& t) const {
    return t.product(DensePart::qkv).rows(0, query_columns()).weight;
  }
  [[nodiscard]] Tensor key_value(const LayerTensors& t) const {
    return t.product(DensePart::qkv).rows(query_columns(), 2 * kv_width()).weight;
  }

  void inputs(const LayerTensors& t, Kept& kept) const {
    kept.q = linear(kept.normed.y, query(t), query_columns());
    split(linear(kept.normed.y, key_value(t), 2 * kv_width()), kept.k, kept.v);
    rotate(kept.q, false);
    rotate(kept.k, false);
  }

  Numbers inputs_back(const LayerTensors& t, const Kept& kept, reference::AttentionGradients& d) {
    rotate(d.d_q, true);
    rotate(d.d_k, true);
    return sum(linear_back(kept.normed.y, d.d_q, query(t)),
               linear_back(kept.normed.y, joined(d.d_k, d.d_v), key_value(t)));
  }

  // Columns of a query or key: those that do not rotate, then those that do.
  [[nodiscard]] std::int64_t plain_columns() const { return model_.head_dim - model_.latent->rotated; }

  // Rotates the last columns of each head.
  void rotate_last(Numbers& x, bool inverse) const {
    const auto dim = static_cast<std::size_t>(model_.head_dim);
    const auto plain = static_cast<std::size_t>(plain_columns());
    const std::size_t heads = x.size() / dim / positions_.size();
    Numbers last;
    for (std::size_t at = 0; at < x.size(); at += dim) {
      last.insert(last.end(), x.begin() + offset(at + plain), x.begin() + offset(at + dim));
    }
    std::vector<std::int32_t> positions;
    for (const std::int32_t position : positions_) positions.insert(positions.end(), heads, position);
    reference::rope(last, positions, model_.latent->rotated, 10000, inverse);
    for (std::size_t at = 0, from = 0; at < x.size(); at += dim, from += dim - plain) {
      std::copy_n(last.begin() + offset(from), dim - plain, x.begin() + offset(at + plain));
    }
  }

  /// Matrices and norms of latents.
  struct Latents {
    Tensor query_down, query_norm, query, kv_down, key_rotated, kv_norm, key_up, value_up;
  };
  [[nodiscard]] Latents latents_of(const LayerTensors& t) const {
    const auto& [query_rank, kv_rank, rotated] = *model_.latent;
    const std::size_t first = query_rank > 0 ? 1 : 0;
    const Linear& down = t.product(DensePart::qkv, first + 1);
    const Linear& up = t.product(DensePart::qkv, first + 2);
    const std::int64_t keys = model_.heads * plain_columns();
    return {.query_down = first > 0 ? t.product(DensePart::qkv).weight : Tensor{},
            .query_norm = first > 0 ? t.norm(DensePart::qkv) : Tensor{},
            .query = t.product(DensePart::qkv, first).weight,
            .kv_down = down.rows(0, kv_rank).weight,
            .key_rotated = down.rows(kv_rank, rotated).weight,
            .kv_norm = t.norm(DensePart::qkv, first),
            .key_up = up.rows(0, keys).weight,
            .value_up = up.rows(keys, up.out - keys).weight};
  }

  void latents(const LayerTensors& tensors, Kept& kept) const {
    const Latents t = latents_of(tensors);
    const auto& [query_rank, kv_rank, rotated] = *model_.latent;
    const std::int64_t plain = plain_columns();
    if (query_rank > 0) {
      kept.latent_q = linear(kept.normed.y, t.query_down, query_rank);
      kept.latent_q_normed = norm(kept.latent_q, t.query_norm);
    }
    kept.q = linear(query_rank > 0 ? kept.latent_q_normed.y : kept.normed.y, t.query, model_.heads * model_.head_dim);
    rotate_last(kept.q, false);
    kept.latent_kv = linear(kept.normed.y, t.kv_down, kv_rank);
    kept.latent_kv_normed = norm(kept.latent_kv, t.kv_norm);
    const Numbers common = linear(kept.normed.y, t.key_rotated, rotated);
    const Numbers own = linear(kept.latent_kv_normed.y, t.key_up, model_.heads * plain);
    kept.k.clear();
    for (std::int64_t row = 0; row < rows(); ++row) {
      for (std::int64_t head = 0; head < model_.heads; ++head) {
        const auto first = own.begin() + (row * model_.heads + head) * plain;
        kept.k.insert(kept.k.end(), first, first + plain);
        kept.k.insert(kept.k.end(), common.begin() + row * rotated, common.begin() + (row + 1) * rotated);
      }
    }
    rotate_last(kept.k, false);
    kept.v = linear(kept.latent_kv_normed.y, t.value_up, model_.heads * heads_of(model_).value_width());
  }

  Numbers latents_back(const LayerTensors& tensors, const Kept& kept, reference::AttentionGradients& d) {
    const Latents t = latents_of(tensors);
    const auto& [query_rank, kv_rank, rotated] = *model_.latent;
    const std::int64_t plain = plain_columns();
    rotate_last(d.d_q, true);
    rotate_last(d.d_k, true);
    Numbers d_common(static_cast<std::size_t>(rows() * rotated), 0);
    Numbers d_own;
    for (std::int64_t row = 0; row < rows(); ++row) {
      for (std::int64_t head = 0; head < model_.heads; ++head) {
        const auto first = d.d_k.begin() + (row * model_.heads + head) * model_.head_dim;
        d_own.insert(d_own.end(), first, first + plain);
        for (std::int64_t i = 0; i < rotated; ++i) {
          d_common[static_cast<std::size_t>(row * rotated + i)] += *(first + plain + i);
        }
      }
    }
    const Numbers d_kv = norm_back(kept.latent_kv, kept.latent_kv_normed,
                                   sum(linear_back(kept.latent_kv_normed.y, d_own, t.key_up),
                                       linear_back(kept.latent_kv_normed.y, d.d_v, t.value_up)),
                                   t.kv_norm);
    Numbers d_x = sum(linear_back(kept.normed.y, d_kv, t.kv_down), linear_back(kept.normed.y, d_common, t.key_rotated));
    if (query_rank == 0) return sum(std::move(d_x), linear_back(kept.normed.y, d.d_q, t.query));
    const Numbers d_q = norm_back(kept.latent_q, kept.latent_q_normed,
                                  linear_back(kept.latent_q_normed.y, d.d_q, t.query), t.query_norm);
    return sum(std::move(d_x), linear_back(kept.normed.y, d_q, t.query_down));
  }

  // The i-th matrix of one expert.
  [[nodiscard]] Linear of_expert(const LayerTensors& t, std::size_t i, std::int64_t expert) const {
    const Linear& all = t.product(DensePart::experts, i);
    return all.rows(expert * all.out, all.out);
  }
  [[nodiscard]] Numbers row_of(const Numbers& x, std::int64_t row, std::int64_t width) const {
    return {x.begin() + row * width, x.begin() + (row + 1) * width};
  }
  [[nodiscard]] Numbers times(const Linear& w, const Numbers& x) const {
    return reference::matrix_product({.m = 1, .n = w.out, .k = w.in, .b_transposed = true}, x, of(w.weight));
  }
  // Adds the gradient of the matrix and returns that of x.
  Numbers times_back(const Linear& w, const Numbers& x, const Numbers& d_y) {
    Numbers d_x(x.size(), 0);
    for (std::int64_t i = 0; i < w.out; ++i) {
      for (std::int64_t j = 0; j < w.in; ++j) {
        const auto at = static_cast<std::size_t>(w.weight.begin + i * w.in + j);
        const auto column = static_cast<std::size_t>(j);
        gradients_[at] += d_y[static_cast<std::size_t>(i)] * x[column];
        d_x[column] += d_y[static_cast<std::size_t>(i)] * parameters_[at];
      }
    }
    return d_x;
  }

  // The experts of a token, by falling score, with the softmax of their scores.
  [[nodiscard]] std::vector<Chosen> chosen_by(const Numbers& scores) {
    std::vector<std::int64_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    const auto score = [&](std::int64_t expert) { return scores[static_cast<std::size_t>(expert)]; };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return score(a) > score(b); });
    std::vector<Chosen> chosen;
    double all = 0;
    for (std::int64_t j = 0; j < model_.moe->experts_per_token; ++j) {
      const std::int64_t expert = order[static_cast<std::size_t>(j)];
      Chosen& one = chosen.emplace_back();
      one.expert = expert;
      one.weight = std::exp(score(expert));
      all += one.weight;
    }
    for (Chosen& one : chosen) one.weight /= all;
    if (chosen.size() < order.size()) {
      least_choice_ = std::min(least_choice_, score(chosen.back().expert) - score(order[chosen.size()]));
    }
    return chosen;
  }

  void add_experts(const LayerTensors& t, Kept& kept, Numbers& out) {
    const Numbers scores = linear(kept.mlp_normed.y, t.product(DensePart::router).weight, model_.moe->experts);
    for (std::int64_t row = 0; row < rows(); ++row) {
      const Numbers x = row_of(kept.mlp_normed.y, row, model_.hidden);
      std::vector<Chosen>& chosen = kept.chosen.emplace_back(chosen_by(row_of(scores, row, model_.moe->experts)));
      for (Chosen& one : chosen) {
        one.gate_up = times(of_expert(t, 0, one.expert), x);
        one.inner = reference::swiglu_forward(one.gate_up, model_.moe->expert_hidden);
        one.output = times(of_expert(t, 1, one.expert), one.inner);
        for (std::int64_t i = 0; i < model_.hidden; ++i) {
          out[static_cast<std::size_t>(row * model_.hidden + i)] +=
              one.weight * one.output[static_cast<std::size_t>(i)];
        }
      }
    }
  }

  // Adds to the gradient of the MLP's input.
  void experts_back(const LayerTensors& t, const Kept& kept, const Numbers& d_out, Numbers& d_x) {
    Numbers d_scores(static_cast<std::size_t>(rows() * model_.moe->experts), 0);
    for (std::int64_t row = 0; row < rows(); ++row) {
      const Numbers x = row_of(kept.mlp_normed.y, row, model_.hidden);
      const Numbers d_y = row_of(d_out, row, model_.hidden);
      const std::vector<Chosen>& chosen = kept.chosen[static_cast<std::size_t>(row)];
      Numbers d_weights;
      double mean = 0;
      for (const Chosen& one : chosen) {
        d_weights.push_back(std::inner_product(d_y.begin(), d_y.end(), one.output.begin(), 0.0));
        mean += one.weight * d_weights.back();
        Numbers d_output = d_y;
        for (double& value : d_output) value *= one.weight;
        const Numbers d_inner = times_back(of_expert(t, 1, one.expert), one.inner, d_output);
        const Numbers d_both = reference::swiglu_backward(one.gate_up, d_inner, model_.moe->expert_hidden);
        const Numbers d_row = times_back(of_expert(t, 0, one.expert), x, d_both);
        for (std::size_t i = 0; i < d_row.size(); ++i)
          d_x[static_cast<std::size_t>(row * model_.hidden) + i] += d_row[i];
      }
      for (std::size_t j = 0; j < chosen.size(); ++j) {
        d_scores[static_cast<std::size_t>(row * model_.moe->experts + chosen[j].expert)] =
            chosen[j].weight * (d_weights[j] - mean);
      }
    }
    d_x = sum(std::move(d_x), linear_back(kept.mlp_normed.y, d_scores, t.product(DensePart::router).weight));
  }

  Numbers backward(std::size_t layer, const Numbers& d_out) {
    const LayerTensors& t = enter(layer);
    const Kept& kept = kept_[layer];
    Numbers d_mlp(d_out.size(), 0);
    if (has_inner()) {
      const Linear& gate_up = t.product(mlp_part(), 0);
      const Numbers d_inner = linear_back(kept.inner, d_out, t.product(mlp_part(), 1).weight);
      const Numbers d_gate_up = reference::swiglu_backward(kept.gate_up, d_inner, gate_up.out / 2);
      d_mlp = linear_back(kept.mlp_normed.y, d_gate_up, gate_up.weight);
    }
    if (model_.moe) experts_back(t, kept, d_out, d_mlp);
    const Numbers d_middle = sum(d_out, norm_back(kept.middle, kept.mlp_normed, d_mlp, t.norm(DensePart::mlp_norm)));
    const Numbers d_o = linear_back(kept.o, d_middle, t.product(DensePart::attention_output).weight);
    const Numbers d_normed = model_.linear ? mix_back(t, kept, d_o) : attention_back(t, kept, d_o);
    return sum(d_middle, norm_back(kept.x, kept.normed, d_normed, t.norm(DensePart::attention_norm)));
  }

  [[nodiscard]] reference::AttentionInput input(const Kept& kept) const {
    return {.heads = heads_of(model_), .blocks = blocks_, .q = kept.q, .k = kept.k, .v = kept.v};
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

  // Whether there is an MLP that all tokens take, and which part it is.
  [[nodiscard]] bool has_inner() const { return (model_.moe ? model_.moe->shared_hidden : model_.ffn_hidden) > 0; }
  [[nodiscard]] DensePart mlp_part() const { return model_.moe ? DensePart::shared_experts : DensePart::mlp; }
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

  Transformer whole_;
  Transformer model_;
  LayerKinds kinds_;
  ParameterLayout layout_;
  Numbers parameters_;
  Numbers gradients_;
  std::vector<std::int32_t> ids_, targets_, positions_;
  std::vector<AttentionBlock> documents_;  ///< Each with all tokens before it.
  std::vector<AttentionBlock> blocks_;     ///< As the kind of the layer sees them.
  std::vector<Kept> kept_;
  double least_choice_ = std::numeric_limits<double>::infinity();
};

}  // namespace hdpsim::kernels::exec
