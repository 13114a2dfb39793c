#include "sim/profile/scaled_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "sim/base/quantity_limits.h"

namespace hdpsim {
namespace {

constexpr std::string_view told = "itted to steps (see provenance)";

// A kernel of which `fixed` does not depend on its rate.
Duration faster(Duration time, Duration fixed, double rate) {
  const Duration work = time > fixed ? time - fixed : Duration{};
  return std::max(fixed + work.scaled(1 / rate), fixed + 1_ps);
}

// Rounded to whole GFLOP/s, which a profile states exactly.
FlopRate faster(FlopRate full, double rate, FlopRate peak) {
  constexpr double unit = 1e9;
  if (rate == 1) return full;
  return FlopRate(
      std::min(std::round(full.per_second() * rate / unit) * unit, std::max(full.per_second(), peak.per_second())));
}

void scale(GemmTable& table, double rate, FlopRate peak) {
  table.full_rate = faster(table.full_rate, rate, peak);
  for (GemmShapeSample& sample : table.by_shape) {
    sample.time = faster(sample.time, table.launch, rate);
    sample.spread.reset();
  }
  tell_fitted(table.source);
}

void scale(AttentionCurve& curve, double rate) {
  const auto scale_samples = [&](auto& samples) {
    for (auto& sample : samples) {
      sample.time = faster(sample.time, curve.launch, rate);
      sample.spread.reset();
    }
  };
  scale_samples(curve.samples);
  scale_samples(curve.packed);
  tell_fitted(curve.source);
}

void scale(TransferCurve& curve, double rate) {
  for (ByteCost& cost : curve.costs) {
    if (cost.bandwidth) cost.bandwidth = cost.bandwidth->scaled(rate);
  }
}

template <class Rate>
void scale_rate(std::optional<Rate>& known, double rate) {
  if (!known) return;
  const Bandwidth most = std::max(known->bandwidth, known->line_rate);
  const Bandwidth least = std::min(known->bandwidth, known->line_rate.scaled(limits::least_link_efficiency));
  known->bandwidth = std::clamp(known->bandwidth.scaled(rate), least, most);
  tell_fitted(known->source);
}

// How many times the rate of a timed kernel fits under the peak.
double room(Duration time, Flops work, FlopRate peak) {
  return time.seconds() * peak.per_second() / work.count();
}

double at_least_one(double room) {
  return std::max(1.0, room);
}

}  // namespace

void tell_fitted(std::string& source) {
  if (source.ends_with(told)) return;
  if (!source.empty()) source += source.ends_with('.') ? " " : "; ";
  source += source.ends_with(". ") ? 'F' : 'f';
  source += told;
}

void scale_products(DeviceProfile& profile, double rate) {
  const FlopRate peak = profile.datasheet.peak;
  if (profile.gemm) scale(*profile.gemm, rate, peak);
  for (std::size_t i = 0; i < narrow_tables.size(); ++i) {
    std::optional<GemmTable>& table = profile.gemm_narrow[i];
    if (table) scale(*table, rate, FlopRate(narrow_tables[i].speed * peak.per_second()));
  }
  if (!profile.fits.gemm) return;
  profile.fits.gemm->flop_s /= rate;
  profile.fits.gemm->element_s /= rate;
}

void scale_attention(DeviceProfile& profile, double rate) {
  for (AttentionCurve& curve : profile.attention) scale(curve, rate);
  for (auto& curves : profile.other_attention) {
    for (AttentionCurve& curve : curves) scale(curve, rate);
  }
  for (AttentionFit& fit : profile.fits.attention) {
    for (PairCost& pair : fit.pairs) pair.seconds /= rate;
    fit.row_s /= rate;
    fit.tile_row_s /= rate;
    fit.document_s /= rate;
    fit.wave_s /= rate;
  }
}

void scale_memory(DeviceProfile& profile, double rate) {
  if (profile.memory_bound) {
    profile.memory_bound->bandwidth = profile.memory_bound->bandwidth.scaled(rate);
    for (KernelBandwidth& each : profile.memory_bound->kernels) each.bandwidth = each.bandwidth.scaled(rate);
    tell_fitted(profile.memory_bound->source);
  }
  for (MemoryBoundFit& fit : profile.fits.memory_bound) scale(fit.curve, rate);
}

void scale_links(DeviceProfile& profile, LinkKind kind, double rate) {
  std::optional<LinkProfile>& link = kind == LinkKind::nvlink ? profile.nvlink : profile.network;
  if (link) {
    scale_rate(link->send_recv, rate);
    scale_rate(link->all_gather, rate);
    scale_rate(link->reduce_scatter, rate);
    scale_rate(link->all_reduce, rate);
    scale_rate(link->all_to_all, rate);
    scale_rate(link->dispatch, rate);
  }
  for (MessageFit& fit : profile.fits.messages) {
    if (fit.link != kind) continue;
    for (MessageLine& line : fit.lines) line.bandwidth = line.bandwidth.scaled(rate);
    if (fit.curve) scale(*fit.curve, rate);
  }
}

double room_of_products(const DeviceProfile& profile) {
  double least = std::numeric_limits<double>::max();
  const double peak = profile.datasheet.peak.per_second();
  if (profile.gemm) {
    least = std::min(least, peak / profile.gemm->full_rate.per_second());
    for (const GemmShapeSample& sample : profile.gemm->by_shape) {
      least = std::min(least, room(sample.time, sample_work(sample), profile.datasheet.peak));
    }
  }
  return at_least_one(least);
}

double room_of_attention(const DeviceProfile& profile) {
  double least = std::numeric_limits<double>::max();
  for (const AttentionCurve& curve : profile.attention) {
    for (const auto& sample : curve.samples) {
      least = std::min(least, room(sample.time, sample_work(curve, sample), profile.datasheet.peak));
    }
    for (const auto& sample : curve.packed) {
      least = std::min(least, room(sample.time, sample_work(curve, sample), profile.datasheet.peak));
    }
  }
  return at_least_one(least);
}

double room_of_memory(const DeviceProfile& profile) {
  if (!profile.memory_bound) return std::numeric_limits<double>::max();
  return at_least_one(profile.datasheet.memory_bandwidth.gigabytes_per_second() /
                      profile.memory_bound->bandwidth.gigabytes_per_second());
}

double room_of_links(const std::optional<LinkProfile>& link) {
  if (!link || !link->send_recv) return std::numeric_limits<double>::max();
  return at_least_one(1 / link->send_recv->efficiency());
}

}  // namespace hdpsim
