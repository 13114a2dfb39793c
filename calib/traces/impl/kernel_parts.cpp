#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "calib/fit/fit.h"
#include "calib/traces/impl/trace_parts.h"
#include "sim/base/check.h"
#include "sim/cost/cost_model.h"
#include "sim/profile/scaled_rates.h"

namespace hdpsim::calib {
namespace {

constexpr double tera = 1e12;
constexpr std::size_t enough_products = 8;
const std::size_t traced = narrow_format(ProductFormat::fp8).table;  // traces do not record what shares a scale
constexpr std::size_t enough_lengths = 4;
constexpr double enough_range_of_lengths = 4;
constexpr std::size_t enough_traffics = 6;
constexpr double enough_range_of_traffics = 16;

std::string words_of(const AttentionKind& kind) {
  const auto& [mask, direction, head_dim] = kind;
  return fmt::format("attention {} {} {}", mask == Mask::causal ? "causal" : "full",
                     direction == Direction::forward ? "forward" : "backward", head_dim);
}

bool is_kind(const AttentionKind& kind, bool causal, bool backward, std::int64_t head_dim) {
  const auto& [mask, direction, dim] = kind;
  return (mask == Mask::causal) == causal && (direction == Direction::backward) == backward && dim == head_dim;
}

class KernelParts {
 public:
  explicit KernelParts(TraceParts& parts) : parts_(parts), old_model_(make_cost_model(parts.start)) {
    samples_.launch_s = parts.gap_s;
  }

  void run() {
    products(false);
    products(true);
    attention();
    traffic();
    take_fitted();
  }

 private:
  /// Why there are no samples of a family.
  template <class T>
  [[nodiscard]] std::string reason(const Family<T>& family, std::initializer_list<KernelClass> classes) const {
    double seconds = 0;
    for (const KernelClass kind : classes) seconds += parts_.recording.classes[static_cast<std::size_t>(kind)].seconds;
    if (seconds == 0) return "the traces have no such kernels";
    if (parts_.recording.inputs == 0) return "no shapes were recorded: profile with record_shapes=True";
    if (family.impossible > 0) return "recorded shapes make kernels faster than the data sheet allows";
    if (family.never_alone > 0) return "no such kernel ran alone";
    return "the recorded inputs do not tell the shapes of such kernels";
  }

  void note_left_out(std::string_view part, std::int64_t impossible) {
    if (impossible == 0) return;
    parts_.keep(fmt::format("{} of {} sizes", part, impossible),
                "faster than the data sheet allows: the shapes cannot be theirs");
  }

  void products(bool fp8) {
    const std::string part(fp8 ? narrow_tables.at(traced).key : "gemm");
    const Family<GemmTiming> family = product_samples(parts_.recording, parts_.start.datasheet, parts_.gap_s, fp8);
    if (family.timings.empty()) {
      const bool others = fp8 && std::any_of(parts_.recording.products.begin(), parts_.recording.products.end(),
                                             [](const auto& item) { return !is_narrow(item.first.op.format); });
      return parts_.keep(part, others ? "the traces have none of known shape" : reason(family, {KernelClass::product}));
    }
    note_left_out(part, family.impossible);
    if (!fp8 && (family.timings.size() >= enough_products || !parts_.start.gemm)) {
      samples_.gemm = family.timings;
      fitted_.push_back({part, family.kernels, family.timings.size()});
      return;
    }
    if (fp8 && !parts_.start.gemm_narrow[traced])
      return parts_.keep(part, "the starting profile has no products in fp8 to scale");
    std::vector<double> ratios;
    for (const GemmTiming& timing : family.timings) {
      ratios.push_back(timing.timing.median_s / old_model_->gemm(timing.op).time.seconds());
    }
    DeviceProfile scaled = only_products(fp8);
    scale_products(scaled, 1 / parts_.scaled_by(part, ratios, family.kernels, fp8 ? 1e9 : room_of_products(scaled)));
    if (fp8) {
      parts_.result.gemm_narrow[traced] = scaled.gemm_narrow[traced];
      parts_.result.gemm_narrow[traced]->source = parts_.scaled_source(parts_.start.gemm_narrow[traced]->source);
    } else {
      parts_.result.gemm = scaled.gemm;
      parts_.result.fits.gemm = scaled.fits.gemm;
      parts_.result.gemm->source = parts_.scaled_source(parts_.start.gemm->source);
    }
  }

  [[nodiscard]] DeviceProfile only_products(bool fp8) const {
    DeviceProfile part;
    part.datasheet = parts_.start.datasheet;
    (fp8 ? part.gemm_narrow[traced] : part.gemm) = fp8 ? parts_.start.gemm_narrow[traced] : parts_.start.gemm;
    if (!fp8) part.fits.gemm = parts_.start.fits.gemm;
    return part;
  }

