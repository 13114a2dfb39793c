#include "sim/profile/impl/profile_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_limits.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

// What a map states of a key; null says nothing.
const Value* stated(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

// Fills in the time of a sample that states its rate.
template <class Sample>
void complete_time(Sample& sample, const Value& value, Flops work, Diagnostics& diagnostics) {
  if (!value.is_map()) return;
  const Value* rate = stated(value, "rate");
  if ((stated(value, "time") == nullptr) == (rate == nullptr)) {
    diagnostics.error(value.position, "a sample needs either 'time' or 'rate'");
    sample.time = {};
  } else if (rate != nullptr) {
    const auto found = read_in<FlopRate>(*rate, "'rate'", limits::flop_rate, diagnostics);
    if (found) sample.time = work / *found;
  }
}

// What a device keeps under load, and the shortest sample that was taken so: 'sustained' of a map.
struct Sustained {
  FlopRate rate;
  Duration from;
};

std::optional<Sustained> sustained_of(const Value& map, Diagnostics& diagnostics) {
  const Value* value = stated(map, "sustained");
  if (value == nullptr) return std::nullopt;
  MapReader reader(*value, "a sustained rate", diagnostics);
  const auto rate = reader.required<FlopRate>("rate");
  const auto from = reader.required<Duration>("from");
  reader.finish();
  if (!rate || !from) return std::nullopt;
  if (*rate > FlopRate{}) return Sustained{*rate, *from};
  diagnostics.error(value->position, "a sustained rate above zero is needed");
  return std::nullopt;
}

// A benchmark repeats a short kernel for a few milliseconds, in which the clock is still what the device starts with; a
// step runs the kernel between others, without pause, at the clock that its power limit allows.
template <class Sample, class Work>
void slow_short_samples(std::vector<Sample>& samples, const Sustained& sustained, const Work& work) {
  for (Sample& sample : samples) {
    if (sample.time < sustained.from) sample.time = std::max(sample.time, work(sample) / sustained.rate);
  }
}

void check_launch(Duration time, Duration launch, const Value& value, Diagnostics& diagnostics) {
  if (time > Duration{} && time <= launch) {
    diagnostics.error(value.position, "the sample takes no longer than the launch alone");
  }
}

// No sample of a list is faster than the device, work / peak.
template <class Sample, class Work>
void check_peak(const std::vector<Sample>& samples, const Value& map, std::string_view key, FlopRate peak,
                const Work& work, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].time == Duration{} || samples[i].time >= work(samples[i]) / peak) continue;
    const Value& sample = map.find(key)->items[i];
    const Value* time = stated(sample, "time");
    const Value& shown = time != nullptr ? *time : *stated(sample, "rate");
    diagnostics.error(shown.position, fmt::format("{} is faster than the peak of the data sheet", shown.text));
  }
}

bool same_kernel(const AttentionCurve& a, const AttentionCurve& b) {
  return a.causal == b.causal && a.backward == b.backward && a.head_dim == b.head_dim && a.heads == b.heads &&
         a.kv_heads == b.kv_heads;
}

bool same_block(const AttentionSample& a, const AttentionSample& b) {
  return a.queries == b.queries && a.keys == b.keys && a.count == b.count;
}

bool same_kernel_of_fits(const AttentionFit& a, const AttentionFit& b) {
  return a.causal == b.causal && a.backward == b.backward && a.head_dim == b.head_dim;
}

// Whether one of the items before this one is the same.
template <class T, class Same>
bool is_second(const std::vector<T>& items, std::size_t item, const Same& same) {
  const auto end = items.begin() + static_cast<std::ptrdiff_t>(item);
  return std::any_of(items.begin(), end, [&](const T& other) { return same(items[item], other); });
}

template <class T, class Member>
bool grow(const std::vector<T>& knots, Member T::*size) {
  const auto not_larger = [&](const T& a, const T& b) { return a.*size >= b.*size; };
  return std::adjacent_find(knots.begin(), knots.end(), not_larger) == knots.end();
}

