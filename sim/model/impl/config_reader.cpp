#include "sim/model/impl/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

using namespace model_ranges;

class ConfigReader {
 public:
  ConfigReader(MapReader& map, const Architecture& architecture) : config_(map), map_(map), family_(architecture) {}

  Transformer read() {
    read_widths();
    read_traits();
    read_latent();
    read_family();
    check_widths();
    if (model_.layers > 0) read_layers();
    check_parameters();
    return std::move(model_);
  }

 private:
  void read_widths() {
    const WidthKeys& keys = family_.widths;
    model_.hidden = config_.number(keys.hidden, hidden);
    model_.layers = layer_count();
    model_.heads = config_.number(keys.heads, heads);
    model_.kv_heads = config_.number_or(keys.kv_heads.name, heads,
                                        keys.kv_heads.fallback > 0 ? keys.kv_heads.fallback : model_.heads);
    model_.vocabulary = config_.number(keys.vocabulary, vocabulary);
    model_.tied_embeddings = map_.optional<bool>("tie_word_embeddings", family_.tied);
    model_.ffn_hidden = ffn_hidden();
    model_.query_latent = config_.number_or(keys.query_latent, width, 0);
    model_.value_dim = config_.number_or(keys.value_dim, heads, 0);
    read_head_dim();
  }

  // A list of all layers tells their number where no key does.
  std::int64_t layer_count() {
    const Key& key = family_.widths.layers;
    const std::int64_t listed = std::ssize(config_.list(layer_words));
    const bool is_told = map_.find(key.name) == nullptr && listed > 0;
    if (is_told && static_cast<double>(listed) <= layers.most) return listed;
    return family_.parts * config_.number(key, {1, layers.most / static_cast<double>(family_.parts)});
  }

  // Where experts have a width of their own, that of an MLP may be missing: need_mlp().
  std::int64_t ffn_hidden() {
    const WidthKeys& keys = family_.widths;
    const bool has_own = family_.experts != nullptr && !family_.experts->hidden.empty();
    if (has_own && map_.find(keys.ffn.name) == nullptr) return 0;
    if (!keys.ffn_ratio_key.empty()) {
      return model_.hidden * config_.number_or(keys.ffn_ratio_key, chosen, keys.ffn_ratio);
    }
    if (keys.ffn_ratio > 0) return config_.number_or(keys.ffn.name, width, keys.ffn_ratio * model_.hidden);
    const std::int64_t columns = config_.number(keys.ffn, width);
    if (columns % keys.ffn_matrices != 0) {
      config_.error_at(keys.ffn.name,
                       fmt::format("'{}' is {}: columns of {} matrices", keys.ffn.name, columns, keys.ffn_matrices));
    }
    return keys.ffn_block > 0 ? in_blocks(columns) : columns / keys.ffn_matrices;
  }

  void read_traits() {
    model_.gated_mlp = family_.gated_mlp;
    model_.biases = config_.truth(family_.biases);
    model_.qkv_biases = config_.truth(family_.qkv_biases);
    model_.output_bias = family_.output_bias && model_.qkv_biases;
    model_.qk_norm = config_.truth(family_.qk_norm);
    model_.gated_output = config_.truth(family_.gated_output);
    model_.sinks = config_.truth(family_.sinks);
    model_.norms = family_.norms;
  }

  // A family of its own way of saying a thing that no other family says.
  void read_family() {
    if (family_.name == "MPTForCausalLM") return read_mpt();
    if (family_.name == "FalconForCausalLM") return read_falcon();
    if (family_.name == "ChatGLMModel" && !map_.optional<bool>("multi_query_attention", true)) {
      model_.kv_heads = model_.heads;
    }
    if (family_.name == "GPTBigCodeForCausalLM" && map_.optional<bool>("multi_query", true)) model_.kv_heads = 1;
    if (!family_.widths.positions.empty()) {
      model_.learned_positions = config_.number({family_.widths.positions}, positions);
    }
  }

