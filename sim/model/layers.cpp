#include "sim/model/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/base/check.h"
#include "sim/base/text.h"

namespace hdpsim {
namespace {

const Layer& layer_of(const Transformer& model, std::size_t kind) {
  HDPSIM_CHECK(kind < layer_kinds(model), "kind {} of {} kinds of layers of {}", kind, layer_kinds(model), model.name);
  return kind == 0 ? model : model.others[kind - 1];
}

bool sees_all(const Layer& layer) {
  return layer.heads > 0 && !layer.linear && layer.window == 0 && layer.attention_chunk == 0;
}

template <class... Members>
std::string texts_of(const std::tuple<Members...>& members) {
  std::string text;
  std::apply([&](const auto&... member) { (append(text, " {}", member), ...); }, members);
  return text;
}

// A new member does not compile here until it is listed.
std::string text_of(const MixtureOfExperts& moe) {
  const auto& [experts, experts_per_token, expert_hidden, shared_hidden, latent, shared_gate, biases, groups,
               groups_per_token] = moe;
  const auto all = std::tie(experts, experts_per_token, expert_hidden, shared_hidden, latent, shared_gate, biases,
                            groups, groups_per_token);
  return texts_of(all);
}

std::string text_of(const LatentAttention& latent) {
  const auto& [query_rank, kv_rank, rotated] = latent;
  return fmt::format(" {} {} {}", query_rank, kv_rank, rotated);
}

std::string text_of(const KeyIndexer& indexer) {
  const auto& [heads, head_dim, keys, is_shared] = indexer;
  return fmt::format(" indexer {} {} {} {}", heads, head_dim, keys, is_shared);
}

std::string text_of(const LinearMixing& linear) {
  const auto& [heads, key_heads, key_dim, value_dim, chunk, inputs, convolved, taps, step_rank, delta_rule,
               parameters] = linear;
  const auto all =
      std::tie(heads, key_heads, key_dim, value_dim, chunk, inputs, convolved, taps, step_rank, delta_rule, parameters);
  return texts_of(all);
}

std::string text_of(const Layer& layer) {
  const auto& [heads, kv_heads, head_dim, value_dim, query_latent, window, attention_chunk, repeats_keys, sinks,
               gated_output, latent, indexer, linear, ffn_hidden, gated_mlp, moe, biases, qkv_biases, output_bias,
               qk_norm, norms, joins] = layer;
  const auto all = std::tie(heads, kv_heads, head_dim, value_dim, window, attention_chunk, sinks, gated_output,
                            ffn_hidden, gated_mlp, biases, qkv_biases, output_bias, qk_norm, norms, joins);
  return fmt::format("{}{}{}{}{}{}{}", texts_of(all), repeats_keys ? " repeated" : "",
                     query_latent > 0 ? fmt::format(" queries {}", query_latent) : "", latent ? text_of(*latent) : "",
                     indexer ? text_of(*indexer) : "", linear ? text_of(*linear) : "", moe ? text_of(*moe) : "");
}

}  // namespace

std::size_t layer_kinds(const Transformer& model) {
  return 1 + model.others.size();
}

Transformer of_kind(const Transformer& model, std::size_t kind) {
  Transformer alike = model;
  static_cast<Layer&>(alike) = layer_of(model, kind);
  alike.others.clear();
  alike.pattern.clear();
  return alike;
}

void repeat_keys(Transformer& model) {
  const auto repeat = [](Layer& layer) { layer.repeats_keys = !layer.latent && !layer.linear; };
  repeat(model);
  std::for_each(model.others.begin(), model.others.end(), repeat);
}

Transformer of_attention(const Transformer& model) {
  std::size_t kind = 0;
  while (kind < layer_kinds(model) && layer_of(model, kind).heads == 0) ++kind;
  return of_kind(model, kind < layer_kinds(model) ? kind : 0);
}

std::vector<Transformer> of_each_kind(const Transformer& model) {
  std::vector<Transformer> all;
  for (std::size_t kind = 0; kind < layer_kinds(model); ++kind) all.push_back(of_kind(model, kind));
  return all;
}

void add_last(std::vector<LayerRun>& runs, const LayerRun& run) {
  const auto known = std::find_if(runs.begin(), runs.end(), [&](const LayerRun& r) { return r.kind == run.kind; });
  if (known == runs.end()) return runs.push_back(run);
  known->count += run.count;
  std::rotate(known, known + 1, runs.end());
}

std::vector<LayerRun> layer_runs(const Transformer& model, std::int64_t first, std::int64_t count) {
  if (count == 0) return {};
  if (model.pattern.empty()) return {{count, 0}};
  std::vector<LayerRun> runs;
  std::int64_t begin = 0;
  for (const LayerRun& run : model.pattern) {
    const std::int64_t within = std::min(begin + run.count, first + count) - std::max(begin, first);
    if (within > 0) add_last(runs, {within, run.kind});
    begin += run.count;
  }
  return runs;
}

std::vector<LayerRun> layer_runs(const Transformer& model) {
  return layer_runs(model, 0, model.layers);
}

std::int64_t layer_count(const std::vector<LayerRun>& runs) {
  return std::accumulate(runs.begin(), runs.end(), std::int64_t{0},
                         [](std::int64_t sum, const LayerRun& run) { return sum + run.count; });
}

void set_layers(Transformer& model, const std::vector<Layer>& layers) {
  HDPSIM_CHECK(!layers.empty(), "a model {} without layers", model.name);
  const auto rank = [](const Layer& layer) { return (has_experts(layer) ? 2 : 0) + (sees_all(layer) ? 1 : 0); };
  const auto own =
      std::max_element(layers.begin(), layers.end(), [&](const Layer& a, const Layer& b) { return rank(a) < rank(b); });
  static_cast<Layer&>(model) = *own;
  model.layers = std::ssize(layers);
  model.others.clear();
  model.pattern.clear();
  for (const Layer& layer : layers) {
    const auto known = std::find(model.others.begin(), model.others.end(), layer);
    const bool is_own = layer == *own;
    const auto kind = is_own ? 0 : static_cast<std::size_t>(known - model.others.begin()) + 1;
    if (!is_own && known == model.others.end()) model.others.push_back(layer);
    if (model.pattern.empty() || model.pattern.back().kind != kind) model.pattern.push_back({0, kind});
    ++model.pattern.back().count;
  }
  if (model.others.empty()) model.pattern.clear();
}

void bound_choices(Transformer& model, std::int64_t tokens) {
  const auto bound = [&](Layer& layer) {
    if (layer.indexer) layer.indexer->keys = std::min(layer.indexer->keys, tokens);
  };
  bound(model);
  for (Layer& layer : model.others) bound(layer);
}

std::vector<CutPart> cut_parts(const Transformer& model, bool cuts_experts) {
  std::vector<CutPart> parts;
  for (std::size_t kind = 0; kind < layer_kinds(model); ++kind) {
    const Layer& layer = layer_of(model, kind);
    if (layer.heads > 0) {
      parts.push_back({"heads", layer.heads});
      parts.push_back({"key-value heads", layer.kv_heads});
    }
    if (layer.linear) parts.push_back({"heads of its linear layers", layer.linear->heads});
    if (!layer.moe) {
      parts.push_back({"columns of its MLP", layer.ffn_hidden});
      continue;
    }
    if (cuts_experts) parts.push_back({"columns of its experts", layer.moe->expert_hidden});
    parts.push_back({"columns of its shared experts", layer.moe->shared_hidden});
  }
  return parts;
}

// A model cannot be taken apart with its base, so that its own members are listed by name.
std::string shape_text(const Transformer& model) {
  const auto all = std::tie(model.layers, model.hidden, model.vocabulary, model.tied_embeddings, model.predictions,
                            model.learned_positions);
  std::string text = fmt::format("{} {}", texts_of(all), text_of(static_cast<const Layer&>(model)));
  for (const Layer& layer : model.others) text += "; " + text_of(layer);
  for (const LayerRun& run : model.pattern) append(text, " {}x{}", run.count, run.kind);
  return text;
}

std::int64_t expert_layers(const Transformer& model, const std::vector<LayerRun>& runs) {
  std::int64_t count = 0;
  for (const LayerRun& run : runs) count += has_experts(layer_of(model, run.kind)) ? run.count : 0;
  return count;
}

}  // namespace hdpsim