void check_curves(const std::vector<AttentionCurve>& curves, const Value& map, std::string_view key, FlopRate peak,
                  Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const AttentionCurve& curve = curves[i];
    const Value& value = map.find(key)->items[i];
    if (is_second(curves, i, same_kernel)) {
      diagnostics.error(value.position, "a second curve of the same mask, direction, head dimension and heads",
                        "put the samples into one curve");
    }
    if (!(peak > FlopRate{})) continue;
    const auto work = [&](const auto& sample) { return sample_work(curve, sample); };
    check_peak(curve.samples, value, "samples", peak, work, diagnostics);
    check_peak(curve.packed, value, "packed", peak, work, diagnostics);
  }
}

// `speed` is how many times faster than the data sheet's peak products of the type may be.
void check_gemm_peak(const std::optional<GemmTable>& table, const Value& map, std::string_view key, FlopRate peak,
                     double speed, Diagnostics& diagnostics) {
  if (!table || !(peak > FlopRate{})) return;
  const Value& value = *map.find(key);
  const FlopRate of_type(speed * peak.per_second());
  const auto work = [](const GemmShapeSample& sample) { return sample_work(sample); };
  check_peak(table->by_shape, value, "by_shape", of_type, work, diagnostics);
  if (table->full_rate > of_type) {
    diagnostics.error(value.find("full_rate")->position, "'full_rate' is above the peak of the data sheet");
  }
}

}  // namespace

void check_provenance(const Provenance& provenance, const Value& value, Diagnostics& diagnostics) {
  const auto wrong = [&](const char* text) { diagnostics.error(value.position, text); };
  const bool is_fitted = provenance.label == ProfileLabel::fitted;
  if (is_fitted != provenance.fit.has_value()) {
    wrong(is_fitted ? "a profile with the label 'fitted' says with 'fit' to what it was fitted"
                    : "only a profile with the label 'fitted' has a 'fit'");
  }
  const bool is_traced = provenance.label == ProfileLabel::traced;
  if (is_traced && !provenance.traces) wrong("a profile with the label 'traced' says with 'traces' of which");
  if (!is_traced && !is_fitted && provenance.traces) wrong("only a profile with the label 'traced' has 'traces'");
}

void check_attention(AttentionCurve& curve, const Value& value, Diagnostics& diagnostics) {
  if (curve.packs_heads && curve.backward) {
    diagnostics.error(value.find("heads_in_tile")->position, "heads share a tile in forward kernels only");
  }
  for (std::size_t i = 0; i < curve.samples.size(); ++i) {
    AttentionSample& sample = curve.samples[i];
    const Value& of_sample = value.find("samples")->items[i];
    complete_time(sample, of_sample, sample_work(curve, sample), diagnostics);
    if (curve.causal && sample.queries != sample.keys) {
      diagnostics.error(of_sample.position, fmt::format("a causal block of {} queries and {} keys: both must be equal",
                                                        sample.queries, sample.keys));
    }
    check_launch(sample.time, curve.launch, of_sample, diagnostics);
    if (is_second(curve.samples, i, same_block)) {
      diagnostics.error(of_sample.position,
                        fmt::format("a second sample of {} queries and {} keys", sample.queries, sample.keys));
    }
  }
  for (std::size_t i = 0; i < curve.packed.size(); ++i) {
    PackedSample& sample = curve.packed[i];
    const Value& of_sample = value.find("packed")->items[i];
    complete_time(sample, of_sample, sample_work(curve, sample), diagnostics);
    const auto unlike = [](const PackedDocument& document) { return document.queries != document.keys; };
    if (curve.causal && std::any_of(sample.documents.begin(), sample.documents.end(), unlike)) {
      diagnostics.error(of_sample.position, "a causal document has as many queries as keys");
    }
  }
  if (const auto sustained = sustained_of(value, diagnostics)) {
    const auto work = [&](const auto& sample) { return sample_work(curve, sample); };
    slow_short_samples(curve.samples, *sustained, work);
    slow_short_samples(curve.packed, *sustained, work);
  }
  if (stated(value, "samples") == nullptr && value.find("packed") == nullptr) {
    diagnostics.error(value.position, "an attention curve needs 'samples'");
  }
}

