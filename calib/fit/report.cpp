#include "calib/fit/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "calib/fit/impl/chart.h"
#include "sim/cost/fitted_attention.h"
#include "sim/cost/fitted_gemm.h"
#include "sim/cost/fitted_transfer.h"

namespace hdpsim::calib {
namespace {

constexpr double percent = 100;
constexpr double giga = 1e9;

std::string rate_text(double flops) {
  constexpr double tera = 1e12;
  return flops >= tera ? fmt::format("{:.4g} TFLOP/s", flops / tera) : fmt::format("{:.4g} GFLOP/s", flops / giga);
}

std::string seconds_text(double seconds) {
  struct Unit {
    double scale;
    const char* name;
  };
  for (const Unit unit : {Unit{1, "s"}, Unit{1e-3, "ms"}, Unit{1e-6, "us"}, Unit{1e-9, "ns"}}) {
    if (seconds >= unit.scale) return fmt::format("{:.3g} {}", seconds / unit.scale, unit.name);
  }
  return seconds == 0 ? "0" : fmt::format("{:.3g} ps", seconds * 1e12);
}

std::string bandwidth_text(Bandwidth bandwidth) {
  return fmt::format("{:.4g} GB/s", bandwidth.gigabytes_per_second());
}

const NoiseFloor* noise_of(const DeviceProfile& profile, std::string_view family) {
  const auto& noise = profile.samples.noise;
  const auto found = std::find_if(noise.begin(), noise.end(), [&](const NoiseFloor& n) { return n.family == family; });
  return found == noise.end() ? nullptr : &*found;
}

/// One line of the table of a family.
struct Row {
  std::string name;
  std::string form;
  std::string range;
  const FitQuality* quality = nullptr;
};

std::string error_text(const FitError& error) {
  return fmt::format("{:5.2f} {:6.2f}", percent * error.mean, percent * error.max);
}

std::string lines_of(const std::vector<Row>& rows) {
  std::size_t name = 0;
  std::size_t range = 0;
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    range = std::max(range, row.range.size());
  }
  // The box plot shows held-out errors from -10 % to +10 %.
  constexpr double most = 0.1;
  constexpr int box_columns = 21;
  std::string text = fmt::format("  {:<{}}  {:>7}  {:^12}  {:^12}  {:^{}}  {:<{}}  {}\n", "", name, "samples",
                                 "in sample %", "held out %", "-10 %   0   +10 %", box_columns, "range", range, "form");
  for (const Row& row : rows) {
    text += fmt::format("  {:<{}}  {:>7}  {}  {}  {}  {:<{}}  {}\n", row.name, name, row.quality->samples,
                        error_text(row.quality->in_sample), error_text(row.quality->held_out),
                        box_plot(row.quality->residual_deciles, most, box_columns), row.range, range, row.form);
  }
  return text;
}

std::string heading(const DeviceProfile& profile, std::string_view title, std::string_view family) {
  std::string text = fmt::format("\n{}", title);
  if (const NoiseFloor* noise = noise_of(profile, family)) {
    text += fmt::format("   noise floor {:.2f} % mean, {:.2f} % p90, {:.2f} % max ({} pairs)", percent * noise->mean,
                        percent * noise->p90, percent * noise->max, noise->pairs);
  }
  text += '\n';
  return text;
}

// --- attention

double pair_flops(const AttentionFit& fit) {
  return (fit.backward ? 10.0 : 4.0) * static_cast<double>(fit.head_dim);
}

std::string attention_name(const AttentionFit& fit) {
  return fmt::format("{} {} d{}", fit.backward ? "backward" : "forward", fit.causal ? "causal" : "full", fit.head_dim);
}

std::string attention_coefficients(const AttentionFit& fit) {
  std::string text = fmt::format("  {}: launch {}, row {}, row of tiles {}, wave {}, pairs", attention_name(fit),
                                 seconds_text(fit.launch_s), seconds_text(fit.row_s), seconds_text(fit.tile_row_s),
                                 seconds_text(fit.wave_s));
  for (const PairCost& pair : fit.pairs) {
    if (fit.pairs.size() > 1) text += fmt::format(" at {}:", binary_text(static_cast<double>(pair.length)));
    text += fmt::format(" {}", pair.seconds > 0 ? rate_text(pair_flops(fit) / pair.seconds) : "0");
  }
  text += '\n';
  return text;
}

std::string attention_chart(const DeviceProfile& profile, const AttentionFit& fit, int width) {
  const FittedAttention kernel(fit, profile.datasheet.multiprocessors);
  std::vector<ChartPoint> points;
  for (const AttentionCurve& curve : profile.attention) {
    if (curve.causal != fit.causal || curve.backward != fit.backward || curve.head_dim != fit.head_dim) continue;
    for (const AttentionSample& sample : curve.samples) {
      const Mask mask = curve.causal ? Mask::causal : Mask::full;
      const Direction direction = curve.backward ? Direction::backward : Direction::forward;
      const Attention op{{{sample.queries, sample.keys, mask, sample.count}},
                         curve.heads,
                         curve.kv_heads > 0 ? curve.kv_heads : curve.heads,
                         curve.head_dim,
                         direction};
      const double gflop = sample_work(curve, sample).count() / giga;
      points.push_back({static_cast<double>(std::min(sample.queries, sample.keys)), gflop / sample.time.seconds(),
                        gflop / fitted_launch({&kernel, &kernel}, op).seconds});
    }
  }
  return chart(
      points,
      {.title = attention_name(fit), .size_unit = "tokens (shorter side)", .value_unit = "GFLOP/s", .columns = width});
}

std::string attention_part(const DeviceProfile& profile, const ReportOptions& options) {
  if (profile.fits.attention.empty()) return "";
  std::vector<Row> rows;
  for (const AttentionFit& fit : profile.fits.attention) {
    const std::string range = fmt::format("{} ... {} tokens", fit.shortest, fit.longest);
    rows.push_back({attention_name(fit), fit.form, range, &fit.quality});
    if (fit.packed) rows.push_back({"  packed", "", "", &*fit.packed});
  }
  std::string text = heading(profile, "Attention", "attention") + lines_of(rows);
  for (const AttentionFit& fit : profile.fits.attention) text += attention_coefficients(fit);
  if (!options.plots) return text;
  for (const AttentionFit& fit : profile.fits.attention)
    text += fmt::format("\n{}", attention_chart(profile, fit, options.width));
  return text;
}

// --- matrix products

std::string gemm_part(const DeviceProfile& profile, const ReportOptions& options) {
  if (!profile.fits.gemm || !profile.gemm) return "";
  const GemmFit& fit = *profile.fits.gemm;
  std::string text =
      heading(profile, "Matrix products", "gemm") +
      lines_of({{"all shapes", fit.form, fmt::format("{} shapes", profile.gemm->by_shape.size()), &fit.quality}});
  text += fmt::format("  launch {}, work at {}, element {}\n", seconds_text(fit.launch_s),
                      fit.flop_s > 0 ? rate_text(1 / fit.flop_s) : "no cost", seconds_text(fit.element_s));
  if (!options.plots) return text;
  const FittedGemm products(fit, *profile.gemm, profile.datasheet.multiprocessors);
  std::vector<ChartPoint> points;
  for (const GemmShapeSample& sample : profile.gemm->by_shape) {
    const double work = sample_work(sample).count();
    points.push_back({work, work / giga / sample.time.seconds(),
                      work / giga / products.law_seconds({sample.m, sample.n, sample.k})});
  }
  return text + '\n' +
         chart(points, {.title = "samples and the law without its neighbours",
                        .size_unit = "FLOP",
                        .value_unit = "GFLOP/s",
                        .columns = options.width});
}

// --- transfers

template <class Fit>
std::string byte_range(const Fit& fit) {
  return fmt::format("{} ... {} B", binary_text(static_cast<double>(fit.least.count())),
                     binary_text(static_cast<double>(fit.most.count())));
}

std::string curve_text(const TransferCurve& curve) {
  std::string text = seconds_text(curve.latency.seconds()) + " +";
  for (const ByteCost& cost : curve.costs) {
    if (curve.costs.size() > 1) text += fmt::format(" at {}B:", binary_text(static_cast<double>(cost.at.count())));
    text += fmt::format(" {}", cost.bandwidth ? bandwidth_text(*cost.bandwidth) : "nothing");
  }
  return text;
}

template <class Sample, class Fit>
ChartPoint bandwidth_point(const Sample& sample, const Fit& fit) {
  const auto bytes = static_cast<double>(sample.bytes.count());
  return {bytes, bytes / giga / sample.time.seconds(), bytes / giga / fitted_seconds(fit, bytes)};
}

std::string memory_bound_part(const DeviceProfile& profile, const ReportOptions& options) {
  if (profile.fits.memory_bound.empty()) return "";
  std::vector<Row> rows;
  for (const MemoryBoundFit& fit : profile.fits.memory_bound) {
    rows.push_back({fit.kernel, fit.form, byte_range(fit), &fit.quality});
  }
  std::string text = heading(profile, "Memory-bound kernels", "memory_bound") + lines_of(rows);
  for (const MemoryBoundFit& fit : profile.fits.memory_bound) {
    text += fmt::format("  {}: {}\n", fit.kernel, curve_text(fit.curve));
  }
  if (!options.plots) return text;
  std::vector<ChartPoint> points;
  for (const MemoryBoundSample& sample : profile.samples.memory_bound) {
    points.push_back(bandwidth_point(sample, profile.fits.memory_bound.front().curve));
  }
  return text + '\n' +
         chart(points, {.title = "all kernels", .size_unit = "B", .value_unit = "GB/s", .columns = options.width});
}

std::string copies_part(const DeviceProfile& profile) {
  if (profile.fits.copies.empty()) return "";
  std::vector<Row> rows;
  for (const CopyFit& fit : profile.fits.copies) {
    rows.push_back({std::string(copy_kind_name(fit.kind)),
                    fmt::format("{} + {}", seconds_text(fit.latency.seconds()), bandwidth_text(fit.bandwidth)),
                    byte_range(fit), &fit.quality});
  }
  return heading(profile, "Copies to and from host memory", "copies") + lines_of(rows);
}

std::string message_name(const MessageFit& fit) {
  return fmt::format("{} {} x {}", link_kind_name(fit.link), message_kind_name(fit.kind), fit.ranks);
}

std::string messages_part(const DeviceProfile& profile, const ReportOptions& options) {
  if (profile.fits.messages.empty()) return "";
  std::vector<Row> rows;
  for (const MessageFit& fit : profile.fits.messages) {
    std::string form;
    if (fit.lines.size() > 1) form = "least of ";
    if (fit.curve) form = curve_text(*fit.curve);
    for (std::size_t i = 0; i < fit.lines.size(); ++i) {
      const MessageLine& line = fit.lines[i];
      form += fmt::format("{}{} + {}", i == 0 ? "" : ", ", seconds_text(line.latency.seconds()),
                          bandwidth_text(line.bandwidth));
    }
    rows.push_back({message_name(fit), form, byte_range(fit), &fit.quality});
  }
  std::string text = heading(profile, "Messages (sizes as nccl-tests counts them)", "messages") + lines_of(rows);
  if (!options.plots) return text;
  for (const MessageFit& fit : profile.fits.messages) {
    std::vector<ChartPoint> points;
    for (const MessageSample& sample : profile.samples.messages) {
      if (sample.link != fit.link || sample.kind != fit.kind || sample.ranks != fit.ranks) continue;
      points.push_back(bandwidth_point(sample, fit));
    }
    text +=
        '\n' +
        chart(points, {.title = message_name(fit), .size_unit = "B", .value_unit = "GB/s", .columns = options.width});
  }
  return text;
}

std::string interference_part(const DeviceProfile& profile) {
  if (profile.samples.interference.empty()) return "";
  std::string text = "\nInterference: how many times longer a kernel takes while traffic runs (p10 ... p90)\n";
  for (const Interference& pair : profile.samples.interference) {
    const std::string blocks = pair.ctas > 0 ? fmt::format(" ({} thread blocks)", pair.ctas) : "";
    text += fmt::format("  {:<12} under {:<29} {:.3f}  ({:.3f} ... {:.3f})\n", pair.compute, pair.traffic + blocks,
                        pair.slowdown, pair.slowdown_p10, pair.slowdown_p90);
  }
  return text;
}

/// All fits of one family together.
struct Family {
  std::string_view name;
  std::string_view noise_name;
  std::vector<const FitQuality*> fits;
};

std::string line_of(const Family& family, const std::vector<NoiseFloor>& noise) {
  constexpr double to_percent = 100;
  std::int64_t samples = 0;
  double error = 0;
  double worst = 0;
  for (const FitQuality* fit : family.fits) {
    samples += fit->samples;
    error += fit->held_out.mean * static_cast<double>(fit->samples);
    worst = std::max(worst, fit->held_out.max);
  }
  const auto floor =
      std::find_if(noise.begin(), noise.end(), [&](const NoiseFloor& n) { return n.family == family.noise_name; });
  const std::string noise_text = floor == noise.end() ? "-" : fmt::format("{:.2f} %", to_percent * floor->mean);
  return fmt::format("{:<18} {:>8} {:>16} {:>16} {:>13}\n", family.name, samples,
                     fmt::format("{:.2f} %", to_percent * error / static_cast<double>(samples)),
                     fmt::format("{:.2f} %", to_percent * worst), noise_text);
}

}  // namespace