  void attention() {
    const Family<AttentionTiming> family = attention_samples(parts_.recording, parts_.start.datasheet, parts_.gap_s);
    if (family.timings.empty()) {
      return parts_.keep("attention",
                         reason(family, {KernelClass::attention_forward, KernelClass::attention_backward}));
    }
    note_left_out("attention", family.impossible);
    std::map<AttentionKind, std::vector<AttentionTiming>> kinds;
    for (const AttentionTiming& timing : family.timings) kinds[kind_of(timing.op)].push_back(timing);
    for (const auto& [kind, timings] : kinds) attention_of(kind, timings);
    parts_.keep("attention of other masks, directions and head dimensions", "the traces have none");
  }

  void attention_of(const AttentionKind& kind, const std::vector<AttentionTiming>& timings) {
    std::vector<std::int64_t> lengths;
    std::vector<double> ratios;
    std::int64_t launches = 0;
    for (const AttentionTiming& timing : timings) {
      lengths.push_back(timing.op.blocks.front().queries);
      ratios.push_back(timing.timing.median_s / old_model_->attention(timing.op).time.seconds());
      launches += timing.timing.runs;
    }
    DeviceProfile known = only_attention(kind);
    const bool rich = different(lengths) >= enough_lengths && range_of(lengths) >= enough_range_of_lengths;
    if (rich || known.attention.empty()) {
      samples_.attention.insert(samples_.attention.end(), timings.begin(), timings.end());
      fitted_.push_back({words_of(kind), launches, timings.size()});
      replaced_.push_back(kind);
      return;
    }
    scale_attention(known, 1 / parts_.scaled_by(words_of(kind), ratios, launches, room_of_attention(known)));
    for (AttentionCurve& curve : known.attention) {
      const auto old = std::find_if(parts_.result.attention.begin(), parts_.result.attention.end(),
                                    [&](const AttentionCurve& other) {
                                      return is_kind(kind, other.causal, other.backward, other.head_dim) &&
                                             other.heads == curve.heads && other.kv_heads == curve.kv_heads;
                                    });
      curve.source = parts_.scaled_source(old->source);
      *old = std::move(curve);
    }
    for (AttentionFit& fit : parts_.result.fits.attention) {
      if (is_kind(kind, fit.causal, fit.backward, fit.head_dim)) fit = known.fits.attention.front();
    }
  }

  [[nodiscard]] DeviceProfile only_attention(const AttentionKind& kind) const {
    DeviceProfile part;
    part.datasheet = parts_.start.datasheet;
    const auto is_it = [&](const auto& item) { return is_kind(kind, item.causal, item.backward, item.head_dim); };
    std::copy_if(parts_.start.attention.begin(), parts_.start.attention.end(), std::back_inserter(part.attention),
                 is_it);
    std::copy_if(parts_.start.fits.attention.begin(), parts_.start.fits.attention.end(),
                 std::back_inserter(part.fits.attention), is_it);
    return part;
  }

  void traffic() {
    const Family<MemoryBoundTiming> family = traffic_samples(parts_.recording, parts_.start.datasheet, parts_.gap_s);
    if (family.timings.empty()) return parts_.keep("memory_bound", reason(family, {KernelClass::memory_bound}));
    note_left_out("memory_bound", family.impossible);
    std::vector<std::int64_t> sizes;
    std::vector<double> ratios;
    for (const MemoryBoundTiming& timing : family.timings) {
      sizes.push_back(timing.bytes);
      const MemoryBound op{Bytes(timing.bytes), 1, MemoryKernel::other};
      ratios.push_back(timing.timing.median_s / old_model_->memory_bound(op).time.seconds());
    }
    const bool rich = different(sizes) >= enough_traffics && range_of(sizes) >= enough_range_of_traffics;
    if (rich || !parts_.start.memory_bound) {
      samples_.memory_bound = family.timings;
      fitted_.push_back({"memory_bound", family.kernels, family.timings.size()});
      return;
    }
    DeviceProfile scaled;
    scaled.datasheet = parts_.start.datasheet;
    scaled.memory_bound = parts_.start.memory_bound;
    scaled.fits.memory_bound = parts_.start.fits.memory_bound;
    scale_memory(scaled, 1 / parts_.scaled_by("memory_bound", ratios, family.kernels, room_of_memory(scaled)));
    parts_.result.memory_bound = scaled.memory_bound;
    parts_.result.memory_bound->source = parts_.scaled_source(parts_.start.memory_bound->source);
    parts_.result.fits.memory_bound = scaled.fits.memory_bound;
  }

