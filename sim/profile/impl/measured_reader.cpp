#include "sim/profile/impl/measured_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace hdpsim {
namespace {

constexpr Range above_zero{1e-9, 1e12};

template <class Name>
std::vector<std::string> words(std::size_t kinds, Name name) {
  std::vector<std::string> all;
  all.reserve(kinds);
  for (std::size_t kind = 0; kind < kinds; ++kind) all.emplace_back(name(kind));
  return all;
}

const std::vector<std::string>& copy_words() {
  static const auto all =
      words(copy_kind_count, [](std::size_t k) { return copy_kind_name(static_cast<CopyKind>(k)); });
  return all;
}

const std::vector<std::string>& message_words() {
  static const auto all =
      words(message_kind_count, [](std::size_t k) { return message_kind_name(static_cast<MessageKind>(k)); });
  return all;
}

const std::vector<std::string>& link_words() {
  static const auto all = words(2, [](std::size_t k) { return link_kind_name(static_cast<LinkKind>(k)); });
  return all;
}

}  // namespace

template <class Sample>
void MeasuredReader::timing(MapReader& map, Sample& sample) {
  sample.time = positive<Duration>(map, "time");
  sample.spread = spread(map);
}

template <class Fit>
void MeasuredReader::byte_range(MapReader& map, Fit& fit) {
  const Value* value = map.require("bytes");
  if (value == nullptr) return;
  MapReader range(*value, "a range of bytes", diagnostics_);
  fit.least = positive<Bytes>(range, "least");
  fit.most = positive<Bytes>(range, "most");
  range.finish();
  if (fit.least > fit.most) range.error("'least' is more than 'most'");
}

template <class T, class Read>
void MeasuredReader::read_list(MapReader& map, std::string_view key, std::string_view of, std::vector<T>& items,
                               Read read) {
  for (const Value& item : list(map, key, false, of)) items.push_back(read(item));
}

MeasuredSamples MeasuredReader::samples(const Value& value) {
  MapReader map(value, "'samples'", diagnostics_);
  MeasuredSamples samples;
  const auto sample = "sample";
  read_list(map, "memory_bound", sample, samples.memory_bound, [&](const Value& v) { return memory_bound_sample(v); });
  read_list(map, "copies", sample, samples.copies, [&](const Value& v) { return copy_sample(v); });
  read_list(map, "messages", sample, samples.messages, [&](const Value& v) { return message_sample(v); });
  read_list(map, "interference", "pair", samples.interference, [&](const Value& v) { return interference(v); });
  read_list(map, "noise", "family", samples.noise, [&](const Value& v) { return noise(v); });
  map.finish();
  return samples;
}

MemoryBoundSample MeasuredReader::memory_bound_sample(const Value& value) {
  MapReader map(value, "a memory-bound sample", diagnostics_);
  MemoryBoundSample sample;
  sample.kernel = text(map, "kernel");
  sample.bytes = positive<Bytes>(map, "bytes");
  timing(map, sample);
  map.finish();
  return sample;
}

CopySample MeasuredReader::copy_sample(const Value& value) {
  MapReader map(value, "a copy", diagnostics_);
  CopySample sample;
  sample.kind = static_cast<CopyKind>(choice(map, "kind", copy_words()));
  sample.bytes = positive<Bytes>(map, "bytes");
  timing(map, sample);
  map.finish();
  return sample;
}

MessageSample MeasuredReader::message_sample(const Value& value) {
  MapReader map(value, "a message", diagnostics_);
  MessageSample sample;
  sample.link = static_cast<LinkKind>(choice(map, "link", link_words()));
  sample.kind = static_cast<MessageKind>(choice(map, "kind", message_words()));
  sample.ranks = map.required_in<std::int64_t>("ranks", {2, positive_range.most}).value_or(2);
  sample.bytes = positive<Bytes>(map, "bytes");
  timing(map, sample);
  map.finish();
  return sample;
}

Interference MeasuredReader::interference(const Value& value) {
  MapReader map(value, "an interference", diagnostics_);
  Interference pair;
  pair.compute = text(map, "compute");
  pair.traffic = text(map, "traffic");
  pair.ctas = map.required_in<std::int64_t>("ctas", not_negative).value_or(0);
  pair.slowdown = map.required_in<double>("slowdown", above_zero).value_or(1);
  pair.slowdown_p10 = map.required_in<double>("p10", above_zero).value_or(1);
  pair.slowdown_p90 = map.required_in<double>("p90", above_zero).value_or(1);
  map.finish();
  return pair;
}

