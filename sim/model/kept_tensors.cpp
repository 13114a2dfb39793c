#include "sim/model/kept_tensors.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

/// Lists the tensors that a layer keeps, in the order in which forward makes them.
class KeptList {
 public:
  KeptList(const Transformer& model, const Recipe& recipe, const ExpertUse& use)
      : model_(model), recipe_(recipe), use_(use) {}

  std::vector<KeptTensor> run() {
    input_of_norm("input of the layer", "residual stream before the layer");
    list_.back().goes_whole = true;
    if (recipe_.recompute == Recompute::full) {
      if (model_.indexer && model_.indexer->is_shared) chosen_keys();
      return std::move(list_);
    }
    if (mixes_tokens(model_)) attention_branch();
    if (has_mlp(model_)) mlp_branch();
    return std::move(list_);
  }

 private:
  /// Bytes of a row of a product's input that only the product keeps, in the type in which it multiplies (Transformer
  /// Engine, LayerNormLinear and Linear). Attention keeps its output by itself.
  [[nodiscard]] std::int64_t input_bytes(std::int64_t columns) const {
    return row_bytes(recipe_.products, columns, model_.element_bytes);
  }
  [[nodiscard]] bool casts() const { return in_fp8(recipe_.products); }
  [[nodiscard]] bool again(LayerModule module) const { return recipe_.recompute.has(module); }

  void attention_branch() {
    if (model_.joins) residual("stream and embedding before they are joined", 2 * model_.element_bytes);
    if (!again(LayerModule::norm)) residual_bytes("input of the QKV product", input_bytes(model_.hidden));
    attention();
    if (again(LayerModule::projection)) return;
    if (casts()) cut("fp8 input of attention's projection", input_bytes(output_width(model_)));
    output_of_branch("output of attention's projection");
    if (recipe_.dropout) residual("dropout mask behind attention", mask_bytes);
    if (has_mlp(model_) && !shares_norm()) input_of_norm("input of the MLP's norm", "residual stream before the MLP");
    weight("weight of the projection", output_width(model_) * model_.hidden);
  }

  void mlp_branch() {
    const std::size_t first = list_.size();
    if (!again(LayerModule::norm) && !shares_norm()) {
      residual_bytes("input of the MLP",
                     model_.moe ? model_.element_bytes * model_.hidden : input_bytes(model_.hidden));
    }
    model_.moe ? experts(*model_.moe) : mlp();
    for (std::size_t i = first; i < list_.size(); ++i) list_[i].of_mlp = true;
    output_of_branch("output of the MLP");
    if (recipe_.dropout) residual("dropout mask behind the MLP", mask_bytes);
  }

  /// Parallel branches read one norm.
  [[nodiscard]] bool shares_norm() const { return model_.norms == 1 && mixes_tokens(model_); }
  // A norm of a branch's output keeps it.
  void output_of_branch(std::string_view name) {
    if (model_.norms == 4) residual(name, model_.element_bytes);
  }

  void attention() {
    if (!again(LayerModule::qkv)) inputs();
    const std::size_t first = list_.size();
    if (!again(LayerModule::attention) && !model_.linear) core();
    outputs_of_attention();
    for (std::size_t i = first; i < list_.size(); ++i) list_[i].goes_whole = true;
  }

  void outputs_of_attention() {
    const std::int64_t width = output_width(model_);
    const bool of_core = recipe_.flash_attention && !again(LayerModule::attention);
    const bool of_projection = !again(LayerModule::projection);
    if (of_core || (of_projection && !casts())) cut("output of attention", model_.element_bytes * width);
    if (of_core && model_.indexer) {
      cut("output of attention in latents", model_.element_bytes * model_.heads * core_heads(model_).value_dim);
    }
    // Linear layers exchange states and trade no heads.
    if (!of_core || !of_projection || casts() || model_.linear) return;
    cut("output of attention behind the trade of heads", model_.element_bytes * width);
    list_.back().of_trade = true;
  }

