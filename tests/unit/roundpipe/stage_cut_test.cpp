#include "sim/roundpipe/stage_cut.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "sim/base/random.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

constexpr double ample = 1e15;  // bytes of a device

std::vector<StreamedLayer> equal_layers(std::int64_t count, double forward = 1, double bytes = 1) {
  return std::vector<StreamedLayer>(static_cast<std::size_t>(count), {forward, 3 * forward, bytes, bytes});
}

// Layers of stages one after another, which must be those of the model.
std::vector<std::int64_t> counts_in_order(std::vector<StageLayers> stages, std::int64_t end) {
  std::sort(stages.begin(), stages.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::int64_t> counts;
  std::int64_t next = 0;
  for (const StageLayers& each : stages) {
    REQUIRE(each.first == next);
    REQUIRE(each.count > 0);
    counts.push_back(each.count);
    next = each.end();
  }
  REQUIRE(next == end);
  return counts;
}

// The fewest packs of consecutive layers, over all ways to divide them.
std::int64_t fewest_packs(std::span<const StreamedLayer> layers,
                          const std::function<bool(std::span<const StreamedLayer>)>& fits) {
  if (layers.empty()) return 0;
  std::int64_t fewest = std::ssize(layers) + 1;
  for (std::size_t count = 1; count <= layers.size(); ++count) {
    if (fits(layers.first(count))) fewest = std::min(fewest, 1 + fewest_packs(layers.subspan(count), fits));
  }
  return fewest;
}

TEST_CASE("three layers run forward in the time in which one runs backward", "[roundpipe]") {
  // The longest stage is at least a backward pass, 3. The last of 10 layers is fused, the other 9 make three stages
  // forward, and nine backward.
  const StageCut cut = stage_cut(equal_layers(10), 8, ample);
  CHECK(cut.longest == 3);
  CHECK(cut.forward == std::vector<StageLayers>{{0, 3}, {3, 3}, {6, 3}});
  CHECK(cut.fused == StageLayers{9, 1});
  CHECK(cut.backward.front() == StageLayers{8, 1});
  CHECK(cut.backward.back() == StageLayers{0, 1});
  CHECK(cut.stages() == 3 + 1 + 9);
}

TEST_CASE("the first stage forward is what is left of layers that are packed from the deepest on", "[roundpipe]") {
  const StageCut cut = stage_cut(equal_layers(9), 8, ample);
  CHECK(cut.forward == std::vector<StageLayers>{{0, 2}, {2, 3}, {5, 3}});
}

TEST_CASE("a head that takes as long as three layers backward shares its stage with none", "[roundpipe]") {
  std::vector<StreamedLayer> layers = equal_layers(6);
  layers.push_back({.forward = 3, .backward = 9, .bytes = 1, .gradient_bytes = 1});
  // Of the sums from 9 to 9.9 only 9 are there: three layers backward or nine forward.
  const StageCut cut = stage_cut(layers, 1, ample);
  CHECK(cut.longest == 9);
  CHECK(cut.fused == StageLayers{6, 1});
  CHECK(cut.forward == std::vector<StageLayers>{{0, 6}});
  CHECK(cut.backward == std::vector<StageLayers>{{3, 3}, {0, 3}});
}

TEST_CASE("a longer stage is taken if it makes enough of them fewer, and not if all GPUs are needed", "[roundpipe]") {
  // Backward 10, 5.5, 5.5: the least longest stage is 10 with three stages backward, 11 has two. Forward passes, of no
  // time, are one stage, and the last layer is fused.
  std::vector<StreamedLayer> layers = {{0, 10, 1, 0}, {0, 5.5, 1, 0}, {0, 5.5, 1, 0}};
  CHECK(stage_cut(layers, 1, ample).longest == 11);  // 3 x 11 < 4 x 10
  CHECK(stage_cut(layers, 1, ample).stages() == 3);
  CHECK(stage_cut(layers, 4, ample).longest == 10);  // 4 x 11 > 4 x 10
}

TEST_CASE("a stage has three tenths of a device's memory, backward with its gradients", "[roundpipe]") {
  // 0.3 x 20 = 6 bytes: six layers forward of 1 byte each, three of 2 backward. The last layer takes 30 backward and the
  // others almost nothing, so that times would let these into one stage. Longer stages, which the deepest of them could
  // share, would not be fewer.
  std::vector<StreamedLayer> layers = equal_layers(12, 0.001);
  layers.push_back({.forward = 10, .backward = 30, .bytes = 1, .gradient_bytes = 1});
  const StageCut cut = stage_cut(layers, 1, 20);
  CHECK(cut.longest == 30);
  CHECK(counts_in_order(cut.forward, 12) == std::vector<std::int64_t>{6, 6});
  CHECK(counts_in_order(cut.backward, 12) == std::vector<std::int64_t>{3, 3, 3, 3});
}

TEST_CASE("a layer that is larger than that has a stage of its own", "[roundpipe]") {
  const StageCut cut = stage_cut(equal_layers(4, 1, 100), 1, 20);
  CHECK(cut.fused.count == 1);
  CHECK(counts_in_order(cut.forward, 3) ==
        std::vector<std::int64_t>{1, 2});  // two forward are as large as one backward
}

TEST_CASE("no division into consecutive stages as long as the cut's has fewer of them", "[roundpipe]") {
  tests::for_seeds("stage_cut", 400, [](RandomStream& random) {
    std::vector<StreamedLayer> layers(1 + random.below(8));
    for (StreamedLayer& each : layers) {
      const double forward = 1 + static_cast<double>(random.below(4));
      each = {forward, forward * static_cast<double>(2 + random.below(3)), 1 + static_cast<double>(random.below(5)), 1};
    }
    const auto gpus = static_cast<std::int64_t>(1 + random.below(6));
    const double memory = 10 + static_cast<double>(random.below(40));
    const StageCut cut = stage_cut(layers, gpus, memory);

    double largest = 0;
    double bytes = 0.3 * memory;
    for (const StreamedLayer& each : layers) {
      largest = std::max({largest, each.forward, each.backward});
      bytes = std::max(bytes, each.bytes + each.gradient_bytes);
    }
    const auto sum = [](std::span<const StreamedLayer> of, double StreamedLayer::*part) {
      double total = 0;
      for (const StreamedLayer& each : of) total += each.*part;
      return total;
    };
    // What the cut costs for a longest stage of so many seconds, with the fewest stages that there are.
    const auto cost = [&](double seconds) {
      const auto fits_backward = [&](std::span<const StreamedLayer> of) {
        return sum(of, &StreamedLayer::backward) <= seconds &&
               sum(of, &StreamedLayer::bytes) + sum(of, &StreamedLayer::gradient_bytes) <= bytes;
      };
      const auto fits_forward = [&](std::span<const StreamedLayer> of) {
        return sum(of, &StreamedLayer::forward) <= seconds && sum(of, &StreamedLayer::bytes) <= bytes;
      };
      std::size_t fused = 0;
      while (fused < layers.size() && fits_backward(std::span(layers).last(fused + 1))) ++fused;
      const auto others = std::span(layers).first(layers.size() - fused);
      return static_cast<double>(
                 std::max(gpus, fewest_packs(others, fits_forward) + 1 + fewest_packs(others, fits_backward))) *
             seconds;
    };
    // Times are whole numbers: so are all sums.
    double least = cost(largest);
    for (double seconds = largest; seconds <= 1.1 * largest; ++seconds) least = std::min(least, cost(seconds));
    CHECK(static_cast<double>(std::max(gpus, cut.stages())) * cut.longest == Approx(least));
    counts_in_order(cut.forward, cut.fused.first);
    counts_in_order(cut.backward, cut.fused.first);
    CHECK(cut.fused.end() == std::ssize(layers));
  });
}

}  // namespace
}  // namespace hdpsim
