#include "kernels/exec/impl/activations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/ring/shared_mixing.h"
#include "sim/model/kept_tensors.h"
#include "sim/model/shares.h"

namespace hdpsim::kernels::exec {
namespace {

constexpr std::size_t alignment = 256;        // bytes, as for allocations
constexpr std::int64_t layers_that_stay = 2;  // under offload, as in programs

std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Bytes of `count` fp32 numbers.
std::size_t fp32(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

// Hands out consecutive pieces from `base`; only counts bytes if it is null.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  std::byte* operator()(std::size_t bytes) {
    std::byte* const begin = base_ == nullptr ? nullptr : base_ + used_;
    used_ += aligned(bytes);
    return begin;
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace

Rows rows_on(const TensorShard& shard, std::int64_t all) {
  Rows rows{.all = all};
  rows.share = (all + shard.devices - 1) / shard.devices;
  rows.padded = rows.share * shard.devices;
  rows.begin = std::min(all, rows.share * shard.index);
  rows.own = std::min(rows.share, all - rows.begin);
  return rows;
}

std::int64_t Activations::columns(const Transformer& kind, Names names) {
  std::int64_t bytes = 0;
  for (const KeptTensor& tensor : kept_tensors(kind, {})) {
    if (std::find(names.begin(), names.end(), tensor.name) != names.end()) bytes += tensor.bytes_per_token;
  }
  return bytes / kind.element_bytes;
}

std::vector<Activations::Home> Activations::layer_tensors(const Transformer& kind) const {
  using Layer = LayerActivations;
  std::vector<Home> homes;
  const auto add = [&](Tensor tensor, std::int64_t rows, Names names) {
    const std::int64_t width = columns(kind, names);
    if (width > 0) homes.push_back({.tensor = tensor, .bytes = elements(rows * width), .kept = *names.begin()});
  };
  const auto add_statistics = [&](Tensor tensor, std::int64_t count, std::string_view name) {
    homes.push_back({.tensor = tensor, .bytes = fp32(count), .kept = name});
  };
  add(&Layer::input, rows_.share, {"input of the layer"});
  add_statistics(&Layer::attention_inverse_rms, rows_.share, "input of the QKV product");
  add(&Layer::attention_normed, rows_.padded, {"input of the QKV product"});
  add(&Layer::q, rows_.all, {"queries"});
  add(&Layer::kv, rows_.all, {"keys", "values"});
  add(&Layer::o, rows_.all, {"output of attention"});
  add_statistics(&Layer::lse, attended_rows_ * kind.heads / traders_, "log-sum-exp");
  add(&Layer::middle, rows_.share, {"input of the MLP's norm"});
  add_statistics(&Layer::mlp_inverse_rms, rows_.share, "input of the MLP");
  add(&Layer::mlp_normed, rows_.padded, {"input of the MLP"});
  if (kind.moe) {
    add(&Layer::gate_up, rows_.all, {"input of the shared experts' activation"});
    add(&Layer::inner, rows_.all, {"output of the shared experts' activation"});
  } else {
    add(&Layer::gate_up, rows_.all, {"input of the activation"});
    add(&Layer::inner, rows_.all, {"output of the activation"});
  }
  if (kind.latent) add_latents(kind, homes);
  if (kind.linear) add_mixing(kind, homes);
  if (kind.moe) add_experts(kind, homes);
  return homes;
}

void Activations::add_latents(const Transformer& kind, std::vector<Home>& homes) const {
  using Layer = LayerActivations;
  const auto add = [&](Tensor tensor, std::size_t bytes) {
    homes.push_back({.tensor = tensor, .bytes = bytes, .kept = "latents of queries, keys and values"});
  };
  const std::size_t of_queries = elements(rows_.all * kind.latent->query_rank);
  const std::size_t of_keys = elements(rows_.all * kind.latent->kv_rank);
  if (of_queries > 0) {
    add(&Layer::latent_q, of_queries);
    add(&Layer::latent_q_normed, of_queries);
    add(&Layer::latent_q_inverse_rms, fp32(rows_.all));
  }
  add(&Layer::latent_kv, of_keys);
  add(&Layer::latent_kv_normed, of_keys);
  add(&Layer::latent_kv_inverse_rms, fp32(rows_.all));
}

// The norm and the gate are computed with the projection.
void Activations::add_mixing(const Transformer& kind, std::vector<Home>& homes) const {
  using Layer = LayerActivations;
  using enum LayerModule;
  const LinearMixing& linear = *kind.linear;
  const std::size_t width = elements(rows_.all * hdpsim::output_width(kind));
  const auto add = [&](Tensor tensor, std::size_t bytes, LayerModule again) {
    homes.push_back({.tensor = tensor, .bytes = bytes, .again = {again}});
  };
  add(&Layer::mixing_inputs, 3 * width, qkv);
  add(&Layer::mixing_qkv, 3 * width, qkv);
  add(&Layer::mixing_gate, width, qkv);
  add(&Layer::mixing_output, width, attention);
  add(&Layer::chunk_states, fp32(linear.heads * mixing_chunks_ * linear.key_dim * linear.value_dim), attention);
  add(&Layer::mixing_normed, width, projection);
  add(&Layer::mixing_inverse_rms, fp32(rows_.all), projection);
}

void Activations::add_experts(const Transformer& kind, std::vector<Home>& homes) const {
  using Layer = LayerActivations;
  constexpr std::string_view copies = "copies for the experts";
  const auto add = [&](Tensor tensor, std::string_view name) {
    homes.push_back({.tensor = tensor, .bytes = elements(rows_.all * columns(kind, {name})), .kept = name});
  };
  const auto add_numbers = [&](Tensor tensor, std::int64_t count) {
    homes.push_back({.tensor = tensor, .bytes = fp32(count), .kept = copies});
  };
  for (const Tensor tensor :
       {Tensor(&Layer::expert_ids), Tensor(&Layer::expert_rows), Tensor(&Layer::expert_weights)}) {
    add_numbers(tensor, rows_.all * kind.moe->experts_per_token);
  }
  add_numbers(&Layer::expert_begins, kind.moe->experts + 1);
  add(&Layer::copies, copies);
  add(&Layer::expert_gate_up, "input of the experts' activation");
  add(&Layer::expert_inner, "output of the experts' activation");
  add(&Layer::expert_outputs, copies);
}

// They are traded with attention, whether or not what they are made of is computed again.
std::vector<Activations::Home> Activations::traded_tensors(const Transformer& kind) const {
  const AttentionHeads heads = heads_of(kind);
  const auto part = [&](std::int64_t width) { return elements(attended_rows_ * width / traders_); };
  using Layer = LayerActivations;
  using enum LayerModule;
  return {{.tensor = &Layer::traded_q, .bytes = part(query_width(heads)), .again = {attention}},
          {.tensor = &Layer::traded_kv, .bytes = part(kv_width(heads)), .again = {attention}},
          {.tensor = &Layer::traded_o, .bytes = part(output_width(heads)), .again = {attention}}};
}

std::vector<Activations::Home> Activations::left_gradients(const Transformer& kind) const {
  const std::size_t gathered = elements(rows_.padded * model_.hidden);
  using Layer = LayerActivations;
  const AttentionHeads heads = heads_of(kind);
  return {{.tensor = &Layer::d_q, .bytes = elements(rows_.all * query_width(heads))},
          {.tensor = &Layer::d_kv, .bytes = elements(rows_.all * kv_width(heads))},
          {.tensor = &Layer::d_middle, .bytes = gathered},
          {.tensor = &Layer::d_output, .bytes = gathered}};
}

// The largest kept tensors, as many as fit into the share of all.
void Activations::choose_for_host(std::vector<Home>& homes, double share) {
  std::vector<Home*> kept;
  std::size_t all = 0;
  for (Home& home : homes) {
    if (!home.is_kept) continue;
    kept.push_back(&home);
    all += home.bytes;
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Home* a, const Home* b) { return a->bytes > b->bytes; });
  double left = share * static_cast<double>(all);
  for (Home* const home : kept) {
    home->to_host = static_cast<double>(home->bytes) <= left;
    if (home->to_host) left -= static_cast<double>(home->bytes);
  }
}

std::vector<Activations::Home> Activations::homes_of(const Transformer& kind, const Keeping& keeping) const {
  std::vector<Home> homes = layer_tensors(kind);
  // Nobody reads what has been traded, unless it is traded again.
  const bool trades_once = traders_ > 1 && !keeping.recompute.has(LayerModule::attention);
  const auto is_traded = [](const Home& home) { return home.kept == "queries" || home.kept == "keys"; };
  if (traders_ > 1) {
    const std::vector<Home> traded = traded_tensors(kind);
    homes.insert(homes.end(), traded.begin(), traded.end());
  }
  const std::vector<KeptTensor> kept = kept_tensors(kind, {.recompute = keeping.recompute});
  for (Home& home : homes) {
    const bool is_dropped = home.kept.empty() ? keeping.recompute.intersects(home.again)
                                              : std::none_of(kept.begin(), kept.end(), [&](const KeptTensor& tensor) {
                                                  return tensor.name == home.kept;
                                                });
    home.is_kept = splits_backward_ || !(is_dropped || (trades_once && is_traded(home)));
  }
  if (chunk_.layers.count > layers_that_stay) choose_for_host(homes, keeping.offload);
  if (splits_backward_) {
    const std::vector<Home> gradients = left_gradients(kind);
    homes.insert(homes.end(), gradients.begin(), gradients.end());
  }
  return homes;
}

void Activations::count_layers() {
  of_kinds_.assign(kinds_.count(), {});
  places_.clear();
  for (std::int64_t i = 0; i < chunk_.layers.count; ++i) {
    const std::size_t kind = kinds_.kind_of(chunk_.layers.first + i);
    places_.push_back({kind, of_kinds_[kind].layers++});
  }
}

void Activations::lay_out_layers(const Keeping& keeping) {
  count_layers();
  host_layer_bytes_ = 0;
  Carver kept(nullptr);
  Carver workspace(nullptr);
  for (std::size_t kind = 0; kind < of_kinds_.size(); ++kind) {
    OfKind& of_kind = of_kinds_[kind];
    if (of_kind.layers == 0) continue;
    of_kind.homes = homes_of(kinds_.kind(kind), keeping);
    for (Home& home : of_kind.homes) {
      home.places = home.is_kept ? of_kind.layers : 1;
      if (home.to_host) {
        const bool is_input = home.tensor == Tensor(&LayerActivations::input);
        if (!splits_backward_) home.places = is_input ? layers_that_stay + 1 : layers_that_stay;
        home.host_begin = host_layer_bytes_;
        host_layer_bytes_ += home.bytes;
      }
      Carver& carver = home.is_kept ? kept : workspace;
      home.begin = carver.used();
      for (std::int64_t place = 0; place < home.places; ++place) (void)carver(home.bytes);
    }
  }
  kept_by_layers_ = kept.used();
  workspace_of_layers_ = workspace.used();
}

// What one pass leaves to another is kept: forward what the head needs, the first part of backward the last gradient.
SharedActivations Activations::lay_out_shared(const Take& kept, const Take& in_workspace) const {
  const bool is_fp32 = backend_.element() == Element::fp32;
  const auto floats = [](std::byte* memory) { return reinterpret_cast<float*>(memory); };
  const auto take_ids = [&] { return reinterpret_cast<std::int32_t*>(kept(fp32(rows_.all))); };
  const auto of_head = [&](std::size_t bytes) { return chunk_.has_head ? kept(bytes) : nullptr; };
  const std::int64_t own = rows_.share * model_.hidden;
  const std::int64_t gathered = rows_.padded * model_.hidden;
  const auto widest_kept = [&](Names names) {
    return widest([&](const Transformer& kind) { return columns(kind, names); });
  };
  const std::int64_t query = widest_kept({"queries"});
  const std::int64_t key_value = widest_kept({"keys", "values"});
  const std::int64_t output = widest_kept({"output of attention"});
  const std::int64_t inner = widest_kept({"output of the activation", "output of the shared experts' activation"});
  SharedActivations shared{
      .ids = take_ids(),
      .targets = take_ids(),
      .positions = take_ids(),
      .output = chunk_.has_head ? kept(elements(own)) : in_workspace(elements(own)),
      .final_inverse_rms = floats(of_head(fp32(rows_.share))),
      .final_normed = of_head(elements(gathered)),
      .logits = of_head(elements(rows_.all * model_.vocabulary)),
      .log_sum_exp = floats(of_head(fp32(shard_.devices * rows_.all))),
      .loss = floats(of_head(fp32(rows_.all))),
      .d_embedded = splits_backward_ && chunk_.layers.first == 0 ? kept(elements(gathered)) : nullptr,
      .d_x = in_workspace(elements(gathered)),
      .d_normed = in_workspace(elements(gathered)),
      .d_inner = in_workspace(elements(inner)),
      .d_o = in_workspace(elements(output)),
      .d_q = floats(in_workspace(fp32(query))),
      .d_kv = floats(in_workspace(fp32(key_value)))};
  shared.d_q_rounded = is_fp32 ? shared.d_q : static_cast<void*>(in_workspace(elements(query)));
  shared.d_kv_rounded = is_fp32 ? shared.d_kv : static_cast<void*>(in_workspace(elements(key_value)));
  lay_out_latents(in_workspace, shared);
  lay_out_mixing(in_workspace, shared);
  lay_out_experts(in_workspace, shared);
  if (is_fp32 || shard_.devices == 1) return shared;
  shared.parts = in_workspace(elements(gathered));
  shared.sum = floats(in_workspace(fp32(2 * own)));
  return shared;
}

void Activations::lay_out_latents(const Take& in_workspace, SharedActivations& shared) const {
  const auto of = [](auto width) {
    return [width](const Transformer& kind) { return kind.latent ? width(kind, *kind.latent) : std::int64_t{0}; };
  };
  using Kind = const Transformer&;
  using Latent = const LatentAttention&;
  const std::int64_t expanded = widest(of([](Kind kind, Latent latent) {
    return kind.heads * std::max(kind.head_dim - latent.rotated, heads_of(kind).value_width());
  }));
  if (expanded == 0) return;
  shared.expanded = in_workspace(elements(expanded));
  shared.rotated = in_workspace(elements(widest(of([](Kind, Latent latent) { return latent.rotated; }))));
  shared.d_latent = in_workspace(
      elements(widest(of([](Kind, Latent latent) { return std::max(latent.query_rank, latent.kv_rank); }))));
}

void Activations::lay_out_mixing(const Take& in_workspace, SharedActivations& shared) const {
  const std::int64_t width =
      widest([](const Transformer& kind) { return kind.linear ? hdpsim::output_width(kind) : std::int64_t{0}; });
  if (width == 0) return;
  shared.d_mixing = reinterpret_cast<float*>(in_workspace(fp32(3 * width)));
  shared.d_mixing_gate = in_workspace(elements(width));
}

void Activations::lay_out_experts(const Take& in_workspace, SharedActivations& shared) const {
  const auto of = [](auto width) {
    return [width](const Transformer& kind) { return kind.moe ? width(*kind.moe) : std::int64_t{0}; };
  };
  using Moe = const MixtureOfExperts&;
  const std::int64_t copies = widest(of([](Moe moe) { return moe.experts_per_token; }));
  if (copies == 0) return;
  shared.scores = in_workspace(elements(widest(of([](Moe moe) { return moe.experts; }))));
  shared.d_copies = in_workspace(elements(copies * model_.hidden));
  shared.d_expert_inner =
      in_workspace(elements(widest(of([](Moe moe) { return moe.experts_per_token * moe.expert_hidden; }))));
  shared.d_expert_weights = reinterpret_cast<float*>(in_workspace(fp32(copies)));
}

SharedActivations Activations::shared() const {
  Carver kept(memory_.data() + kept_by_layers_);
  Carver in_workspace(workspace_.data() + workspace_of_layers_);
  return lay_out_shared(std::ref(kept), std::ref(in_workspace));
}

void Activations::begin(const Share& share, const ModelChunk& chunk, const Keeping& keeping) {
  rows_ = rows_on(shard_, share.rows());
  attended_rows_ = share.attended_rows();
  mixing_chunks_ = mixing_chunks(share.cut, share.place) + mixing_chunks(share.local, 0);
  traders_ = share.sharing.inner;
  chunk_ = chunk;
  splits_backward_ = keeping.splits_backward;
  lay_out_layers(keeping);
  Carver kept(nullptr);
  Carver in_workspace(nullptr);
  (void)lay_out_shared(std::ref(kept), std::ref(in_workspace));
  memory_.reserve(kept_by_layers_ + kept.used());
  workspace_.reserve(workspace_of_layers_ + in_workspace.used());
  reserve_host();
  upload_tokens(share);
}

void GrowingMemory::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  backend_.synchronize();
  memory_.reset();
  memory_ = backend_.allocate(bytes);
  capacity_ = bytes;
}

void Activations::reserve_host() {
  if (host_bytes() <= host_capacity_) return;
  backend_.synchronize();
  host_.reset();
  host_ = copies_.allocate(host_bytes());
  host_capacity_ = host_bytes();
}

void Activations::upload_tokens(const Share& share) {
  const auto here = [&](std::int32_t id, std::int64_t elsewhere) {
    const std::int64_t place = id - first_of_vocabulary_;
    const bool is_here = id >= 0 && place >= 0 && place < model_.vocabulary;
    return static_cast<std::int32_t>(is_here ? place : elsewhere);
  };
  std::vector<std::int32_t> ids = share.ids;
  std::vector<std::int32_t> targets = share.targets;
  if (shard_.devices > 1) {
    for (std::int32_t& id : ids) id = here(id, -1);
    for (std::int32_t& target : targets) target = here(target, target < 0 ? -1 : model_.vocabulary);
  }
  const std::size_t bytes = ids.size() * sizeof(std::int32_t);
  const SharedActivations places = shared();
  backend_.upload_queued(places.ids, ids.data(), bytes);
  backend_.upload_queued(places.targets, targets.data(), bytes);
  backend_.upload_queued(places.positions, share.positions.data(), bytes);
}

LayerActivations Activations::layer(std::int64_t index) const {
  LayerActivations layer;
  for (const Home& home : of_kinds_[place_of(index).kind].homes) {
    std::byte* const place = device_place(home, index);
    if (const auto* const tensor = std::get_if<OfElements>(&home.tensor)) layer.*(*tensor) = place;
    if (const auto* const tensor = std::get_if<OfStatistics>(&home.tensor)) {
      layer.*(*tensor) = reinterpret_cast<float*>(place);
    }
    if (const auto* const tensor = std::get_if<OfIndices>(&home.tensor)) {
      layer.*(*tensor) = reinterpret_cast<std::int32_t*>(place);
    }
  }
  return layer;
}

std::byte* Activations::device_place(const Home& home, std::int64_t index) const {
  std::byte* const base = home.is_kept ? memory_.data() : workspace_.data();
  const auto place = static_cast<std::size_t>(place_of(index).number % home.places);
  return base + home.begin + place * aligned(home.bytes);
}

std::byte* Activations::host_place(const Home& home, std::int64_t index) const {
  const auto layer = static_cast<std::size_t>(index - chunk_.layers.first);
  return static_cast<std::byte*>(host_.get()) + layer * host_layer_bytes_ + home.host_begin;
}

std::vector<HostCopies::Copy> Activations::copies(std::int64_t index, HostCopies::Way way) const {
  std::vector<HostCopies::Copy> copies;
  for (const Home& home : of_kinds_[place_of(index).kind].homes) {
    if (!home.to_host) continue;
    std::byte* const device = device_place(home, index);
    std::byte* const host = host_place(home, index);
    const bool out = way == HostCopies::Way::to_host;
    copies.push_back({out ? host : device, out ? device : host, home.bytes});
  }
  return copies;
}

std::size_t Activations::layer_bytes() const {
  std::size_t bytes = 0;
  for (const OfKind& kind : of_kinds_) {
    for (const Home& home : kind.homes) bytes += static_cast<std::size_t>(home.places) * aligned(home.bytes);
  }
  return bytes;
}

std::size_t Activations::host_bytes() const {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, chunk_.layers.count - layers_that_stay)) *
         host_layer_bytes_;
}

}  // namespace hdpsim::kernels::exec