void check_gemm(GemmTable& table, const Value& value, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < table.by_shape.size(); ++i) {
    GemmShapeSample& sample = table.by_shape[i];
    const Value& of_sample = value.find("by_shape")->items[i];
    complete_time(sample, of_sample, sample_work(sample), diagnostics);
    check_launch(sample.time, table.launch, of_sample, diagnostics);
  }
  if (const auto sustained = sustained_of(value, diagnostics); sustained && table.full_rate > FlopRate{}) {
    slow_short_samples(table.by_shape, *sustained, [](const GemmShapeSample& sample) { return sample_work(sample); });
    const double most = sustained->rate.per_second() / table.full_rate.per_second();
    for (GemmWorkSample& sample : table.by_work) {
      const double seconds = sample.gflop * 1e9 / (sample.efficiency * table.full_rate.per_second());
      if (seconds < sustained->from.seconds()) sample.efficiency = std::min(sample.efficiency, most);
    }
  }
  if (stated(value, "by_work") == nullptr && stated(value, "by_shape") == nullptr) {
    diagnostics.error(value.position, "'gemm' needs samples: 'by_work', 'by_shape' or both");
  }
}

void check_send_recv(const SendRecvRate& rate, const Value& value, Diagnostics& diagnostics) {
  if (!(rate.line_rate > Bandwidth{})) return;
  const auto wrong = [&](const std::string& how) {
    diagnostics.error(value.find("bandwidth")->position,
                      fmt::format("a bandwidth of {:g} GB/s is {} the line rate of {:g} GB/s",
                                  rate.bandwidth.gigabytes_per_second(), how, rate.line_rate.gigabytes_per_second()));
  };
  if (rate.bandwidth > rate.line_rate) wrong("more than");
  if (rate.bandwidth > Bandwidth{} && rate.efficiency() < limits::least_link_efficiency) {
    wrong(fmt::format("less than {:g} of", limits::least_link_efficiency));
  }
}

void check_connections(const ConnectionCosts& costs, const Value& value, Diagnostics& diagnostics) {
  if (costs.first_contact || costs.memory_per_peer || costs.communicator) return;
  diagnostics.error(value.position, "'connections' states no cost",
                    "give 'first_contact', 'memory_per_peer' or 'communicator'");
}

void check_attention_fit(const AttentionFit& fit, const Value& value, Diagnostics& diagnostics) {
  if (!grow(fit.pairs, &PairCost::length)) diagnostics.error(value.position, "the lengths of 'pairs' must grow");
}

void check_gemm_fit(const GemmFit& fit, const Value& value, Diagnostics& diagnostics) {
  if (fit.flop_s + fit.element_s <= 0) diagnostics.error(value.position, "a law without 'flop_s' and 'element_s'");
}

void check_transfer_curve(const TransferCurve& curve, const Value& value, Diagnostics& diagnostics) {
  if (!grow(curve.costs, &ByteCost::at)) diagnostics.error(value.position, "the sizes of 'costs' must grow");
}

void check_message_fit(const MessageFit& fit, const Value& value, Diagnostics& diagnostics) {
  if (fit.curve || stated(value, "lines") != nullptr) return;
  diagnostics.error(value.position, "the fit of a message needs 'lines'");
}

void check_fits(const ProfileFits& fits, const Value& value, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < fits.attention.size(); ++i) {
    if (!is_second(fits.attention, i, same_kernel_of_fits)) continue;
    diagnostics.error(value.position, "two attention fits have the same mask, direction and head dimension");
  }
}

void check_profile(const DeviceProfile& profile, const Value& value, Diagnostics& diagnostics) {
  const FlopRate peak = profile.datasheet.peak;
  check_curves(profile.attention, value, "attention", peak, diagnostics);
  for (std::size_t i = 0; i < other_attentions; ++i) {
    const std::string_view key = other_attention_key(static_cast<OtherAttention>(i));
    check_curves(profile.other_attention[i], value, key, peak, diagnostics);
  }
  check_gemm_peak(profile.gemm, value, "gemm", peak, 1, diagnostics);
  for (std::size_t i = 0; i < narrow_tables.size(); ++i) {
    const NarrowTable& table = narrow_tables.at(i);
    check_gemm_peak(profile.gemm_narrow.at(i), value, table.key, peak, table.speed, diagnostics);
  }
}

}  // namespace hdpsim
