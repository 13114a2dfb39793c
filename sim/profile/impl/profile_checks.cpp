#include "sim/profile/impl/profile_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_limits.h"

namespace hdpsim {
namespace {

void check_launch(MapReader& map, Duration time, Duration launch) {
  if (time > Duration{} && time <= launch) map.error("the sample takes no longer than the launch alone");
}

bool same_kernel(const AttentionCurve& a, const AttentionCurve& b) {
  return a.causal == b.causal && a.backward == b.backward && a.head_dim == b.head_dim && a.heads == b.heads &&
         a.kv_heads == b.kv_heads;
}

bool same_block(const AttentionSample& a, const AttentionSample& b) {
  return a.queries == b.queries && a.keys == b.keys && a.count == b.count;
}

bool same_kernel(const AttentionFit& a, const AttentionFit& b) {
  return a.causal == b.causal && a.backward == b.backward && a.head_dim == b.head_dim;
}

template <class T, class Same>
bool is_among(const T& item, const std::vector<T>& items, const Same& same) {
  return std::any_of(items.begin(), items.end(), [&](const T& other) { return same(item, other); });
}

}  // namespace

void check_whole(MapReader& map, const KnownProfile& /*known*/, const Provenance& provenance) {
  if (!map.value().is_map()) return;
  const bool is_fitted = provenance.label == ProfileLabel::fitted;
  if (is_fitted != provenance.fit.has_value()) {
    map.error(is_fitted ? "a profile with the label 'fitted' says with 'fit' to what it was fitted"
                        : "only a profile with the label 'fitted' has a 'fit'");
  }
  const bool is_traced = provenance.label == ProfileLabel::traced;
  if (is_traced && !provenance.traces) map.error("a profile with the label 'traced' says with 'traces' of which");
  if (!is_traced && !is_fitted && provenance.traces) map.error("only a profile with the label 'traced' has 'traces'");
}

void check_whole(MapReader& map, const KnownProfile& /*known*/, const AttentionSample& sample,
                 const AttentionCurve& curve) {
  if (curve.causal && sample.queries != sample.keys) {
    map.error(fmt::format("a causal block of {} queries and {} keys: both must be equal", sample.queries, sample.keys));
  }
  check_launch(map, sample.time, curve.launch);
}

void check_whole(MapReader& map, const KnownProfile& /*known*/, const PackedSample& sample,
                 const AttentionCurve& curve) {
  const auto unlike = [](const PackedDocument& d) { return d.queries != d.keys; };
  if (curve.causal && std::any_of(sample.documents.begin(), sample.documents.end(), unlike)) {
    map.error("a causal document has as many queries as keys");
  }
}

void check_whole(MapReader& map, const KnownProfile& /*known*/, const GemmShapeSample& sample, const GemmTable& table,
                 const double& /*speed*/) {
  check_launch(map, sample.time, table.launch);
}

void check_whole(MapReader& map, const KnownProfile& known, const GemmTable& table, const double& speed) {
  const Value& value = map.value();
  const auto says = [&](std::string_view key) { return value.find(key) != nullptr && !value.find(key)->is_null(); };
  if (value.is_map() && !says("by_work") && !says("by_shape")) {
    map.error("'gemm' needs samples: 'by_work', 'by_shape' or both");
  }
  if (known.peak > FlopRate{} && table.full_rate > FlopRate(speed * known.peak.per_second())) {
    map.diagnostics().error(value.find("full_rate")->position, "'full_rate' is above the peak of the data sheet");
  }
}

void check_whole(MapReader& map, const KnownProfile& /*known*/, const SendRecvRate& rate) {
  if (!(rate.line_rate > Bandwidth{})) return;
  const auto wrong = [&](const std::string& how) {
    map.diagnostics().error(
        map.value().find("bandwidth")->position,
        fmt::format("a bandwidth of {:g} GB/s is {} the line rate of {:g} GB/s", rate.bandwidth.gigabytes_per_second(),
                    how, rate.line_rate.gigabytes_per_second()));
  };
  if (rate.bandwidth > rate.line_rate) wrong("more than");
  if (rate.bandwidth > Bandwidth{} && rate.efficiency() < limits::least_link_efficiency) {
    wrong(fmt::format("less than {:g} of", limits::least_link_efficiency));
  }
}

void check_whole(MapReader& map, const KnownProfile& /*known*/, const ConnectionCosts& costs) {
  if (!costs.first_contact && !costs.memory_per_peer && !costs.communicator) {
    map.error("'connections' states no cost", "give 'first_contact', 'memory_per_peer' or 'communicator'");
  }
}

void check_whole(MapReader& map, const KnownProfile& /*known*/, const AttentionFit& fit) {
  const auto not_longer = [](const PairCost& a, const PairCost& b) { return a.length >= b.length; };
  if (std::adjacent_find(fit.pairs.begin(), fit.pairs.end(), not_longer) != fit.pairs.end()) {
    map.error("the lengths of 'pairs' must grow");
  }
}

void check_whole(MapReader& map, const KnownProfile& /*known*/, const GemmFit& fit) {
  if (map.value().is_map() && fit.flop_s + fit.element_s <= 0) map.error("a law without 'flop_s' and 'element_s'");
}

void check_whole(MapReader& map, const KnownProfile& /*known*/, const TransferCurve& curve) {
  const auto not_larger = [](const ByteCost& a, const ByteCost& b) { return a.at >= b.at; };
  if (std::adjacent_find(curve.costs.begin(), curve.costs.end(), not_larger) != curve.costs.end()) {
    map.error("the sizes of 'costs' must grow");
  }
}

void check_whole(MapReader& map, const KnownProfile& /*known*/, const ProfileFits& fits) {
  std::vector<AttentionFit> before;
  for (const AttentionFit& fit : fits.attention) {
    if (is_among(fit, before, [](const auto& a, const auto& b) { return same_kernel(a, b); })) {
      map.error("two attention fits have the same mask, direction and head dimension");
    }
    before.push_back(fit);
  }
}

void check_item(const AttentionCurve& curve, const std::vector<AttentionCurve>& before, const Value& value,
                Diagnostics& diagnostics) {
  if (!is_among(curve, before, [](const auto& a, const auto& b) { return same_kernel(a, b); })) return;
  diagnostics.error(value.position, "a second curve of the same mask, direction, head dimension and heads",
                    "put the samples into one curve");
}

void check_item(const AttentionSample& sample, const std::vector<AttentionSample>& before, const Value& value,
                Diagnostics& diagnostics) {
  if (!is_among(sample, before, same_block)) return;
  diagnostics.error(value.position,
                    fmt::format("a second sample of {} queries and {} keys", sample.queries, sample.keys));
}

}  // namespace hdpsim