  void read_mpt() {
    bool relative_positions = false;
    if (const Value* value = map_.find("attn_config")) {
      MapReader attention(*value, "'attn_config'", map_.diagnostics());
      const bool alibi = attention.optional<bool>("alibi", false);
      const bool rope = attention.optional<bool>("rope", false);
      relative_positions = alibi || rope;
      const Value* type = attention.find("attn_type");
      const std::int64_t usual = type != nullptr && type->text == "multiquery_attention" ? 1 : model_.kv_heads;
      model_.kv_heads = attention.optional_in<std::int64_t>("kv_n_heads", heads).value_or(usual);
    }
    const bool learned = map_.optional<bool>("learned_pos_emb", true);
    if (learned && !relative_positions) model_.learned_positions = config_.number({"max_seq_len"}, positions);
  }

  // Groups of key-value heads came with the larger models; the first one has a single one, and branches in parallel
  // that read one norm.
  void read_falcon() {
    const bool grouped = map_.optional<bool>("new_decoder_architecture", false);
    if (!grouped) model_.kv_heads = map_.optional<bool>("multi_query", true) ? 1 : model_.heads;
    if (!grouped && map_.optional<bool>("parallel_attn", true)) model_.norms = 1;
  }

  std::int64_t in_blocks(std::int64_t columns) {
    if (!map_.optional<bool>("block_auto_adjust_ff_dim", true)) return columns;
    const std::int64_t block = config_.number_or("block_multiple_of", width, family_.widths.ffn_block);
    const double factor = map_.optional_in<double>("block_ffn_dim_multiplier", {1e-3, 1e3}).value_or(1);
    const std::int64_t two_thirds = 2 * columns / 3;
    return divided(static_cast<std::int64_t>(factor * static_cast<double>(two_thirds)), block) * block;
  }

  std::int64_t latent_rank() { return config_.number_or("kv_lora_rank", width, 0); }

  void read_latent() {
    const std::int64_t rank = latent_rank();
    if (rank == 0) {
      if (map_.find("qk_nope_head_dim") == nullptr) return;
      config_.error_at("qk_nope_head_dim", "latent attention needs 'kv_lora_rank', which the file leaves out",
                       "state it: 512 in DeepSeek-V2 and V3");
      return;
    }
    const LatentAttention latent{.query_rank = config_.number_or("q_lora_rank", width, 0),
                                 .kv_rank = rank,
                                 .rotated = config_.number({"qk_rope_head_dim"}, heads)};
    model_.head_dim = latent.rotated + config_.number({"qk_nope_head_dim"}, heads);
    model_.value_dim = config_.number({"v_head_dim"}, heads);
    model_.kv_heads = model_.heads;
    model_.latent = latent;
  }

  void read_head_dim() {
    if (latent_rank() != 0) return;  // heads have widths of their own
    const WidthKeys& keys = family_.widths;
    const std::int64_t stated = head_dim_stated();
    if (model_.heads == 0 || model_.hidden == 0) return;
    if (stated == 0 && model_.hidden % model_.heads != 0) {
      config_.error_at(keys.heads.name,
                       fmt::format("{} heads do not divide the hidden size {}", model_.heads, model_.hidden),
                       "state 'head_dim' if the heads do not share the hidden size");
    }
    model_.head_dim = stated != 0 ? stated : model_.hidden / model_.heads;
    if (model_.kv_heads != 0 && model_.heads % model_.kv_heads != 0) {
      config_.error_at(keys.kv_heads.name,
                       fmt::format("{} key-value heads do not divide {} heads", model_.kv_heads, model_.heads),
                       "every key-value head serves equally many heads");
    }
  }

  std::int64_t head_dim_stated() {
    const Key& key = family_.widths.head_dim;
    if (map_.find(key.name) != nullptr) return config_.number_or(key.name, heads, 0);
    return config_.number_or("head_dim", heads, key.fallback);
  }

  // Checks what no key alone can exceed.
  void check_widths() {
    const WidthKeys& keys = family_.widths;
    check(keys.heads.name, "heads with a width", model_.heads * std::max(model_.head_dim, model_.value_dim));
    check(keys.hidden.name, "an MLP with an inner width", model_.ffn_hidden);
  }

  void check(std::string_view key, std::string_view what, std::int64_t wide) {
    if (static_cast<double>(wide) <= width.most) return;
    config_.error_at(key, fmt::format("{} of {}, at most {:g} can be simulated", what, wide, width.most));
  }