  /// Fits the families with enough sizes, all at once, and takes the parts over.
  void take_fitted() {
    if (fitted_.empty()) return;
    samples_.circumstances = circumstances_of(parts_.start);
    const DeviceProfile fitted = fit_profile(samples_, {.source = parts_.options.source, .seed = parts_.options.seed});
    if (fitted.gemm) {
      parts_.result.gemm = fitted.gemm;
      parts_.result.gemm->source = from_traces;
      parts_.result.fits.gemm = fitted.fits.gemm;
    }
    if (fitted.memory_bound) {
      parts_.result.memory_bound = fitted.memory_bound;
      parts_.result.memory_bound->source = from_traces;
    }
    if (!fitted.fits.memory_bound.empty()) {
      parts_.result.fits.memory_bound = fitted.fits.memory_bound;
      parts_.result.samples.memory_bound = fitted.samples.memory_bound;
    }
    replace_attention(fitted);
    record_fitted();
  }

  void replace_attention(const DeviceProfile& fitted) {
    const auto is_replaced = [&](const auto& item) {
      return std::any_of(replaced_.begin(), replaced_.end(), [&](const AttentionKind& kind) {
        return is_kind(kind, item.causal, item.backward, item.head_dim);
      });
    };
    std::erase_if(parts_.result.attention, is_replaced);
    std::erase_if(parts_.result.fits.attention, is_replaced);
    for (AttentionCurve curve : fitted.attention) {
      curve.source = from_traces;
      parts_.result.attention.push_back(std::move(curve));
    }
    const std::vector<AttentionFit>& fits = fitted.fits.attention;
    parts_.result.fits.attention.insert(parts_.result.fits.attention.end(), fits.begin(), fits.end());
  }

  struct FittedFamily {
    std::string part;
    std::int64_t samples = 0;
    std::size_t sizes = 0;
  };

  void record_fitted() {
    for (const FittedFamily& family : fitted_) {
      if (family.part == "gemm") {
        record(family, parts_.result.fits.gemm->quality,
               fmt::format("{:.4g} TFLOP/s at most", parts_.result.gemm->full_rate.per_second() / tera));
      } else if (family.part == "memory_bound") {
        record(family, parts_.result.fits.memory_bound.front().quality,
               parts_.result.memory_bound
                   ? fmt::format("{:.4g} GB/s", parts_.result.memory_bound->bandwidth.gigabytes_per_second())
                   : "no bandwidth");
      } else {
        record_attention(family);
      }
    }
  }

  void record_attention(const FittedFamily& family) {
    double most = 0;
    const AttentionFit* fit = nullptr;
    for (const AttentionTiming& timing : samples_.attention) {
      const AttentionKind kind = kind_of(timing.op);
      if (words_of(kind) != family.part) continue;
      most = std::max(most, rate_of_launch(timing));
      for (const AttentionFit& other : parts_.result.fits.attention) {
        if (is_kind(kind, other.causal, other.backward, other.head_dim)) fit = &other;
      }
    }
    HDPSIM_CHECK(fit != nullptr, "{} was not fitted", family.part);
    record(family, fit->quality, fmt::format("{:.4g} TFLOP/s at most", most / tera));
  }

  // A fit states what it predicts of sizes that it has not seen, as predicted / measured - 1.
  void record(const FittedFamily& family, const FitQuality& quality, std::string value) {
    SampleSet ratios;
    for (const double error : quality.residual_deciles) {
      if (error > -1) ratios.add(1 / (1 + error));
    }
    if (ratios.empty()) ratios.add(1);
    parts_.take(family.part, "fitted", std::move(value), family.samples, family.sizes, ratios);
  }

  [[nodiscard]] static double rate_of_launch(const AttentionTiming& timing) {
    const AttentionBlock& block = timing.op.blocks.front();
    AttentionCurve curve;
    curve.causal = block.mask == Mask::causal;
    curve.backward = timing.op.direction == Direction::backward;
    curve.head_dim = timing.op.head_dim;
    curve.heads = timing.op.heads;
    const AttentionSample sample{block.queries, block.keys, block.count, {}, {}};
    return sample_work(curve, sample).count() / timing.timing.median_s;
  }

  TraceParts& parts_;
  std::unique_ptr<CostModel> old_model_;
  Samples samples_;
  std::vector<FittedFamily> fitted_;
  std::vector<AttentionKind> replaced_;
};

}  // namespace

void take_kernels(TraceParts& parts) {
  KernelParts(parts).run();
}

}  // namespace hdpsim::calib