NoiseFloor MeasuredReader::noise(const Value& value) {
  MapReader map(value, "a noise floor", diagnostics_);
  NoiseFloor noise;
  noise.family = text(map, "family");
  noise.mean = number(map, "mean");
  noise.p90 = number(map, "p90");
  noise.max = number(map, "max");
  noise.pairs = count(map, "pairs");
  map.finish();
  return noise;
}

ProfileFits MeasuredReader::fits(const Value& value) {
  MapReader map(value, "'fits'", diagnostics_);
  ProfileFits fits;
  const auto fit = "fit";
  read_list(map, "attention", fit, fits.attention, [&](const Value& v) { return attention_fit(v); });
  if (const Value* gemm = map.find("gemm")) fits.gemm = gemm_fit(*gemm);
  read_list(map, "memory_bound", fit, fits.memory_bound, [&](const Value& v) { return memory_bound_fit(v); });
  read_list(map, "copies", fit, fits.copies, [&](const Value& v) { return copy_fit(v); });
  read_list(map, "messages", fit, fits.messages, [&](const Value& v) { return message_fit(v); });
  map.finish();
  for (std::size_t i = 0; i < fits.attention.size(); ++i) {
    const AttentionFit& a = fits.attention[i];
    const bool repeated = std::any_of(
        fits.attention.begin(), fits.attention.begin() + static_cast<std::ptrdiff_t>(i), [&](const AttentionFit& b) {
          return a.causal == b.causal && a.backward == b.backward && a.head_dim == b.head_dim;
        });
    if (repeated) map.error("two attention fits have the same mask, direction and head dimension");
  }
  return fits;
}

AttentionFit MeasuredReader::attention_fit(const Value& value) {
  MapReader map(value, "an attention fit", diagnostics_);
  AttentionFit fit;
  fit.causal = choice(map, "mask", {"full", "causal"}) == 1;
  fit.backward = choice(map, "direction", {"forward", "backward"}) == 1;
  fit.head_dim = count(map, "head_dim");
  const auto tile = [&](const Value& of, std::int64_t& queries, std::int64_t& keys) {
    MapReader sides(of, "a tile", diagnostics_);
    queries = tile_side(sides, "queries");
    keys = tile_side(sides, "keys");
    sides.finish();
  };
  if (const Value* found = map.require("tile")) tile(*found, fit.tile_queries, fit.tile_keys);
  if (const Value* found = map.find("gradient_tile")) {
    tile(*found, fit.gradient_tile_queries, fit.gradient_tile_keys);
  }
  fit.form = text(map, "form");
  fit.launch_s = number(map, "launch_s");
  for (const Value& item : list(map, "pairs", true, "knot")) fit.pairs.push_back(pair_cost(item));
  const auto not_longer = [](const PairCost& a, const PairCost& b) { return a.length >= b.length; };
  if (std::adjacent_find(fit.pairs.begin(), fit.pairs.end(), not_longer) != fit.pairs.end()) {
    map.error("the lengths of 'pairs' must grow");
  }
  fit.row_s = number(map, "row_s");
  fit.tile_row_s = number(map, "tile_row_s");
  fit.document_s = number(map, "document_s");
  fit.wave_s = number(map, "wave_s");
  if (const Value* lengths = map.require("lengths")) {
    MapReader range(*lengths, "a range of lengths", diagnostics_);
    fit.shortest = count(range, "least");
    fit.longest = count(range, "most");
    range.finish();
  }
  fit.quality = quality(map, "quality");
  if (const Value* packed = map.find("packed_quality")) fit.packed = quality(*packed);
  map.finish();
  return fit;
}

PairCost MeasuredReader::pair_cost(const Value& value) {
  MapReader map(value, "a knot", diagnostics_);
  PairCost pair;
  pair.length = count(map, "length");
  pair.seconds = number(map, "pair_s");
  map.finish();
  return pair;
}

GemmFit MeasuredReader::gemm_fit(const Value& value) {
  MapReader map(value, "the fit of matrix products", diagnostics_);
  GemmFit fit;
  fit.form = text(map, "form");
  fit.launch_s = number(map, "launch_s");
  fit.flop_s = number(map, "flop_s");
  fit.element_s = number(map, "element_s");
  fit.neighbours = map.required_in<std::int64_t>("neighbours", not_negative).value_or(0);
  fit.power = map.required_in<double>("power", above_zero).value_or(2);
  fit.quality = quality(map, "quality");
  map.finish();
  if (value.is_map() && fit.flop_s + fit.element_s <= 0) map.error("a law without 'flop_s' and 'element_s'");
  return fit;
}