  void inputs() {
    if (model_.linear) return linear_inputs(*model_.linear);
    if (model_.latent) latents(*model_.latent);
    if (model_.qk_norm) inputs_of_norms();
    if (model_.indexer) return of_latents(*model_.indexer);
    cut("queries", model_.element_bytes * query_width(model_));
    if (model_.gated_output) cut("gate of attention's output", model_.element_bytes * query_width(model_));
    cut("keys", model_.element_bytes * key_width(model_));
    cut("values", model_.element_bytes * value_width(model_));
    weight("weight of the QKV product",
           model_.hidden * (query_width(model_) + key_width(model_) + value_width(model_)));
  }

  // Attention keeps what these norms make. One of each head and one of the whole width keep the same.
  void inputs_of_norms() {
    cut("queries before their norm", model_.element_bytes * query_width(model_));
    cut("keys before their norm", model_.element_bytes * key_width(model_));
  }

  // Inputs and outputs of the norms of latents, which every device of a tensor-parallel group has.
  void latents(const LatentAttention& latent) {
    const std::int64_t width = 2 * latent.query_rank + 2 * latent.kv_rank + latent.rotated;
    list_.push_back({"latents of queries, keys and values", model_.element_bytes * width, 0, false});
  }

  // Keys and values are the latents; queries are multiplied by what would expand keys.
  void of_latents(const KeyIndexer& indexer) {
    cut("queries", model_.element_bytes * query_width(model_));
    cut("queries of latents", model_.element_bytes * model_.heads * core_heads(model_).key_dim);
    const std::int64_t columns = indexer.heads * indexer.head_dim + indexer.head_dim + indexer.heads;
    if (!scores_keys(model_)) return;
    list_.push_back({"queries, keys and weights of the indexer", model_.element_bytes * columns, 0, false});
  }

  void chosen_keys() { list_.push_back({"chosen keys", choice_bytes(*model_.indexer), 0, false}); }

  // Chunks keep the states that they begin with.
  void linear_inputs(const LinearMixing& linear) {
    cut("inputs of linear mixing", model_.element_bytes * linear.inputs);
    if (linear.convolved > 0) cut("outputs of its convolution", model_.element_bytes * linear.convolved);
    if (linear.chunk > 1) cut("states of chunks", divided(state_bytes(linear, 1).count(), linear.chunk));
  }

  void mlp() {
    if (again(LayerModule::mlp)) return;
    cut("input of the activation", activation_input_bytes() * model_.ffn_hidden);
    if (!again(LayerModule::activation)) cut("output of the activation", input_bytes(model_.ffn_hidden));
    weight("weights of the MLP", (read_by_activation() + 1) * model_.hidden * model_.ffn_hidden);
  }

  // Adds the tensors between queries, keys and values and the output.
  void core() {
    if (scores_keys(model_)) chosen_keys();
    if (recipe_.flash_attention) return cut("log-sum-exp", fp32_bytes * model_.heads);
    scores("softmax of the scores", model_.element_bytes);
    if (!recipe_.dropout) return;
    scores("dropout mask of the scores", mask_bytes);
    scores("scores behind dropout", model_.element_bytes);
  }

  [[nodiscard]] std::int64_t read_by_activation() const { return model_.gated_mlp ? 2 : 1; }
  [[nodiscard]] std::int64_t activation_input_bytes() const {
    return read_by_activation() * (recipe_.fp8_activation_input ? 1 : model_.element_bytes);
  }

