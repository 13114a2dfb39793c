#include "calib/measure/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "calib/measure/collect.h"
#include "calib/measure/summary.h"
#include "calib/measure/workload.h"
#include "sim/base/diagnostic.h"

namespace hdpsim::calib {
namespace {

// Long enough for a clock, short enough for a reading with every step.
constexpr double usual_s = 2e-3;
constexpr std::size_t products = 3;
constexpr std::size_t kernels_a_family = 4;
constexpr int runs_a_ratio = 3;
constexpr std::uint64_t pace_seed = 1;

// The distance of a time from the usual one, on a logarithmic scale.
double oddity(Duration time) {
  return std::abs(std::log(time.seconds() / usual_s));
}

bool is_more_usual(Duration a, Duration b) {
  return oddity(a) < oddity(b);
}

template <class Sample>
const Sample* most_usual(const std::vector<Sample>& samples) {
  const auto less = [](const Sample& a, const Sample& b) { return is_more_usual(a.time, b.time); };
  const auto found = std::min_element(samples.begin(), samples.end(), less);
  return found == samples.end() ? nullptr : &*found;
}

Attention launch_of(const AttentionCurve& curve, const AttentionSample& sample) {
  return {.blocks = {{sample.queries, sample.keys, curve.causal ? Mask::causal : Mask::full, sample.count}},
          .heads = curve.heads,
          .kv_heads = curve.kv_heads,
          .head_dim = curve.head_dim,
          .direction = curve.backward ? Direction::backward : Direction::forward};
}

// The sample of a kernel that lasts about as long as usual.
struct TimedKernel {
  Subject subject;
  Duration time;
};

std::vector<TimedKernel> attention_kernels(const DeviceProfile& profile, bool backward) {
  std::vector<TimedKernel> kernels;
  for (const AttentionCurve& curve : profile.attention) {
    const AttentionSample* const sample = most_usual(curve.samples);
    if (curve.backward != backward || sample == nullptr || !sample->spread) continue;  // published: not measured
    kernels.push_back({launch_of(curve, *sample), sample->time});
  }
  return kernels;
}

std::vector<TimedKernel> matrix_products(const DeviceProfile& profile) {
  if (!profile.gemm) return {};
  std::vector<GemmShapeSample> shapes = profile.gemm->by_shape;
  std::erase_if(shapes, [](const GemmShapeSample& shape) { return !shape.spread; });
  std::sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return is_more_usual(a.time, b.time); });
  shapes.resize(std::min(shapes.size(), products));
  std::vector<TimedKernel> kernels;
  for (const GemmShapeSample& shape : shapes) {
    kernels.push_back({Gemm{.m = shape.m, .n = shape.n, .k = shape.k}, shape.time});
  }
  return kernels;
}

std::vector<TimedKernel> memory_bound_kernels(const DeviceProfile& profile) {
  std::map<std::string, std::vector<MemoryBoundSample>> samples;
  for (const MemoryBoundSample& sample : profile.samples.memory_bound) samples[sample.kernel].push_back(sample);
  std::vector<TimedKernel> kernels;
  for (const auto& [kernel, of_kernel] : samples) {
    const MemoryBoundSample& sample = *most_usual(of_kernel);
    kernels.push_back({MemoryBoundSubject{kernel, sample.bytes.count()}, sample.time});
  }
  return kernels;
}

// At most so many of them, the first and the last and others at equal distances.
std::vector<TimedKernel> apart(const std::vector<TimedKernel>& kernels, std::size_t most) {
  if (kernels.size() <= most) return kernels;
  std::vector<TimedKernel> chosen;
  for (std::size_t i = 0; i < most; ++i) chosen.push_back(kernels[i * (kernels.size() - 1) / (most - 1)]);
  return chosen;
}

}  // namespace

PaceMeter::PaceMeter(std::unique_ptr<Device> device, const DeviceProfile& profile, PaceScope scope)
    : device_(std::move(device)), circumstances_(device_->circumstances()), speed_(device_->speed(circumstances_)) {
  take_kernels(profile, scope);
  if (scope == PaceScope::everything) {
    take_messages(profile);
    take_copies(profile);
  }
  if (yardsticks_.empty()) {
    throw InputError("profile " + profile.name + " has no kernels that were timed, so that none can be timed again",
                     "measure one of this machine: hdpsim calibrate");
  }
}

