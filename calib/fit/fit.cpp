#include "calib/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "calib/fit/impl/families.h"
#include "calib/fit/impl/linear_fits.h"
#include "calib/fit/impl/link_profile.h"
#include "sim/base/check.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/fitted_transfer.h"
#include "sim/cost/impl/sampled_kernels.h"

namespace hdpsim::calib {
namespace {

Mask mask_of(const Attention& op) {
  HDPSIM_CHECK(!op.blocks.empty(), "an attention sample without blocks");
  const Mask mask = op.blocks.front().mask;
  HDPSIM_CHECK(std::all_of(op.blocks.begin(), op.blocks.end(), [&](const auto& block) { return block.mask == mask; }),
               "an attention sample with blocks under both masks");
  return mask;
}

/// Items in groups by a key, in the order of the keys.
template <class Item, class Key>
auto grouped(const std::vector<Item>& items, Key key) {
  std::map<decltype(key(items.front())), std::vector<Item>> groups;
  for (const Item& item : items) groups[key(item)].push_back(item);
  return groups;
}

class Fitter {
 public:
  Fitter(const Samples& samples, const FitOptions& options) : samples_(samples), options_(options) {}

  DeviceProfile profile() {
    provenance();
    datasheet();
    attention();
    gemm();
    memory_bound();
    copies();
    messages();
    for (const InterferenceTiming& pair : samples_.interference) {
      profile_.samples.interference.push_back(
          {pair.compute, pair.traffic, pair.ctas, pair.slowdown, pair.slowdown_p10, pair.slowdown_p90});
    }
    profile_.samples.noise = samples_.noise;
    if (samples_.launch_s > 0) {
      profile_.overheads.kernel_launch = {Duration::seconds(samples_.launch_s), "the smallest kernel there is"};
    }
    profile_.element_bytes = samples_.circumstances.element_bytes;
    profile_.backward_ring = {4, "the kernels of this project sum gradients of keys and values in fp32"};
    return std::move(profile_);
  }

 private:
  void provenance() {
    const Circumstances& device = samples_.circumstances;
    std::string source = options_.source.empty() ? "Measured with the kernels of this project" : options_.source;
    if (!device.instruction_set.empty()) source += fmt::format("; {}", device.instruction_set);
    profile_.provenance = {.label = ProfileLabel::measured,
                           .source = source,
                           .device = device.device,
                           .devices = device.devices,
                           .implied_by = {},
                           .device_name = device.device_name,
                           .driver = device.driver,
                           .cuda = device.cuda,
                           .nccl = device.nccl,
                           .clocks = device.clocks,
                           .date = device.date,
                           .commit = device.commit,
                           .fit = {},
                           .traces = {}};
  }

  void datasheet() {
    const Circumstances& device = samples_.circumstances;
    HDPSIM_CHECK(device.peak_flops > 0 && device.memory_bandwidth > 0 && device.memory_bytes > 0,
                 "a device of {} FLOP/s, {} B/s and {} bytes", device.peak_flops, device.memory_bandwidth,
                 device.memory_bytes);
    profile_.datasheet = {rate_of(device.peak_flops),
                          Bandwidth::bytes_per_second(static_cast<std::int64_t>(device.memory_bandwidth)),
                          Bytes(device.memory_bytes), device.multiprocessors, device.peak_source};
  }

  // A measured peak can be a little below the best kernel's rate: the fastest of all counts as the peak.
  void raise_peak(Flops work, Duration time) {
    if (work / profile_.datasheet.peak <= time) return;
    constexpr double above_rounding = 1 + 1e-6;
    profile_.datasheet.peak = rate_of(above_rounding * work.count() / time.seconds());
    const std::string note = "; raised to the fastest kernel that was measured";
    if (!profile_.datasheet.source.ends_with(note)) profile_.datasheet.source += note;
  }

  // The fixed part of a launch that the tables subtract from a sample; every sample must stay positive.
  [[nodiscard]] Duration launch_below(double fastest_s) const {
    return Duration::seconds(std::min(samples_.launch_s, fastest_s / 2));
  }

