#include <fmt/format.h>

#include <algorithm>

#include "sim/profile/impl/profile_reader.h"

namespace hdpsim {
namespace {

const std::vector<Value>& no_items() {
  static const std::vector<Value> none;
  return none;
}

bool same_kernel(const AttentionCurve& a, const AttentionCurve& b) {
  return a.causal == b.causal && a.backward == b.backward && a.head_dim == b.head_dim;
}

bool same_block(const AttentionSample& a, const AttentionSample& b) {
  return a.queries == b.queries && a.keys == b.keys;
}

}  // namespace

const std::vector<Value>& ProfileReader::samples(MapReader& map, std::string_view key, bool required) {
  const Value* value = required ? map.require(key) : map.find(key);
  if (value == nullptr) return no_items();
  if (!value->is_sequence() || value->items.empty()) {
    diagnostics_.error(value->position, fmt::format("'{}' must be a list of at least one sample", key));
  }
  return value->items;
}

std::vector<AttentionCurve> ProfileReader::attention(const Value& value) {
  std::vector<AttentionCurve> curves;
  if (!value.is_sequence()) {
    diagnostics_.error(value.position,
                       fmt::format("'attention' must be a list of curves, found {}", kind_name(value.kind)));
  }
  for (const Value& item : value.items) {
    AttentionCurve read = curve(item);
    const bool repeated = std::any_of(curves.begin(), curves.end(),
                                      [&](const AttentionCurve& other) { return same_kernel(read, other); });
    if (repeated) {
      diagnostics_.error(item.position, "a second curve of the same mask, direction and head dimension",
                         "put the samples into one curve");
    }
    curves.push_back(std::move(read));
  }
  return curves;
}

AttentionCurve ProfileReader::curve(const Value& value) {
  MapReader map(value, "an attention curve", diagnostics_);
  AttentionCurve curve;
  if (const Value* mask = map.require("mask")) {
    curve.causal = read_choice(*mask, "mask", {"full", "causal"}, diagnostics_) == 1;
  }
  if (const Value* direction = map.require("direction")) {
    curve.backward = read_choice(*direction, "direction", {"forward", "backward"}, diagnostics_) == 1;
  }
  curve.head_dim = count(map, "head_dim");
  curve.heads = count(map, "heads");
  tile(map, curve);
  curve.launch = time(map, "launch");
  curve.source = source(map);
  for (const Value& item : samples(map, "samples", true)) {
    const AttentionSample read = sample(item, curve);
    if (std::any_of(curve.samples.begin(), curve.samples.end(), [&](const auto& s) { return same_block(s, read); })) {
      diagnostics_.error(item.position,
                         fmt::format("a second sample of {} queries and {} keys", read.queries, read.keys));
    }
    curve.samples.push_back(read);
  }
  map.finish();
  return curve;
}

void ProfileReader::tile(MapReader& map, AttentionCurve& curve) {
  const Value* value = map.require("tile");
  if (value == nullptr) return;
  MapReader tile(*value, "a tile", diagnostics_);
  curve.tile_queries = count(tile, "queries");
  curve.tile_keys = count(tile, "keys");
  tile.finish();
  if (!curve.causal || curve.tile_queries == 0 || curve.tile_keys == 0) return;
  const auto [small, large] = std::minmax(curve.tile_queries, curve.tile_keys);
  if (large % small != 0) {
    tile.error(fmt::format("a causal kernel's tile of {} x {}: one side must divide the other", curve.tile_queries,
                           curve.tile_keys));
  }
}

AttentionSample ProfileReader::sample(const Value& value, const AttentionCurve& curve) {
  MapReader map(value, "an attention sample", diagnostics_);
  AttentionSample sample;
  sample.queries = count(map, "queries");
  sample.keys = count(map, "keys");
  sample.count = map.optional_in<std::int64_t>("count", positive_range).value_or(1);
  sample.time = sample_time(map, sample_work(curve, sample));
  sample.spread = spread(map);
  map.finish();
  if (curve.causal && sample.queries != sample.keys) {
    map.error(fmt::format("a causal block of {} queries and {} keys: both must be equal", sample.queries, sample.keys));
  }
  check_launch(map, sample.time, curve.launch);
  return sample;
}

GemmTable ProfileReader::gemm(const Value& value) {
  MapReader map(value, "'gemm'", diagnostics_);
  GemmTable table;
  if (const Value* tile = map.require("tile")) {
    MapReader sides(*tile, "a tile", diagnostics_);
    table.tile_m = count(sides, "m");
    table.tile_n = count(sides, "n");
    sides.finish();
  }
  table.launch = time(map, "launch");
  table.full_rate = positive<FlopRate>(map, "full_rate");
  table.source = source(map);
  for (const Value& item : samples(map, "by_work", false)) table.by_work.push_back(work_sample(item));
  for (const Value& item : samples(map, "by_shape", false)) {
    table.by_shape.push_back(shape_sample(item, table.launch));
  }
  if (value.is_map() && value.find("by_work") == nullptr && value.find("by_shape") == nullptr) {
    map.error("'gemm' needs samples: 'by_work', 'by_shape' or both");
  }
  if (peak_ > FlopRate{} && table.full_rate > peak_) {
    diagnostics_.error(value.find("full_rate")->position, "'full_rate' is above the peak of the data sheet");
  }
  map.finish();
  return table;
}

GemmWorkSample ProfileReader::work_sample(const Value& value) {
  constexpr double least = 1e-6;
  MapReader map(value, "a sample by work", diagnostics_);
  GemmWorkSample sample;
  sample.gflop = map.required_in<double>("gflop", {least, positive_range.most}).value_or(0);
  sample.efficiency = map.required_in<double>("efficiency", {least, 1}).value_or(0);
  map.finish();
  return sample;
}

GemmShapeSample ProfileReader::shape_sample(const Value& value, Duration launch) {
  MapReader map(value, "a sample by shape", diagnostics_);
  GemmShapeSample sample;
  sample.m = count(map, "m");
  sample.n = count(map, "n");
  sample.k = count(map, "k");
  sample.time = sample_time(map, sample_work(sample));
  sample.spread = spread(map);
  map.finish();
  check_launch(map, sample.time, launch);
  return sample;
}

Duration ProfileReader::sample_time(MapReader& map, Flops work) {
  const Value* time_value = map.find("time");
  const Value* rate_value = map.find("rate");
  if ((time_value == nullptr) == (rate_value == nullptr)) {
    if (map.value().is_map()) map.error("a sample needs either 'time' or 'rate'");
    return {};
  }
  Duration time;
  if (time_value != nullptr) {
    const auto stated = read<Duration>(*time_value, diagnostics_);
    if (stated) check_positive(*time_value, "time", *stated);
    time = stated.value_or(Duration{});
  } else if (const auto rate = read<FlopRate>(*rate_value, diagnostics_)) {
    check_positive(*rate_value, "rate", *rate);
    if (*rate > FlopRate{}) time = work / *rate;
  }
  if (time > Duration{} && peak_ > FlopRate{} && time < work / peak_) {
    const Value& stated = time_value != nullptr ? *time_value : *rate_value;
    diagnostics_.error(stated.position, fmt::format("{} is faster than the peak of the data sheet", stated.text));
  }
  return time;
}

void ProfileReader::check_launch(MapReader& map, Duration time, Duration launch) {
  if (time > Duration{} && time <= launch) map.error("the sample takes no longer than the launch alone");
}

std::optional<Spread> ProfileReader::spread(MapReader& map) {
  const auto p10 = map.optional<Duration>("p10");
  const auto p90 = map.optional<Duration>("p90");
  const auto runs = map.optional_in<std::int64_t>("runs", positive_range);
  if (!p10 && !p90 && !runs) return std::nullopt;
  if (p10 && p90 && runs && *p10 > Duration{} && *p10 <= *p90) return Spread{*p10, *p90, *runs};
  map.error("a spread needs 'p10', 'p90' and 'runs', with p10 no more than p90");
  return std::nullopt;
}

}  // namespace hdpsim
