#include <fmt/format.h>

#include <algorithm>

#include "sim/model/impl/config_reader.h"

namespace hdpsim {
namespace {

using namespace model_ranges;

void check_window_heads(ConfigMap& config, const WindowHeads& keys, const Layer& layer) {
  const std::int64_t columns = layer.heads * std::max(layer.head_dim, layer.value_dim);
  if (static_cast<double>(columns) > width.most) {
    config.error_at(keys.heads, fmt::format("heads of layers with a window with a width of {}, at most {:g} can be "
                                            "simulated",
                                            columns, width.most));
  }
  if (layer.kv_heads == 0 || layer.heads % layer.kv_heads == 0) return;
  config.error_at(
      keys.kv_heads,
      fmt::format("{} key-value heads of layers with a window do not divide {} heads", layer.kv_heads, layer.heads),
      "every key-value head serves equally many heads");
}

}  // namespace

Layer read_window_heads(ConfigMap& config, const WindowHeads& keys, const Layer& others) {
  Layer layer = others;
  MapReader& map = config.map();
  const Value* inner = keys.map.empty() ? &map.value() : map.find(keys.map);
  if (inner == nullptr) return layer;
  MapReader own_map(*inner, keys.map.empty() ? "the model" : fmt::format("'{}'", keys.map), map.diagnostics());
  ConfigMap own(own_map);
  layer.heads = own.number_or(keys.heads, heads, others.heads);
  layer.kv_heads = own.number_or(keys.kv_heads, heads, others.kv_heads);
  layer.head_dim = own.number_or(keys.head_dim, heads, others.head_dim);
  layer.value_dim = own.number_or(keys.value_dim, heads, others.value_dim);
  layer.sinks = own.truth(keys.sinks);
  check_window_heads(own, keys, layer);
  return layer;
}

}  // namespace hdpsim
