#include "kernels/exec/impl/activations.h"

#include <algorithm>
#include <vector>

namespace hdpsim::kernels::exec {
namespace {

constexpr std::int64_t alignment = 64;        // floats: 256 bytes, as allocations have it
constexpr std::int64_t layers_that_stay = 2;  // on the device under offload, as programs have it

std::int64_t aligned(std::int64_t floats) {
  return (floats + alignment - 1) / alignment * alignment;
}

std::size_t bytes_of(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

// Hands out consecutive stretches from `base`; without one it only counts.
class Carver {
 public:
  explicit Carver(float* base) : base_(base) {}
  float* operator()(std::int64_t count) {
    float* const begin = base_ == nullptr ? nullptr : base_ + used_;
    used_ += aligned(count);
    return begin;
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  float* base_;
  std::int64_t used_ = 0;
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

std::vector<Activations::Home> Activations::layer_tensors() const {
  const std::int64_t own = rows_.share * model_.hidden;
  const std::int64_t gathered = rows_.padded * model_.hidden;
  const std::int64_t query = rows_.all * model_.heads * model_.head_dim;
  const std::int64_t inner = rows_.all * model_.ffn_hidden;
  using Layer = LayerActivations;
  return {{.tensor = &Layer::input, .floats = own},
          {.tensor = &Layer::attention_inverse_rms, .floats = rows_.share},
          {.tensor = &Layer::attention_normed, .floats = gathered},
          {.tensor = &Layer::q, .floats = query},
          {.tensor = &Layer::kv, .floats = rows_.all * 2 * model_.kv_heads * model_.head_dim},
          {.tensor = &Layer::o, .floats = query, .is_core = true},
          {.tensor = &Layer::lse, .floats = rows_.all * model_.heads, .is_core = true},
          {.tensor = &Layer::middle, .floats = own},
          {.tensor = &Layer::mlp_inverse_rms, .floats = rows_.share},
          {.tensor = &Layer::mlp_normed, .floats = gathered},
          {.tensor = &Layer::gate_up, .floats = 2 * inner},
          {.tensor = &Layer::inner, .floats = inner}};
}

void Activations::choose_for_host(double share) {
  std::vector<Home*> kept;
  std::int64_t all = 0;
  for (Home& home : homes_) {
    if (!home.is_kept) continue;
    kept.push_back(&home);
    all += home.floats;
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Home* a, const Home* b) { return a->floats > b->floats; });
  double left = share * static_cast<double>(all);
  for (Home* const home : kept) {
    home->to_host = static_cast<double>(home->floats) <= left;
    if (home->to_host) left -= static_cast<double>(home->floats);
  }
}

void Activations::lay_out_layers(const Keeping& keeping) {
  homes_ = layer_tensors();
  for (Home& home : homes_) {
    const bool is_input = home.tensor == &LayerActivations::input;
    const bool again =
        keeping.recompute == Recompute::full ? !is_input : keeping.recompute == Recompute::selective && home.is_core;
    home.is_kept = !again;
    home.places = again ? 1 : chunk_.layers.count;
  }
  if (chunk_.layers.count > layers_that_stay) choose_for_host(keeping.offload);
  host_floats_ = 0;
  Carver kept(nullptr);
  Carver workspace(nullptr);
  for (Home& home : homes_) {
    if (home.to_host) {
      home.places = home.tensor == &LayerActivations::input ? layers_that_stay + 1 : layers_that_stay;
      home.host_begin = host_floats_;
      host_floats_ += home.floats;
    }
    Carver& carver = home.is_kept ? kept : workspace;
    home.begin = carver.used();
    for (std::int64_t place = 0; place < home.places; ++place) (void)carver(home.floats);
  }
  kept_by_layers_ = kept.used();
  workspace_of_layers_ = workspace.used();
}

// What forward leaves to backward is kept; only the head leaves anything.
SharedActivations Activations::lay_out_shared(const Take& kept, const Take& in_workspace) const {
  const std::int64_t own = rows_.share * model_.hidden;
  const std::int64_t gathered = rows_.padded * model_.hidden;
  const std::int64_t query = rows_.all * model_.heads * model_.head_dim;
  static_assert(sizeof(std::int32_t) == sizeof(float));
  const auto take_ids = [&] { return reinterpret_cast<std::int32_t*>(kept(rows_.all)); };
  const auto of_head = [&](std::int64_t count) { return chunk_.has_head ? kept(count) : nullptr; };
  return {.ids = take_ids(),
          .targets = take_ids(),
          .positions = take_ids(),
          .output = chunk_.has_head ? kept(own) : in_workspace(own),
          .final_inverse_rms = of_head(rows_.share),
          .final_normed = of_head(gathered),
          .logits = of_head(rows_.all * model_.vocabulary),
          .log_sum_exp = of_head(shard_.devices * rows_.all),
          .loss = of_head(rows_.all),
          .d_x = in_workspace(gathered),
          .d_normed = in_workspace(gathered),
          .d_inner = in_workspace(rows_.all * model_.ffn_hidden),
          .d_o = in_workspace(query),
          .d_q = in_workspace(query),
          .d_kv = in_workspace(rows_.all * 2 * model_.kv_heads * model_.head_dim)};
}

SharedActivations Activations::shared() const {
  Carver kept(memory_.data() + kept_by_layers_);
  Carver in_workspace(workspace_.data() + workspace_of_layers_);
  return lay_out_shared(std::ref(kept), std::ref(in_workspace));
}

void Activations::begin(const Share& share, const ModelChunk& chunk, const Keeping& keeping) {
  rows_ = rows_on(shard_, share.rows());
  chunk_ = chunk;
  lay_out_layers(keeping);
  Carver kept(nullptr);
  Carver in_workspace(nullptr);
  (void)lay_out_shared(std::ref(kept), std::ref(in_workspace));
  memory_.reserve(kept_by_layers_ + kept.used());
  workspace_.reserve(workspace_of_layers_ + in_workspace.used());
  reserve_host();
  upload_tokens(share);
}

void GrowingMemory::reserve(std::int64_t floats) {
  if (floats <= capacity_) return;
  backend_.synchronize();
  memory_.reset();
  memory_ = backend_.allocate(bytes_of(floats));
  capacity_ = floats;
}

void Activations::reserve_host() {
  if (host_bytes() <= host_capacity_) return;
  host_.reset();
  host_ = std::make_unique<float[]>(host_bytes() / sizeof(float));
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
  backend_.upload(places.ids, ids.data(), bytes);
  backend_.upload(places.targets, targets.data(), bytes);
  backend_.upload(places.positions, share.positions.data(), bytes);
}

LayerActivations Activations::layer(std::int64_t index) const {
  LayerActivations layer;
  for (const Home& home : homes_) layer.*home.tensor = device_place(home, index);
  return layer;
}

float* Activations::device_place(const Home& home, std::int64_t index) const {
  float* const base = home.is_kept ? memory_.data() : workspace_.data();
  return base + home.begin + (index - chunk_.layers.first) % home.places * aligned(home.floats);
}

float* Activations::host_place(const Home& home, std::int64_t index) const {
  return host_.get() + (index - chunk_.layers.first) * host_floats_ + home.host_begin;
}

std::vector<CopyThread::Copy> Activations::copies(std::int64_t index, bool to_host) const {
  std::vector<CopyThread::Copy> copies;
  for (const Home& home : homes_) {
    if (!home.to_host) continue;
    float* const device = device_place(home, index);
    float* const host = host_place(home, index);
    copies.push_back({to_host ? host : device, to_host ? device : host, bytes_of(home.floats)});
  }
  return copies;
}

std::size_t Activations::layer_bytes() const {
  std::int64_t floats = 0;
  for (const Home& home : homes_) floats += home.places * aligned(home.floats);
  return bytes_of(floats);
}

std::size_t Activations::host_bytes() const {
  return bytes_of(std::max<std::int64_t>(0, chunk_.layers.count - layers_that_stay) * host_floats_);
}

}  // namespace hdpsim::kernels::exec
