#include <initializer_list>

#include "sim/model/impl/operation_list.h"
#include "sim/model/mixing.h"

namespace hdpsim {
namespace {

constexpr DensePart inputs = DensePart::qkv;
const Recompute with_inputs{LayerModule::qkv};

// The rows of the output projection's input.
Width mixed_width(const Layer& layer) {
  if (layer.linear) return {.count = output_width(layer), .is_cut = true};
  return {.count = layer.heads, .unit = value_dim(layer), .is_cut = true};
}

Width query_columns(const Layer& layer) {
  return {.count = layer.heads, .unit = layer.head_dim, .is_cut = true};
}
Width key_columns(const Layer& layer) {
  return {.count = layer.kv_heads, .unit = layer.head_dim, .is_cut = true};
}
Width value_columns(const Layer& layer) {
  return {.count = layer.kv_heads, .unit = value_dim(layer), .is_cut = true};
}

void rope(OperationList& list, std::array<Width, 3> columns) {
  const auto& [forward, backward] = list.recipe().elementwise().rope;
  const std::int64_t element = list.layer().element_bytes;
  LayerOperation& positions =
      list.pass(inputs, columns, forward.bytes(1, element) / element, backward.bytes(1, element) / element);
  positions.kernel = MemoryKernel::rope;
  positions.kernels = forward.kernels;
}

// Heads that share keys and values get a copy each, in a kernel for keys and one for values; backward sums up.
void repeat_keys(OperationList& list) {
  const Transformer& layer = list.layer();
  const Width repeated{.count = layer.heads, .unit = layer.head_dim + value_dim(layer), .is_cut = true};
  list.pass(inputs, {key_columns(layer), value_columns(layer), repeated}, 1, 1).kernels = 2;
}

LayerOperation& product_of_norm(OperationList& list, std::initializer_list<WeightShape> weights) {
  LayerOperation& product = list.product(inputs, weights);
  product.reads_norm = true;
  return product;
}

// The stream is joined with the embedding of the next token, each behind a norm.
void join_embedding(OperationList& list) {
  const std::int64_t hidden = list.layer().hidden;
  list.norm(inputs, {.count = 2 * hidden}, 2 * norm_parameters(list.layer())).rows = OperationRows::stream;
  list.keep(
      {list.of_stream("stream and embedding before they are joined", 2 * list.layer().element_bytes * hidden), {}});
  product_of_norm(list, {{{.count = hidden, .is_cut = true}, {.count = 2 * hidden}}});
}

// The scores of attention, or flash attention's log-sum-exp.
void keep_scores(OperationList& list) {
  const Transformer& layer = list.layer();
  const auto keep = [&](KeptTensor tensor) {
    tensor.goes_whole = true;
    list.keep({tensor, {LayerModule::attention}});
  };
  if (list.recipe().flash_attention) return keep({"log-sum-exp", fp32_bytes * layer.heads});
  const auto of_pairs = [&](std::string_view name, std::int64_t bytes) { keep({name, 0, bytes * layer.heads}); };
  of_pairs("softmax of the scores", list.layer().element_bytes);
  if (!list.recipe().dropout) return;
  of_pairs("dropout mask of the scores", mask_bytes);
  of_pairs("scores behind dropout", list.layer().element_bytes);
}

// It reads queries and writes outputs as wide as its kernel has them; keys and values come last.
void attention_core(OperationList& list) {
  const Transformer& layer = list.layer();
  const CoreHeads core = core_heads(layer);
  const Width queries{.count = layer.heads, .unit = core.key_dim, .is_cut = true};
  const Width outputs{.count = layer.heads, .unit = core.value_dim, .is_cut = true};
  list.add({.kind = OperationKind::attention,
            .part = DensePart::mixing,
            .backward_part = DensePart::mixing,
            .vectors = layer.sinks ? layer.heads : 0,
            .columns = {queries, outputs, exchanged_keys(layer)}});
  list.keep({list.elements("queries", query_columns(list.layer())), with_inputs});
  keep_scores(list);
  keep_attention_output(list);
}

// Where an indexer chooses keys: queries, keys and weights of the heads that score them. Every device of a
// tensor-parallel group has the whole indexer. Queries and key are rotated, and multiplied by a Hadamard matrix, which
// spreads outliers over columns.
void add_indexer(OperationList& list) {
  const auto& [heads, head_dim, keys, is_shared] = *list.layer().indexer;
  const LatentAttention& latent = *list.layer().latent;
  const Width of_queries{.count = heads * head_dim};
  product_of_norm(list, {{of_queries, {.count = latent.query_rank > 0 ? latent.query_rank : list.layer().hidden}}});
  product_of_norm(list, {{{.count = head_dim}, list.hidden()}, {{.count = heads}, list.hidden()}});
  list.norm(inputs, {.count = head_dim}, 2 * head_dim);  // with biases
  const Width kept{.count = heads * head_dim + head_dim + heads};
  list.keep({list.elements("queries, keys and weights of the indexer", kept), with_inputs});
  rope(list, {Width{.count = (heads + 1) * latent.rotated}});
  list.pass(inputs, {Width{.count = (heads + 1) * head_dim}}, 2, 2);
}

// Of queries, keys and values side by side; a device has a part of each.
Width all_columns(const Layer& layer, Width queries) {
  return {.count = queries.all() + key_columns(layer).all() + value_columns(layer).all(), .is_cut = true};
}

// Queries come directly, or through a latent with a norm, which every device of a tensor-parallel group makes.
void project_plain(OperationList& list) {
  const Transformer& layer = list.layer();
  const Width latent{.count = layer.query_latent};
  const bool has_latent = latent.count > 0;
  Width queries = query_columns(layer);
  if (layer.gated_output) queries.unit *= 2;
  const bool has_norm = layer.qk_norm;
  LayerOperation& product =
      product_of_norm(list, {{.rows = has_latent ? latent : queries,
                              .columns = list.hidden(),
                              .output = has_norm ? "queries before their norm" : "queries before their positions"},
                             {.rows = key_columns(layer),
                              .columns = list.hidden(),
                              .output = has_norm ? "keys before their norm" : "keys before their positions"},
                             {.rows = value_columns(layer), .columns = list.hidden(), .output = "values"}});
  if (layer.biases || layer.qkv_biases) {
    product.vectors = (has_latent ? latent.all() : query_width(layer)) + key_width(layer) + value_width(layer);
  }
  list.adapt({{AdapterTarget::q_proj, queries},
              {AdapterTarget::k_proj, key_columns(layer)},
              {AdapterTarget::v_proj, value_columns(layer)},
              {AdapterTarget::linear_qkv, all_columns(layer, queries)}},
             with_inputs);
  if (has_latent) {
    list.norm(inputs, latent, latent.all());
    list.keep({list.elements("latent of queries before its norm", latent), with_inputs});
    product_of_norm(list, {{queries, latent}});
    list.keep({list.elements("latent of queries", latent), with_inputs});
  }
  if (layer.qk_norm) {
    list.norm(inputs, query_columns(layer), 2 * layer.head_dim).columns[1] = key_columns(layer);
    list.keep({list.elements("queries before their norm", query_columns(layer)), with_inputs});
    list.keep({list.elements("keys before their norm", key_columns(layer)), with_inputs});
  }
  rope(list, {query_columns(layer), key_columns(layer)});
  if (layer.repeats_keys && layer.kv_heads < layer.heads) repeat_keys(list);
}

// From the stream's norm to the input of the output projection.
void add_mixer(OperationList& list) {
  if (list.layer().linear) return add_linear_mixing(list);
  if (list.layer().latent) return add_latent_attention(list);
  add_attention(list);
}

}  // namespace

void keep_attention_output(OperationList& list) {
  if (!list.recipe().flash_attention) return;
  KeptOperand output{list.elements("output of attention", mixed_width(list.layer())), {LayerModule::attention}};
  output.tensor.goes_whole = true;
  list.keep(output);
}

void add_attention(OperationList& list) {
  project_plain(list);
  attention_core(list);
  const Transformer& layer = list.layer();
  const Width of_values{.count = core_heads(layer).kv_heads, .unit = value_dim(layer), .is_cut = true};
  const Width of_keys{.count = core_heads(layer).kv_heads, .unit = layer.head_dim, .is_cut = true};
  list.keep({list.elements("keys", of_keys), with_inputs});
  list.keep({list.elements(layer.repeats_keys ? "repeated values" : "values", of_values), with_inputs});
}

// Every device of a tensor-parallel group makes the latents, and expands them for its heads. Keys are joined from their
// own and their rotated columns. Where an indexer chooses keys, these are the latents themselves: what would expand
// them then multiplies queries, which are joined in place of keys, and outputs of attention, with as many FLOPs.
void add_latent_attention(OperationList& list) {
  const Transformer& layer = list.layer();
  const auto& [query_rank, kv_rank, rotated] = *layer.latent;
  if (query_rank > 0) {
    product_of_norm(list, {{{.count = query_rank}, list.hidden()}});
    list.norm(inputs, {.count = query_rank}, query_rank);
  }
  product_of_norm(list, {{query_columns(layer), query_rank > 0 ? Width{.count = query_rank} : list.hidden()}});
  product_of_norm(list, {{{.count = kv_rank + rotated}, list.hidden()}});
  list.norm(inputs, {.count = kv_rank}, kv_rank);
  // Inputs and outputs of the norms.
  const Width latents{.count = 2 * query_rank + 2 * kv_rank + rotated};
  list.keep({list.elements("latents of queries, keys and values", latents), with_inputs});
  const Width expanded{.count = layer.heads, .unit = layer.head_dim - rotated + value_dim(layer), .is_cut = true};
  product_of_norm(list, {{expanded, {.count = kv_rank}}});
  rope(list, {Width{.count = layer.heads, .unit = rotated, .is_cut = true}, {.count = rotated}});
  const CoreHeads core = core_heads(layer);
  const Width of_latents{.count = layer.heads, .unit = core.key_dim, .is_cut = true};
  list.pass(inputs, {layer.indexer ? of_latents : key_columns(layer)}, 2, 2);
  if (scores_keys(layer)) add_indexer(list);
  attention_core(list);
  if (!layer.indexer) {
    list.keep({list.elements("keys", key_columns(layer)), with_inputs});
    list.keep({list.elements("values", value_columns(layer)), with_inputs});
    return;
  }
  list.keep({list.elements("queries of latents", of_latents), with_inputs});
  const auto keep_whole = [&](KeptTensor tensor, bool in_full) {
    tensor.goes_whole = true;
    list.keep({tensor, {LayerModule::attention}, {}, in_full});
  };
  if (list.recipe().flash_attention) {
    const Width outputs{.count = layer.heads, .unit = core.value_dim, .is_cut = true};
    keep_whole(list.elements("output of attention in latents", outputs), false);
  }
  if (scores_keys(layer)) keep_whole({"chosen keys", choice_bytes(*layer.indexer), 0, false}, layer.indexer->is_shared);
}

// What the kernels of a gated delta rule read and write besides its products: norms of the queries and keys that heads
// share, one copy of these for each head, and the states of chunks, which one kernel writes and another one reads;
// backward writes them again, and their gradients (flash-linear-attention, fla/ops/gated_delta_rule/chunk.py and
// fla/modules/l2norm.py; Megatron-Core, ssm/gated_delta_net/common.py, _prepare_input_for_gated_delta_rule).
void delta_rule_passes(OperationList& list) {
  const LinearMixing& linear = *list.layer().linear;
  const Width shared{.count = linear.key_heads, .unit = 2 * linear.key_dim, .is_cut = true};
  list.pass(DensePart::mixing, {shared}, 2, 3).kernels = 2;
  if (linear.key_heads < linear.heads) {
    const Width repeated{.count = linear.heads, .unit = 2 * linear.key_dim, .is_cut = true};
    list.pass(DensePart::mixing, {shared, repeated}, 1, 1).kernels = 2;
  }
  if (linear.chunk <= 1) return;
  const Width states{
      .count = linear.heads, .unit = divided(linear.key_dim * linear.value_dim, linear.chunk), .is_cut = true};
  list.pass(DensePart::mixing, {states}, 2, 4).kernels = 0;  // by the kernels of the products
}

// A state space of selected steps (Gu and Dao 2023, section 3.2) makes them, its inputs and its outputs of each token.
// Chunks keep the states that they begin with. A scan reads its inputs and writes its output, and backward reads both
// and writes as many gradients; its arithmetic is neglected.
void add_linear_mixing(OperationList& list) {
  const LinearMixing& linear = *list.layer().linear;
  const Width read{.count = linear.inputs, .is_cut = true};
  const Width mixed = mixed_width(list.layer());
  product_of_norm(list, {{read, list.hidden()}});
  list.keep({list.elements("inputs of linear mixing", read), with_inputs});
  if (linear.convolved > 0) {
    const Width convolved{.count = linear.convolved, .is_cut = true};
    // Backward reads the input and the gradient, and writes the input's.
    list.pass(inputs, {convolved}, 2, 3).vectors = linear.convolved * linear.taps;
    list.keep({list.elements("outputs of its convolution", convolved), with_inputs});
  }
  if (linear.step_rank > 0) {
    list.product(inputs, {{{.count = linear.step_rank + 2 * linear.key_dim}, mixed}});
    list.product(inputs, {{mixed, {.count = linear.step_rank}}});
  }
  const bool is_scan = linear.chunk == 1;
  if (linear.delta_rule) delta_rule_passes(list);
  list.add({.kind = OperationKind::mixing,
            .part = DensePart::mixing,
            .backward_part = DensePart::mixing,
            .vectors = linear.parameters,
            .columns = {read, mixed},
            .forward = is_scan ? 1 : 0,
            .backward = is_scan ? 2 : 0});
  if (linear.chunk > 1) {
    const std::int64_t states = divided(state_bytes(linear, 1).count(), linear.chunk);
    list.keep({{"states of chunks", states}, with_inputs});
  }
  keep_attention_output(list);
}

void add_mixing_branch(OperationList& list) {
  const Transformer& layer = list.layer();
  const Recompute again{LayerModule::projection};
  list.stream_norm(DensePart::attention_norm);
  list.keep_norm_input("input of the layer", "residual stream before the layer", Recompute::none);
  const std::int64_t normed = list.product_input("", list.hidden()).bytes_per_token;
  const AdapterTargets readers{AdapterTarget::q_proj, AdapterTarget::k_proj, AdapterTarget::v_proj,
                               AdapterTarget::linear_qkv};
  if (list.keeps_input_of(readers) || (list.shares_norm() && list.keeps_input_of(mlp_input_targets))) {
    list.keep({list.of_stream("input of the QKV product", normed), {LayerModule::norm}});
  }
  list.fork(DensePart::attention_norm);
  if (layer.joins) join_embedding(list);
  add_mixer(list);
  // A gate, which linear mixing has behind its output's norm, reads and writes the output and reads as much; backward
  // reads both and a gradient, and writes two.
  const Width mixed = mixed_width(layer);
  if (layer.linear || layer.gated_output) {
    list.pass(DensePart::attention_output, {mixed}, 3, 5);
    // Megatron-Core has that norm as a kernel of its own (ssm/gated_delta_net/common.py, _apply_gated_norm).
    const bool has_own_norm = layer.linear && layer.linear->delta_rule && !list.recipe().is_pytorch();
    if (has_own_norm) list.pass(DensePart::attention_output, {mixed}, 2, 3);
    if (!layer.linear) {
      list.keep({list.elements("gate of attention's output", query_columns(layer)), with_inputs});
    }
  }
  LayerOperation& projection =
      list.product(DensePart::attention_output,
                   {{.rows = list.hidden(), .columns = mixed, .output = "output of attention's projection"}});
  if (layer.biases || layer.output_bias) projection.vectors = layer.hidden;
  // In fp8 it keeps the cast; otherwise what attention keeps too, unless the group trades heads in between. Linear
  // layers exchange states and trade no heads.
  KeptOperand input{list.casts() ? list.product_input("fp8 input of attention's projection", mixed)
                                 : list.elements("output of attention", mixed),
                    again};
  input.tensor.goes_whole = !list.casts();
  if (!list.casts() && !layer.linear) input.behind_trade = "output of attention behind the trade of heads";
  if (list.keeps_input_of({AdapterTarget::o_proj})) list.keep(input);
  list.adapt({{AdapterTarget::o_proj, list.hidden()}}, again);
  const std::int64_t hidden = layer.hidden;
  // Its backward runs with that of the norm behind it.
  const DensePart behind = has_mlp(layer) ? DensePart::mlp_norm : DensePart::attention_output;
  list.join_stream(DensePart::attention_residual, DensePart::attention_output, behind,
                   {list.of_stream("output of attention's projection", list.layer().element_bytes * hidden), again},
                   {list.of_stream("dropout mask behind attention", mask_bytes * hidden), again});
}

}  // namespace hdpsim