  void read_layers() {
    pattern_ = read_pattern(config_, family_.mixers, model_.layers);
    experts_ = has_expert_keys() ? read_experts(config_, *family_.experts, model_.layers, model_.ffn_hidden)
                                 : Experts{.layers = std::vector<bool>(static_cast<std::size_t>(model_.layers)),
                                           .dense_hidden = model_.ffn_hidden};
    read_mixing();
    if (!family_.window_heads.heads.empty()) window_heads_ = read_window_heads(config_, family_.window_heads, model_);
    if (family_.chooses_keys) read_choice_of_keys();
    check_experts();
    need_mlp();
    if (!map_.diagnostics().empty() || std::ssize(pattern_.mixers) != model_.layers + pattern_.module) return;
    std::vector<Layer> all;
    for (std::int64_t i = 0; i < model_.layers; ++i) all.push_back(layer(static_cast<std::size_t>(i)));
    predict(all);
    set_layers(model_, all);
    tell_left_out();
  }

  // Letters tell whether there are experts at all; there are none if they are wrong, which is reported.
  [[nodiscard]] bool has_expert_keys() const {
    if (family_.experts == nullptr || family_.mixers.letters.empty()) return family_.experts != nullptr;
    if (!pattern_.branches) return false;
    const std::vector<bool>& letters = pattern_.branches->experts;
    return std::find(letters.begin(), letters.end(), true) != letters.end();
  }

  void read_choice_of_keys() {
    indexers_ = read_indexers(config_, model_.layers);
    if (indexers_.empty()) return;
    if (!model_.latent) {
      config_.error_at("index_topk", "an indexer chooses among latents, which the file does not describe",
                       "state 'kv_lora_rank', or index_topk: 0");
      return indexers_.clear();
    }
    const KeyIndexer& first = indexers_.front();
    check("index_n_heads", "an indexer with heads of a width", first.heads * first.head_dim);
    check("kv_lora_rank", "heads that read latents with a width",
          model_.heads * (model_.latent->kv_rank + model_.latent->rotated));
  }

  // A token further on is predicted by a layer like the last one, unless the file says by which layers.
  void predict(std::vector<Layer>& all) {
    constexpr Range most{0, 100};
    const std::int64_t further =
        config_.number_or("num_nextn_predict_layers", most, config_.number_or("mtp_num_hidden_layers", most, 0));
    model_.predictions = 1 + further;
    std::vector<Layer> module;
    for (std::int64_t i = 0; i < pattern_.module; ++i) {
      module.push_back(layer(static_cast<std::size_t>(model_.layers + i)));
    }
    if (family_.lists_predicting) return predict_by_lists(further, all);
    if (module.empty()) module.push_back(all.back());
    module.front().joins = true;
    if (!indexers_.empty()) module.front().indexer = indexers_.front();  // of its own, as of the first layer
    for (std::int64_t i = 0; i < further; ++i) all.insert(all.end(), module.begin(), module.end());
  }

  // Layers of their own (Architecture::lists_predicting), each of which joins the next token's embedding.
  void predict_by_lists(std::int64_t further, std::vector<Layer>& all) {
    if (further == 0) return;
    if (experts_.dense_hidden == 0) config_.number(family_.widths.ffn, width);
    const std::vector<Mixer> listed = listed_mixers(config_, model_.layers, further);
    for (std::int64_t i = 0; i < further; ++i) {
      const Mixer mixer = i < std::ssize(listed) ? listed[static_cast<std::size_t>(i)] : family_.mixers.others;
      all.push_back(layer_of(mixer));
      all.back().ffn_hidden = experts_.dense_hidden;
      all.back().joins = true;
    }
  }

  void read_mixing() {
    const auto has = [&](Mixer mixer) {
      return std::find(pattern_.mixers.begin(), pattern_.mixers.end(), mixer) != pattern_.mixers.end();
    };
    if (has(Mixer::chunk)) chunk_ = config_.number({"attention_chunk_size"}, positions);
    if (!has(Mixer::linear)) return;
    linear_ = read_linear_mixing(config_, family_.linear, model_);
    check(family_.linear.heads, "linear layers with inputs", linear_.inputs);
    check(family_.linear.heads, "linear layers with keys", linear_.heads * linear_.key_dim);
  }