  void attention() {
    using Kernel = std::tuple<Direction, std::int64_t, Mask>;
    const auto kernels = grouped(samples_.attention, [](const AttentionTiming& sample) {
      return Kernel(sample.op.direction, -sample.op.head_dim, mask_of(sample.op));
    });
    for (const auto& [kernel, samples] : kernels) {
      profile_.fits.attention.push_back(fit_attention(samples, samples_.circumstances, options_.seed));
      auto by_heads = grouped(
          samples, [](const AttentionTiming& sample) { return std::pair(sample.op.heads, sample.op.kv_heads); });
      std::vector<std::vector<AttentionTiming>> curves;
      curves.reserve(by_heads.size());
      for (auto& [heads, own] : by_heads) curves.push_back(std::move(own));
      // The tables take the first curve that fits, so the one with most samples comes first.
      std::stable_sort(curves.begin(), curves.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
      for (const auto& own : curves) profile_.attention.push_back(curve(own));
    }
  }

  AttentionCurve curve(const std::vector<AttentionTiming>& samples) {
    const Circumstances& device = samples_.circumstances;
    const Attention& first = samples.front().op;
    AttentionCurve curve;
    curve.causal = mask_of(first) == Mask::causal;
    curve.backward = first.direction == Direction::backward;
    curve.head_dim = first.head_dim;
    curve.heads = first.heads;
    curve.kv_heads = first.kv_heads;
    curve.tile_queries = device.attention_tile_queries;
    curve.tile_keys = device.attention_tile_keys;
    double fastest = samples.front().timing.median_s;
    for (const AttentionTiming& sample : samples) {
      fastest = std::min(fastest, sample.timing.median_s);
      add(curve, sample);
    }
    curve.launch = launch_below(fastest);
    return curve;
  }

  void add(AttentionCurve& curve, const AttentionTiming& sample) {
    const Duration time = Duration::seconds(sample.timing.median_s);
    const std::vector<AttentionBlock>& blocks = sample.op.blocks;
    if (blocks.size() == 1) {
      const AttentionBlock& block = blocks.front();
      curve.samples.push_back({block.queries, block.keys, block.count, time, spread_of(sample.timing)});
      raise_peak(sample_work(curve, curve.samples.back()), time);
      return;
    }
    PackedSample packed{{}, time, spread_of(sample.timing)};
    for (const AttentionBlock& block : blocks) {
      packed.documents.insert(packed.documents.end(), static_cast<std::size_t>(block.count),
                              {block.queries, block.keys});
    }
    raise_peak(sample_work(curve, packed), time);
    curve.packed.push_back(std::move(packed));
  }

  void gemm() {
    if (samples_.gemm.empty()) return;
    const Circumstances& device = samples_.circumstances;
    GemmTable table;
    table.tile_m = device.gemm_tile_m;
    table.tile_n = device.gemm_tile_n;
    double fastest = samples_.gemm.front().timing.median_s;
    double rate = 0;
    for (const GemmTiming& sample : samples_.gemm) {
      const double seconds = sample.timing.median_s;
      const Gemm& op = sample.op;
      table.by_shape.push_back({op.m, op.n, op.k, Duration::seconds(seconds), spread_of(sample.timing)});
      raise_peak(sample_work(table.by_shape.back()), table.by_shape.back().time);
      fastest = std::min(fastest, seconds);
      rate = std::max(rate, wave_rounded_work({table.tile_m, table.tile_n}, device.multiprocessors, op) / seconds);
    }
    table.launch = launch_below(fastest);
    table.full_rate = rate_of(std::min(rate, profile_.datasheet.peak.per_second()));
    profile_.fits.gemm = fit_gemm(table, device.multiprocessors, options_.seed);
    profile_.gemm = std::move(table);
  }

  void memory_bound() {
    std::vector<MemoryBoundSample>& samples = profile_.samples.memory_bound;
    for (const MemoryBoundTiming& timing : samples_.memory_bound) {
      samples.push_back(
          {timing.kernel, Bytes(timing.bytes), Duration::seconds(timing.timing.median_s), spread_of(timing.timing)});
    }
    if (samples.empty()) return;
    profile_.fits.memory_bound = fit_memory_bound(samples, options_.seed);
    const TransferCurve& all = profile_.fits.memory_bound.front().curve;
    if (const auto& beyond_caches = all.costs.back().bandwidth) {
      profile_.memory_bound = MemoryBoundRate{all.latency, *beyond_caches, ""};
    }
  }

  void copies() {
    std::vector<CopySample>& samples = profile_.samples.copies;
    for (const CopyTiming& timing : samples_.copies) {
      samples.push_back(
          {timing.kind, Bytes(timing.bytes), Duration::seconds(timing.timing.median_s), spread_of(timing.timing)});
    }
    for (const auto& [kind, own] : grouped(samples, [](const CopySample& s) { return s.kind; })) {
      profile_.fits.copies.push_back(fit_copies(own, options_.seed));
    }
    const std::vector<CopyFit>& fits = profile_.fits.copies;  // by kind
    if (fits.size() < copy_kind_count) return;
    profile_.host_copies = HostCopies{std::max(fits[0].latency, fits[1].latency),
                                      fits[0].bandwidth,
                                      fits[1].bandwidth,
                                      fits[2].bandwidth,
                                      fits[3].bandwidth,
                                      ""};
  }

  void messages() {
    std::vector<MessageSample>& samples = profile_.samples.messages;
    for (const MessageTiming& timing : samples_.messages) {
      HDPSIM_CHECK(timing.ranks >= 2, "a message among {} ranks crosses no link", timing.ranks);
      samples.push_back({timing.link, timing.kind, timing.ranks, Bytes(timing.bytes),
                         Duration::seconds(timing.timing.median_s), spread_of(timing.timing)});
    }
    const auto alike = [](const MessageSample& s) { return std::tuple(s.link, s.kind, s.ranks); };
    for (const auto& [key, own] : grouped(samples, alike)) {
      profile_.fits.messages.push_back(fit_messages(own, options_.seed));
    }
    profile_.nvlink = link_profile(samples, LinkKind::nvlink);
    profile_.network = link_profile(samples, LinkKind::network);
  }

  const Samples& samples_;
  const FitOptions& options_;
  DeviceProfile profile_;
};

// Without the samples, because the profile would repeat the sample of a launch that has one.
DeviceProfile fits_alone(DeviceProfile profile) {
  profile.attention.clear();
  return profile;
}

}  // namespace

DeviceProfile fit_profile(const Samples& samples, const FitOptions& options) {
  return Fitter(samples, options).profile();
}

Samples slower_than_fitted(const Samples& samples, const DeviceProfile& profile, double share) {
  Samples found;
  found.circumstances = samples.circumstances;
  const auto is_slower = [share](const Timing& timing, double fitted_s) {
    return timing.median_s > (1 + share) * fitted_s;
  };
  const auto cost = make_cost_model(fits_alone(profile));
  for (const AttentionTiming& sample : samples.attention) {
    if (is_slower(sample.timing, cost->attention(sample.op).time.seconds())) found.attention.push_back(sample);
  }
  for (const MemoryBoundTiming& sample : samples.memory_bound) {
    for (const MemoryBoundFit& fit : profile.fits.memory_bound) {
      if (fit.kernel != sample.kernel) continue;
      const double fitted_s = fitted_seconds(fit.curve, static_cast<double>(sample.bytes));
      if (is_slower(sample.timing, fitted_s)) found.memory_bound.push_back(sample);
    }
  }
  for (const MessageTiming& sample : samples.messages) {
    const MessageFit* fit = message_fit(profile.fits, sample.link, sample.kind, sample.ranks);
    if (fit == nullptr) continue;
    const double fitted_s = fitted_seconds(*fit, static_cast<double>(sample.bytes));
    if (is_slower(sample.timing, fitted_s)) found.messages.push_back(sample);
  }
  return found;
}

}  // namespace hdpsim::calib
