#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "sim/profile/impl/profile_reader.h"

namespace hdpsim {
namespace {

bool same_kernel(const AttentionCurve& a, const AttentionCurve& b) {
  return a.causal == b.causal && a.backward == b.backward && a.head_dim == b.head_dim && a.heads == b.heads &&
         a.kv_heads == b.kv_heads;
}

bool same_block(const AttentionSample& a, const AttentionSample& b) {
  return a.queries == b.queries && a.keys == b.keys && a.count == b.count;
}

}  // namespace

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
      diagnostics_.error(item.position, "a second curve of the same mask, direction, head dimension and heads",
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
  curve.kv_heads = map.optional_in<std::int64_t>("kv_heads", positive_range).value_or(0);
  tile(map, curve);
  curve.launch = time(map, "launch");
  curve.source = source(map);
  const std::vector<Value>& packs = list(map, "packed", false, "sample");
  for (const Value& item : list(map, "samples", packs.empty(), "sample")) {
    const AttentionSample read = sample(item, curve);
    if (std::any_of(curve.samples.begin(), curve.samples.end(), [&](const auto& s) { return same_block(s, read); })) {
      diagnostics_.error(item.position,
                         fmt::format("a second sample of {} queries and {} keys", read.queries, read.keys));
    }
    curve.samples.push_back(read);
  }
  for (const Value& item : packs) curve.packed.push_back(packed(item, curve));
  map.finish();
  return curve;
}

void ProfileReader::tile(MapReader& map, AttentionCurve& curve) {
  const Value* value = map.require("tile");
  if (value == nullptr) return;
  MapReader tile(*value, "a tile", diagnostics_);
  curve.tile_queries = tile_side(tile, "queries");
  curve.tile_keys = tile_side(tile, "keys");
  tile.finish();
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

PackedSample ProfileReader::packed(const Value& value, const AttentionCurve& curve) {
  MapReader map(value, "a packed sample", diagnostics_);
  PackedSample sample;
  for (const Value& item : list(map, "documents", true, "document")) sample.documents.push_back(document(item));
  sample.time = sample_time(map, sample_work(curve, sample));
  sample.spread = spread(map);
  map.finish();
  const auto unlike = [](const PackedDocument& d) { return d.queries != d.keys; };
  if (curve.causal && std::any_of(sample.documents.begin(), sample.documents.end(), unlike)) {
    map.error("a causal document has as many queries as keys");
  }
  return sample;
}

PackedDocument ProfileReader::document(const Value& value) {
  const auto side = [&](std::string_view text) {
    std::int64_t tokens = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), tokens);
    return error == std::errc{} && end == text.data() + text.size() ? tokens : 0;
  };
  const std::string_view text = value.text;
  const auto cross = text.find('x');
  const PackedDocument document{side(text.substr(0, cross)), side(text.substr(cross == text.npos ? 0 : cross + 1))};
  if (!value.is_scalar() || document.queries < 1 || document.keys < 1) {
    diagnostics_.error(value.position, "a document is its tokens (300) or queries by keys (300x150)");
  }
  return document;
}

GemmTable ProfileReader::gemm(const Value& value, FlopRate peak) {
  MapReader map(value, "'gemm'", diagnostics_);
  GemmTable table;
  if (const Value* tile = map.require("tile")) {
    MapReader sides(*tile, "a tile", diagnostics_);
    table.tile_m = tile_side(sides, "m");
    table.tile_n = tile_side(sides, "n");
    sides.finish();
  }
  table.launch = time(map, "launch");
  table.full_rate = positive<FlopRate>(map, "full_rate");
  table.source = source(map);
  for (const Value& item : list(map, "by_work", false, "sample")) table.by_work.push_back(work_sample(item));
  for (const Value& item : list(map, "by_shape", false, "sample")) {
    table.by_shape.push_back(shape_sample(item, table.launch));
  }
  const auto says = [&](std::string_view key) { return value.find(key) != nullptr && !value.find(key)->is_null(); };
  if (value.is_map() && !says("by_work") && !says("by_shape")) {
    map.error("'gemm' needs samples: 'by_work', 'by_shape' or both");
  }
  if (peak > FlopRate{} && table.full_rate > peak) {
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

}  // namespace hdpsim