  void check_experts() {
    if (!experts_.moe && pattern_.branches && has_expert_keys()) {
      config_.error_at(family_.experts->experts, "layers have the letter E, and the model has no experts",
                       "state the number of experts, or other letters");
    }
    if (!experts_.moe) return;
    const ExpertKeys& keys = *family_.experts;
    const MixtureOfExperts& moe = *experts_.moe;
    check(keys.per_token, "experts of a token with an inner width", moe.experts_per_token * moe.expert_hidden);
    check(keys.per_token, "shared experts with an inner width", moe.shared_hidden);
    const std::vector<bool>& have = experts_.layers;
    if (!pattern_.branches && std::find(have.begin(), have.end(), true) == have.end()) {
      config_.error_at(family_.widths.layers.name, fmt::format("none of the {} layers has experts", model_.layers));
    }
  }

  void need_mlp() {
    if (!family_.mixers.letters.empty() && !pattern_.branches) return;
    const std::vector<bool>& with = pattern_.branches ? pattern_.branches->mlp : experts_.layers;
    const bool has_some = std::find(with.begin(), with.end(), pattern_.branches.has_value()) != with.end();
    if (has_some && experts_.dense_hidden == 0) config_.number(family_.widths.ffn, width);
  }

  Layer layer_of(Mixer mixer) {
    const bool has_own = mixer == Mixer::window && !family_.window_heads.heads.empty();
    Layer of = has_own ? window_heads_ : static_cast<const Layer&>(model_);
    if (mixer == Mixer::linear || mixer == Mixer::none) drop_attention(of);
    if (mixer == Mixer::linear) of.linear = linear_;
    if (mixer == Mixer::chunk) of.attention_chunk = chunk_;
    if (mixer == Mixer::window) of.window = pattern_.window;
    return of;
  }

  Layer layer(std::size_t i) {
    Layer of = layer_of(pattern_.mixers[i]);
    const auto& branches = pattern_.branches;
    if (!indexers_.empty()) of.indexer = indexers_[i];
    if (branches ? branches->experts[i] : experts_.layers[i]) of.moe = experts_.moe;
    if (family_.experts != nullptr && !of.moe) of.ffn_hidden = experts_.dense_hidden;
    if (branches && !branches->mlp[i]) of.ffn_hidden = 0;
    return of;
  }

  static void drop_attention(Layer& layer) {
    layer.heads = layer.kv_heads = layer.head_dim = layer.value_dim = layer.query_latent = 0;
    layer.qkv_biases = layer.output_bias = layer.qk_norm = layer.gated_output = layer.sinks = false;
    layer.latent.reset();
  }

  void check_parameters() {
    if (!map_.diagnostics().empty() || model_.layers == 0) return;
    auto parameters = static_cast<double>(embedding_parameter_count(model_));
    for (const LayerRun& run : layer_runs(model_)) {
      parameters +=
          static_cast<double>(run.count) * static_cast<double>(layer_parameter_count(of_kind(model_, run.kind)));
    }
    if (parameters <= most_parameters) return;
    config_.error_at(
        family_.widths.layers.name,
        fmt::format("a model of {:.3g} parameters, at most {:g} can be simulated", parameters, most_parameters));
  }

  void tell_left_out() {
    const Neglected& neglected = family_.neglected;
    if (config_.truth({.key = neglected.key})) {
      model_.left_out.push_back(
          fmt::format("{} ('{}'), less than a hundredth of attention's parameters", neglected.what, neglected.key));
    }
    if (!experts_.left_out.empty()) model_.left_out.push_back(experts_.left_out);
    if (family_.parts > 1) {
      model_.left_out.push_back(fmt::format(
          "that its layers are of {} parts, whose experts run beside the parts behind them: each part is a layer",
          family_.parts));
    }
    if (const std::int64_t modules = config_.whole("num_mtp_modules", layers); modules > 0) {
      model_.left_out.push_back(fmt::format(
          "that it was trained with {} modules that predict further tokens (num_mtp_modules): what they are made of is "
          "not published",
          modules));
    }
  }

  ConfigMap config_;
  MapReader& map_;
  const Architecture& family_;
  Transformer model_;
  Experts experts_;
  LayerPattern pattern_;
  std::int64_t chunk_ = 0;
  LinearMixing linear_;
  Layer window_heads_;  ///< The attention of layers with a window, in families whose have heads of their own.
  std::vector<KeyIndexer> indexers_;  ///< One a layer, or none.
};

}  // namespace

Transformer read_configuration(MapReader& map, const Architecture& architecture) {
  return ConfigReader(map, architecture).read();
}

}  // namespace hdpsim