void PaceMeter::take_kernels(const DeviceProfile& profile, PaceScope scope) {
  const auto take_all = [&](CostFamily family, const std::vector<TimedKernel>& kernels) {
    const std::size_t most = scope == PaceScope::everything ? kernels.size() : kernels_a_family;
    for (const TimedKernel& kernel : apart(kernels, most)) take(family, kernel.subject, kernel.time);
  };
  take_all(CostFamily::attention_forward, attention_kernels(profile, false));
  take_all(CostFamily::attention_backward, attention_kernels(profile, true));
  take_all(CostFamily::gemm, matrix_products(profile));
  take_all(CostFamily::memory_bound, memory_bound_kernels(profile));
}

void PaceMeter::take_messages(const DeviceProfile& profile) {
  const std::vector<std::int64_t> rank_counts = device_->rank_counts();
  std::map<std::tuple<LinkKind, MessageKind, std::int64_t>, std::vector<MessageSample>> messages;
  for (const MessageSample& sample : profile.samples.messages) {
    messages[{sample.link, sample.kind, sample.ranks}].push_back(sample);
  }
  for (const auto& [key, samples] : messages) {
    const auto& [link, kind, ranks] = key;
    if (link != LinkKind::nvlink || std::find(rank_counts.begin(), rank_counts.end(), ranks) == rank_counts.end()) {
      not_timed_.push_back(fmt::format("{} of {} ranks{}", message_kind_name(kind), ranks,
                                       link == LinkKind::network ? " between nodes" : ""));
      continue;
    }
    const MessageSample& sample = *most_usual(samples);
    take(kind == MessageKind::send_recv ? CostFamily::messages : CostFamily::collectives,
         MessageSubject{kind, ranks, sample.bytes.count()}, sample.time);
  }
}

void PaceMeter::take_copies(const DeviceProfile& profile) {
  const std::vector<CopyKind> kinds = device_->copy_kinds();
  std::map<CopyKind, std::vector<CopySample>> copies;
  for (const CopySample& sample : profile.samples.copies) copies[sample.kind].push_back(sample);
  for (const auto& [kind, samples] : copies) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      not_timed_.push_back(fmt::format("copies {}", copy_kind_name(kind)));
      continue;
    }
    const CopySample& sample = *most_usual(samples);
    take(CostFamily::host_copies, CopySubject{kind, sample.bytes.count()}, sample.time);
  }
}

void PaceMeter::take(CostFamily family, Subject subject, Duration then) {
  Repeatable work = prepare(*device_, speed_, subject, pace_seed);
  yardsticks_.push_back({family, std::move(subject), then.seconds(), std::move(work), false});
}

std::vector<PaceRatio> PaceMeter::ratios() {
  std::vector<PaceRatio> ratios;
  for (Yardstick& yardstick : yardsticks_) {
    if (!device_->is_as_found(yardstick.subject)) continue;
    const std::unique_ptr<Neighbours> neighbours = device_->neighbours_at_work(yardstick.subject);
    if (!std::exchange(yardstick.is_warm, true)) (void)yardstick.work.time(1);
    ratios.push_back({.family = yardstick.family,
                      .what = label_of(yardstick.subject),
                      .quantile = quantile_of_rounds(yardstick.subject),
                      .ratio = summary(yardstick.work.time(runs_a_ratio)).median_s / yardstick.then_s});
  }
  return ratios;
}

FamilyFactors PaceMeter::read() {
  return factors_of(ratios());
}

FamilyFactors factors_of(const std::vector<PaceRatio>& ratios) {
  std::map<CostFamily, std::vector<double>> by_family;
  for (const PaceRatio& one : ratios) by_family[one.family].push_back(one.ratio);
  FamilyFactors factors;
  for (const auto& [family, values] : by_family) factors[family] = summary(values).median_s;
  return factors;
}

}  // namespace hdpsim::calib