TransferCurve MeasuredReader::curve(const Value& value) {
  MapReader map(value, "a curve", diagnostics_);
  TransferCurve curve;
  curve.latency = time(map, "latency");
  for (const Value& item : list(map, "costs", true, "knot")) curve.costs.push_back(byte_cost(item));
  const auto not_larger = [](const ByteCost& a, const ByteCost& b) { return a.at >= b.at; };
  if (std::adjacent_find(curve.costs.begin(), curve.costs.end(), not_larger) != curve.costs.end()) {
    map.error("the sizes of 'costs' must grow");
  }
  map.finish();
  return curve;
}

ByteCost MeasuredReader::byte_cost(const Value& value) {
  MapReader map(value, "a knot", diagnostics_);
  ByteCost cost;
  cost.at = positive<Bytes>(map, "at");
  cost.bandwidth = map.optional<Bandwidth>("bandwidth");
  if (cost.bandwidth) check_positive(*map.value().find("bandwidth"), "bandwidth", *cost.bandwidth);
  map.finish();
  return cost;
}

MemoryBoundFit MeasuredReader::memory_bound_fit(const Value& value) {
  MapReader map(value, "a memory-bound fit", diagnostics_);
  MemoryBoundFit fit;
  fit.kernel = text(map, "kernel");
  fit.form = text(map, "form");
  if (const Value* read = map.require("curve")) fit.curve = curve(*read);
  byte_range(map, fit);
  fit.quality = quality(map, "quality");
  map.finish();
  return fit;
}

CopyFit MeasuredReader::copy_fit(const Value& value) {
  MapReader map(value, "the fit of a copy", diagnostics_);
  CopyFit fit;
  fit.kind = static_cast<CopyKind>(choice(map, "kind", copy_words()));
  fit.latency = time(map, "latency");
  fit.bandwidth = positive<Bandwidth>(map, "bandwidth");
  byte_range(map, fit);
  fit.quality = quality(map, "quality");
  map.finish();
  return fit;
}

MessageLine MeasuredReader::line(const Value& value) {
  MapReader map(value, "a line", diagnostics_);
  MessageLine line;
  line.latency = time(map, "latency");
  line.bandwidth = positive<Bandwidth>(map, "bandwidth");
  map.finish();
  return line;
}

MessageFit MeasuredReader::message_fit(const Value& value) {
  MapReader map(value, "the fit of a message", diagnostics_);
  MessageFit fit;
  fit.link = static_cast<LinkKind>(choice(map, "link", link_words()));
  fit.kind = static_cast<MessageKind>(choice(map, "kind", message_words()));
  fit.ranks = map.required_in<std::int64_t>("ranks", {2, positive_range.most}).value_or(2);
  if (const Value* read = map.find("curve")) fit.curve = curve(*read);
  for (const Value& item : list(map, "lines", !fit.curve, "line")) fit.lines.push_back(line(item));
  byte_range(map, fit);
  fit.quality = quality(map, "quality");
  map.finish();
  return fit;
}

FitQuality MeasuredReader::quality(MapReader& map, std::string_view key) {
  const Value* value = map.require(key);
  return value == nullptr ? FitQuality{} : quality(*value);
}

FitQuality MeasuredReader::quality(const Value& value) {
  MapReader map(value, "the quality of a fit", diagnostics_);
  FitQuality quality;
  quality.samples = count(map, "samples");
  quality.in_sample = error(map, "in_sample");
  quality.held_out = error(map, "held_out");
  for (const Value& item : list(map, "residual_deciles", false, "number")) {
    quality.residual_deciles.push_back(read<double>(item, diagnostics_).value_or(0));
  }
  map.finish();
  return quality;
}

FitError MeasuredReader::error(MapReader& map, std::string_view key) {
  const Value* value = map.require(key);
  if (value == nullptr) return {};
  MapReader fields(*value, "an error", diagnostics_);
  const FitError error{number(fields, "mean"), number(fields, "p95"), number(fields, "max")};
  fields.finish();
  return error;
}

}  // namespace hdpsim