std::string fit_report(const DeviceProfile& profile, const ReportOptions& options) {
  const Provenance& from = profile.provenance;
  std::string text =
      fmt::format("{}{}: {}{}\n", from.device, from.device_name.empty() ? "" : fmt::format(", {}", from.device_name),
                  from.source, from.date.empty() ? "" : fmt::format(", {}", from.date));
  if (profile.fits.empty()) return text + "There are no fits in this profile: it was not measured.\n";
  text += "Errors are |predicted / measured - 1|, mean and max; held out: by a fit that has not seen the sample.\n";
  return text + attention_part(profile, options) + gemm_part(profile, options) + memory_bound_part(profile, options) +
         copies_part(profile) + messages_part(profile, options) + interference_part(profile);
}

std::string fit_summary(const DeviceProfile& profile) {
  const ProfileFits& fits = profile.fits;
  std::vector<Family> families = {{"attention", "attention", {}},  {"attention, packed", "attention", {}},
                                  {"matrix products", "gemm", {}}, {"memory-bound", "memory_bound", {}},
                                  {"copies", "copies", {}},        {"messages", "messages", {}}};
  for (const AttentionFit& fit : fits.attention) {
    families[0].fits.push_back(&fit.quality);
    if (fit.packed) families[1].fits.push_back(&*fit.packed);
  }
  if (fits.gemm) families[2].fits.push_back(&fits.gemm->quality);
  // The fit for all kernels has the samples of every other one, which are not counted twice.
  for (const MemoryBoundFit& fit : fits.memory_bound) {
    if (fit.kernel != every_kernel) families[3].fits.push_back(&fit.quality);
  }
  for (const CopyFit& fit : fits.copies) families[4].fits.push_back(&fit.quality);
  for (const MessageFit& fit : fits.messages) families[5].fits.push_back(&fit.quality);

  std::string text = fmt::format("{:<18} {:>8} {:>16} {:>16} {:>13}\n", "family", "samples", "held-out error",
                                 "at most", "noise floor");
  for (const Family& family : families) {
    if (!family.fits.empty()) text += line_of(family, profile.samples.noise);
  }
  return text;
}

}  // namespace hdpsim::calib
