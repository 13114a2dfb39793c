#include "kernels/exec/impl/activations.h"

#include <algorithm>
#include <vector>

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

std::vector<Activations::Home> Activations::layer_tensors() const {
  const std::size_t own = elements(rows_.share * model_.hidden);
  const std::size_t gathered = elements(rows_.padded * model_.hidden);
  const std::size_t query = elements(rows_.all * model_.heads * model_.head_dim);
  const std::size_t inner = elements(rows_.all * model_.ffn_hidden);
  using Layer = LayerActivations;
  using enum LayerModule;
  return {{.tensor = &Layer::input, .bytes = own},
          {.tensor = &Layer::attention_inverse_rms, .bytes = fp32(rows_.share), .again = {norm}},
          {.tensor = &Layer::attention_normed, .bytes = gathered, .again = {norm}},
          {.tensor = &Layer::q, .bytes = query, .again = {qkv}},
          {.tensor = &Layer::kv, .bytes = elements(rows_.all * 2 * model_.kv_heads * model_.head_dim), .again = {qkv}},
          {.tensor = &Layer::o, .bytes = query, .again = {attention}},
          {.tensor = &Layer::lse, .bytes = fp32(attended_rows_ * model_.heads / traders_), .again = {attention}},
          {.tensor = &Layer::middle, .bytes = own, .again = {projection}},
          {.tensor = &Layer::mlp_inverse_rms, .bytes = fp32(rows_.share), .again = {norm}},
          {.tensor = &Layer::mlp_normed, .bytes = gathered, .again = {norm}},
          {.tensor = &Layer::gate_up, .bytes = 2 * inner, .again = {mlp}},
          {.tensor = &Layer::inner, .bytes = inner, .again = {mlp, activation}}};
}

// They are traded with attention, whether or not what they are made of is computed again.
std::vector<Activations::Home> Activations::traded_tensors() const {
  const std::size_t query = elements(attended_rows_ * model_.heads / traders_ * model_.head_dim);
  const std::size_t key_value = elements(attended_rows_ * 2 * model_.kv_heads / traders_ * model_.head_dim);
  using Layer = LayerActivations;
  using enum LayerModule;
  return {{.tensor = &Layer::traded_q, .bytes = query, .again = {attention}},
          {.tensor = &Layer::traded_kv, .bytes = key_value, .again = {attention}},
          {.tensor = &Layer::traded_o, .bytes = query, .again = {attention}}};
}

std::vector<Activations::Home> Activations::left_gradients() const {
  const std::size_t gathered = elements(rows_.padded * model_.hidden);
  using Layer = LayerActivations;
  return {{.tensor = &Layer::d_q, .bytes = elements(rows_.all * model_.heads * model_.head_dim)},
          {.tensor = &Layer::d_kv, .bytes = elements(rows_.all * 2 * model_.kv_heads * model_.head_dim)},
          {.tensor = &Layer::d_middle, .bytes = gathered},
          {.tensor = &Layer::d_output, .bytes = gathered}};
}

void Activations::choose_for_host(double share) {
  std::vector<Home*> kept;
  std::size_t all = 0;
  for (Home& home : homes_) {
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

void Activations::lay_out_layers(const Keeping& keeping) {
  homes_ = layer_tensors();
  // Nobody reads what has been traded, unless it is traded again.
  const bool trades_once = traders_ > 1 && !keeping.recompute.has(LayerModule::attention);
  const auto is_traded = [](const Home& home) {
    return home.tensor == Tensor(&LayerActivations::q) || home.tensor == Tensor(&LayerActivations::kv);
  };
  if (traders_ > 1) {
    for (Home& traded : traded_tensors()) homes_.push_back(std::move(traded));
  }
  // The projection reads attention's output for the gradient of its weight, as in Megatron-LM.
  const bool drops_output =
      keeping.recompute.has(LayerModule::attention) && keeping.recompute.has(LayerModule::projection);
  const auto is_dropped = [&](const Home& home) {
    return home.tensor == Tensor(&LayerActivations::o) ? drops_output : keeping.recompute.intersects(home.again);
  };
  for (Home& home : homes_) {
    const bool not_kept = is_dropped(home) || (trades_once && is_traded(home));
    const bool again = not_kept && !splits_backward_;
    home.is_kept = !again;
    home.places = again ? 1 : chunk_.layers.count;
  }
  if (chunk_.layers.count > layers_that_stay) choose_for_host(keeping.offload);
  if (splits_backward_) {
    for (Home& gradient : left_gradients()) homes_.push_back(std::move(gradient));
    for (Home& home : homes_) home.places = chunk_.layers.count;
  }
  host_layer_bytes_ = 0;
  Carver kept(nullptr);
  Carver workspace(nullptr);
  for (Home& home : homes_) {
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
  const std::int64_t query = rows_.all * model_.heads * model_.head_dim;
  const std::int64_t key_value = rows_.all * 2 * model_.kv_heads * model_.head_dim;
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
      .d_inner = in_workspace(elements(rows_.all * model_.ffn_hidden)),
      .d_o = in_workspace(elements(query)),
      .d_q = floats(in_workspace(fp32(query))),
      .d_kv = floats(in_workspace(fp32(key_value)))};
  shared.d_q_rounded = is_fp32 ? shared.d_q : static_cast<void*>(in_workspace(elements(query)));
  shared.d_kv_rounded = is_fp32 ? shared.d_kv : static_cast<void*>(in_workspace(elements(key_value)));
  if (is_fp32 || shard_.devices == 1) return shared;
  shared.parts = in_workspace(elements(gathered));
  shared.sum = floats(in_workspace(fp32(2 * own)));
  return shared;
}

SharedActivations Activations::shared() const {
  Carver kept(memory_.data() + kept_by_layers_);
  Carver in_workspace(workspace_.data() + workspace_of_layers_);
  return lay_out_shared(std::ref(kept), std::ref(in_workspace));
}

void Activations::begin(const Share& share, const ModelChunk& chunk, const Keeping& keeping) {
  rows_ = rows_on(shard_, share.rows());
  attended_rows_ = share.attended_rows();
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
  for (const Home& home : homes_) {
    std::byte* const place = device_place(home, index);
    if (const auto* const tensor = std::get_if<OfElements>(&home.tensor)) layer.*(*tensor) = place;
    if (const auto* const tensor = std::get_if<OfStatistics>(&home.tensor)) {
      layer.*(*tensor) = reinterpret_cast<float*>(place);
    }
  }
  return layer;
}

std::byte* Activations::device_place(const Home& home, std::int64_t index) const {
  std::byte* const base = home.is_kept ? memory_.data() : workspace_.data();
  const auto place = static_cast<std::size_t>((index - chunk_.layers.first) % home.places);
  return base + home.begin + place * aligned(home.bytes);
}

std::byte* Activations::host_place(const Home& home, std::int64_t index) const {
  const auto layer = static_cast<std::size_t>(index - chunk_.layers.first);
  return static_cast<std::byte*>(host_.get()) + layer * host_layer_bytes_ + home.host_begin;
}

std::vector<HostCopies::Copy> Activations::copies(std::int64_t index, HostCopies::Way way) const {
  std::vector<HostCopies::Copy> copies;
  for (const Home& home : homes_) {
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
  for (const Home& home : homes_) bytes += static_cast<std::size_t>(home.places) * aligned(home.bytes);
  return bytes;
}

std::size_t Activations::host_bytes() const {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, chunk_.layers.count - layers_that_stay)) *
         host_layer_bytes_;
}

}  // namespace hdpsim::kernels::exec
