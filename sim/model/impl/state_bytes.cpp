#include "sim/model/impl/state_bytes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/model/optimizer_work.h"
#include "sim/model/parameters.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

constexpr std::int64_t layers_in_full = 2;  // parts sharded by ZeRO-2 and ZeRO-3

// Some of a device's parameters, and how many of them are weights of its layers' products.
struct Part {
  std::int64_t all = 0;
  std::int64_t weights = 0;
};

// Parameters of a device, trained or frozen ones: all of them, those that it would have under ZeRO, and those of the
// layers that are there in full.
struct Sharded {
  Part held;
  Part shard;
  Part in_full;

  [[nodiscard]] std::int64_t with_full() const { return std::min(held.all, shard.all + in_full.all); }
};

Part part_of(const DeviceParameters& parameters, std::int64_t count) {
  const std::int64_t all = parameters.all();
  if (all == 0) return {};
  const double share = static_cast<double>(parameters.weights) / static_cast<double>(all);
  return {count, count == all ? parameters.weights : std::llround(share * static_cast<double>(count))};
}

Sharded sharded(const DeviceParameters& held, const DeviceParameters& in_full, const DeviceShape& shape,
                const ExpertDivision& experts) {
  const std::int64_t expert_pool = std::max<std::int64_t>(1, shape.pool * shape.tp / experts.devices());
  const std::int64_t shard = divided(held.common, shape.pool) + divided(held.experts, expert_pool);
  return {part_of(held, held.all()), part_of(held, shard), part_of(in_full, std::min(held.all(), in_full.all()))};
}

// The layers in full count as layers of the last one's kind.
std::vector<LayerRun> full_layers(const DeviceShape& shape) {
  if (shape.layers.empty()) return {};
  return {{std::min(layers_in_full, layer_count(shape.layers)), shape.layers.back().kind}};
}

class States {
 public:
  States(const Transformer& model, const Recipe& recipe) : model_(model), recipe_(recipe) {}

  // Parameters that are trained, kept in one type and gathered in another one. FSDP2 gathers casts of the optimizer's
  // copy: there is no shard in elements.
  [[nodiscard]] Bytes parameters(const Sharded& of) const {
    const bool is_cast = recipe_.copies_shards() && recipe_.has_master();
    return parameters(of, recipe_.parameters, recipe_.gathered_type(), is_cast);
  }

  [[nodiscard]] Bytes parameters(const Sharded& of, NumberType kept, NumberType gathered, bool is_cast) const {
    if (recipe_.zero < 3) return whole(kept, of.held);
    const Bytes shard = recipe_.host.parameters || is_cast ? Bytes{} : in(kept, of.shard);
    const Bytes both = shard + whole(gathered, of.in_full);
    return kept == gathered ? std::min(whole(kept, of.held), both) : both;
  }

  [[nodiscard]] Bytes host_parameters(const Sharded& of, NumberType kept) const {
    return recipe_.host.parameters ? in(kept, of.shard) : Bytes{};
  }

  // From stage 2 on the host has the shards of what it updates.
  [[nodiscard]] Bytes gradients(const Sharded& trained) const {
    const std::int64_t bytes = recipe_.autocast() ? fp32_bytes : recipe_.gradient_bytes;
    if (recipe_.zero < 2) return Bytes(trained.held.all * bytes);
    const Bytes on_host = Bytes(trained.shard.all * bytes).scaled(recipe_.host.optimizer);
    return Bytes(trained.with_full() * bytes) - std::min(Bytes(trained.with_full() * bytes), on_host);
  }

  [[nodiscard]] Bytes optimizer(const Sharded& trained) const {
    const Part& updated = recipe_.zero < 1 ? trained.held : trained.shard;
    if (updated.all == 0) return {};
    return optimizer_bytes(recipe_, updated.all,
                           static_cast<double>(trained.held.weights) / static_cast<double>(trained.held.all));
  }

  [[nodiscard]] Bytes host_gradients(const Sharded& trained) const {
    const std::int64_t updated = recipe_.zero < 1 ? trained.held.all : trained.shard.all;
    return Bytes(updated * fp32_bytes).scaled(recipe_.host.optimizer);
  }

 private:
  [[nodiscard]] Bytes in(NumberType type, const Part& part) const {
    return parameter_bytes(type, part.all, part.weights, model_.element_bytes);
  }

  // Weights in fp8 are there twice.
  [[nodiscard]] Bytes whole(NumberType type, const Part& part) const {
    return in(type, part) + Bytes(type == NumberType::fp8 ? part.weights : 0);
  }

  const Transformer& model_;
  const Recipe& recipe_;
};

}  // namespace

StateBytes state_bytes(const Transformer& model, const DeviceShape& shape, const Recipe& recipe,
                       const ExpertDivision& experts) {
  const std::int64_t around = parameters_around_layers(model, shape.embedding, shape.head);
  const DeviceParameters held = device_parameters(model, shape.layers, around, shape.tp, experts);
  const std::vector<LayerRun> layers = full_layers(shape);
  const DeviceParameters in_full = device_parameters(model, layers, 0, shape.tp, experts);
  const Sharded trained = sharded(trained_parameters(model, shape.layers, recipe, held, shape.tp),
                                  trained_parameters(model, layers, recipe, in_full, shape.tp), shape, experts);
  const States states(model, recipe);
  // FSDP2 keeps what it gathers of the model's own group, which is all around the layers, from forward to backward
  // (torch/distributed/fsdp/_fully_shard/_fsdp_state.py, _lazy_init: the root is not resharded after forward).
  const bool has_root = recipe.copies_shards() && shape.pool > 1;
  const Bytes root(has_root ? divided(around, shape.tp) * model.element_bytes : 0);
  const Bytes optimizer = states.optimizer(trained);
  const Bytes on_host = optimizer.scaled(recipe.host.optimizer);
  StateBytes bytes{
      .parameters = states.parameters(trained) + root,
      .gradients = states.gradients(trained),
      .optimizer = optimizer - on_host,
      .host = on_host + states.host_gradients(trained) + states.host_parameters(trained, recipe.parameters)};
  if (!recipe.lora.is_on()) return bytes;
  const Sharded frozen = sharded(held, in_full, shape, experts);
  bytes.parameters += states.parameters(frozen, recipe.lora.base, recipe.lora.base, false);
  bytes.host += states.host_parameters(frozen, recipe.lora.base);
  return bytes;
}

}  // namespace hdpsim
