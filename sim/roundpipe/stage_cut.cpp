#include "sim/roundpipe/stage_cut.h"

#include <algorithm>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr double streamed_share = 0.6;  // of a device's memory, for the weights of two stages
constexpr double longest_tried = 1.1;   // in times of the largest layer
// The same layers added in another order make another sum, which is to be no longer.
constexpr double rounding = 1 + 1e-12;

struct Limits {
  double seconds = 0;
  double bytes = 0;
};

double forward_bytes(const StreamedLayer& layer) {
  return layer.bytes;
}
double backward_bytes(const StreamedLayer& layer) {
  return layer.bytes + layer.gradient_bytes;
}

double largest_layer(std::span<const StreamedLayer> layers) {
  double most = 0;
  for (const StreamedLayer& each : layers) most = std::max({most, each.forward, each.backward});
  return most;
}

double bytes_of_stage(std::span<const StreamedLayer> layers, double device_memory) {
  double largest = 0;
  for (const StreamedLayer& each : layers) largest = std::max(largest, backward_bytes(each));
  return std::max(streamed_share * device_memory, 2 * largest) / 2;
}

// The sums of consecutive layers' times that are tried, rising.
std::vector<double> candidates(std::span<const StreamedLayer> layers) {
  const double least = largest_layer(layers);
  std::vector<double> sums;
  for (double StreamedLayer::*pass : {&StreamedLayer::forward, &StreamedLayer::backward}) {
    for (std::size_t first = 0; first < layers.size(); ++first) {
      double sum = 0;
      for (std::size_t last = first; last < layers.size() && sum <= longest_tried * least; ++last) {
        sum += layers[last].*pass;
        if (sum >= least && sum <= longest_tried * least) sums.push_back(sum);
      }
    }
  }
  std::sort(sums.begin(), sums.end());
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  return sums;
}

/// Layers that are added one after another, as long as they are within the limits.
class Pack {
 public:
  explicit Pack(const Limits& limits) : limits_(limits) {}
  [[nodiscard]] bool takes(double seconds, double bytes) const {
    return seconds_ + seconds <= limits_.seconds * rounding && bytes_ + bytes <= limits_.bytes * rounding;
  }
  void add(double seconds, double bytes) {
    seconds_ += seconds;
    bytes_ += bytes;
    ++layers_;
  }
  [[nodiscard]] std::int64_t layers() const { return layers_; }

 private:
  Limits limits_;
  double seconds_ = 0;
  double bytes_ = 0;
  std::int64_t layers_ = 0;
};

std::int64_t fused_layers(std::span<const StreamedLayer> layers, const Limits& limits) {
  Pack pack(limits);
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    if (!pack.takes(layer->backward, backward_bytes(*layer))) break;
    pack.add(layer->backward, backward_bytes(*layer));
  }
  return pack.layers();
}

// The numbers of layers of the packs of a list, in its order.
template <class Layers, class Seconds, class Size>
std::vector<std::int64_t> packs(const Layers& layers, const Limits& limits, const Seconds& seconds, const Size& bytes) {
  std::vector<std::int64_t> counts;
  Pack pack(limits);
  for (const StreamedLayer& layer : layers) {
    if (pack.layers() > 0 && !pack.takes(seconds(layer), bytes(layer))) {
      counts.push_back(pack.layers());
      pack = Pack(limits);
    }
    pack.add(seconds(layer), bytes(layer));
  }
  if (pack.layers() > 0) counts.push_back(pack.layers());
  return counts;
}

StageCut cut_for(std::span<const StreamedLayer> layers, const Limits& limits) {
  StageCut cut;
  cut.longest = limits.seconds;
  cut.fused.count = fused_layers(layers, limits);
  cut.fused.first = std::ssize(layers) - cut.fused.count;
  const auto others = layers.first(static_cast<std::size_t>(cut.fused.first));
  const std::vector<StreamedLayer> deepest_first(others.rbegin(), others.rend());
  const auto forward = [](const StreamedLayer& layer) { return layer.forward; };
  const auto backward = [](const StreamedLayer& layer) { return layer.backward; };
  std::int64_t end = cut.fused.first;
  for (const std::int64_t count : packs(deepest_first, limits, forward, forward_bytes)) {
    end -= count;
    cut.forward.push_back({end, count});
  }
  std::reverse(cut.forward.begin(), cut.forward.end());
  std::int64_t first = 0;
  for (const std::int64_t count : packs(others, limits, backward, backward_bytes)) {
    cut.backward.push_back({first, count});
    first += count;
  }
  std::reverse(cut.backward.begin(), cut.backward.end());
  return cut;
}

}  // namespace

StageCut stage_cut(std::span<const StreamedLayer> layers, std::int64_t gpus, double device_memory) {
  HDPSIM_CHECK(!layers.empty() && gpus > 0, "{} layers for {} GPUs", layers.size(), gpus);
  const double bytes = bytes_of_stage(layers, device_memory);
  StageCut best;
  double least = 0;
  for (const double seconds : candidates(layers)) {
    StageCut cut = cut_for(layers, {seconds, bytes});
    const double cost = static_cast<double>(std::max(cut.stages(), gpus)) * seconds;
    if (best.fused.count > 0 && cost >= least) continue;
    least = cost;
    best = std::move(cut);
  }
  return best;
}

}  // namespace hdpsim