  // Without expert groups every device of the tensor-parallel group has all copies and cuts the experts' inner width.
  void experts(const MixtureOfExperts& moe) {
    HDPSIM_CHECK(!recipe_.autocast(), "experts of {} under autocast", model_.name);
    if (again(LayerModule::experts)) return;
    const bool outputs = !again(LayerModule::activation);
    list_.push_back({"probabilities of the router", fp32_bytes * moe.experts, 0, recipe_.sequence_parallel});
    const std::int64_t width = moe.experts_per_token * moe.expert_hidden;
    of_experts("copies for the experts", moe.experts_per_token * input_bytes(copy_width(model_)), false);
    if (moe.latent > 0) {
      list_.push_back(
          {"sums of copies in their latent", model_.element_bytes * moe.latent, 0, recipe_.sequence_parallel});
    }
    of_experts("input of the experts' activation", activation_input_bytes() * width, true);
    if (outputs) of_experts("output of the experts' activation", input_bytes(width), true);
    if (moe.shared_hidden == 0) return;
    if (casts()) residual_bytes("fp8 input of the shared experts", input_bytes(model_.hidden));
    cut("input of the shared experts' activation", activation_input_bytes() * moe.shared_hidden);
    if (outputs) cut("output of the shared experts' activation", input_bytes(moe.shared_hidden));
  }

  void of_experts(std::string_view name, std::int64_t bytes_per_token, bool is_cut) {
    if (use_.ep == 1) return list_.push_back({name, bytes_per_token, 0, is_cut});
    const auto hottest = std::llround(use_.hottest * static_cast<double>(bytes_per_token));
    list_.push_back({name, hottest, 0, false, true});
  }

  void cut(std::string_view name, std::int64_t bytes_per_token) { list_.push_back({name, bytes_per_token, 0, true}); }
  // Adds the cast of a weight, or of the device's part of it.
  void weight(std::string_view name, std::int64_t elements) {
    if (recipe_.autocast()) list_.push_back({.name = name, .bytes = elements * model_.element_bytes});
  }
  void input_of_norm(std::string_view name, std::string_view stream) {
    const bool is_cast_again = recipe_.autocast() && again(LayerModule::norm);
    residual(is_cast_again ? stream : name, is_cast_again ? fp32_bytes : model_.element_bytes);
  }
  void residual(std::string_view name, std::int64_t bytes_per_element) {
    residual_bytes(name, bytes_per_element * model_.hidden);
  }
  void residual_bytes(std::string_view name, std::int64_t bytes_per_token) {
    list_.push_back({name, bytes_per_token, 0, recipe_.sequence_parallel});
  }
  void scores(std::string_view name, std::int64_t bytes_per_element) {
    list_.push_back({name, 0, bytes_per_element * model_.heads, true});
  }

  const Transformer& model_;
  const Recipe& recipe_;
  ExpertUse use_;
  std::vector<KeptTensor> list_;
};

}  // namespace

std::vector<KeptTensor> kept_tensors(const Transformer& model, const Recipe& recipe, const ExpertUse& experts) {
  return KeptList(model, recipe, experts).run();
}

Bytes kept_bytes(const std::vector<KeptTensor>& tensors, const KeptLoad& load) {
  HDPSIM_CHECK(load.tp > 0, "a tensor-parallel group of {}", load.tp);
  const std::int64_t of_group = load.expert_tokens.value_or(divided(load.tokens, load.tp));
  Bytes cut;
  Bytes whole;
  for (const KeptTensor& tensor : tensors) {
    if (tensor.of_trade && !load.trades_heads) continue;
    const std::int64_t each = tensor.of_experts ? of_group : load.tokens;
    (tensor.cut ? cut : whole) +=
        each * Bytes(tensor.bytes_per_token) + Bytes(tensor.bytes_per_pair).scaled(load.pairs) + Bytes(tensor.bytes);
  }
  return Bytes(divided(cut.count(), load.tp)) + whole;
}

Bytes token_wise_bytes(const std::vector<KeptTensor>& tensors, const KeptLoad& load, double share) {
  std::vector<KeptTensor> whole;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(whole), [](const auto& t) { return t.goes_whole; });
  const Bytes of_whole = kept_bytes(whole, load);
  return of_whole + (kept_bytes(tensors, load) - of_whole).scaled(share);
}

Bytes activation_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp, Recompute recompute,
                       bool sequence_parallel) {
  return kept_bytes(kept_tensors(model, {.recompute = recompute, .sequence_parallel = sequence_parallel}),
                    {.tokens = tokens, .tp = tp});
}

}  // namespace hdpsim
