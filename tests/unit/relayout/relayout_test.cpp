#include "sim/relayout/relayout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "sim/relayout/group_shares.h"
#include "sim/relayout/min_max_split.h"
#include "sim/relayout/state_moves.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

/// What a published script of Malleus states of a model, in MB.
struct PublishedJob {
  std::int64_t tp, pipelines, stages, layers;
  std::vector<TensorCut> cuts;
  std::vector<double> layer_memory;  ///< By stage of the longest pipeline.
  double embedding, extra;
};
constexpr double published_room = 81252 - 4096;

const PublishedJob published_32b{.tp = 2,
                                 .pipelines = 4,
                                 .stages = 4,
                                 .layers = 60,
                                 .cuts = {{1, 1, 1}, {2, 1, 2}},
                                 .layer_memory = {4608.02, 4124.24, 3641.99, 3129.95},
                                 .embedding = 1200,
                                 .extra = 5500};
const PublishedJob published_70b{.tp = 8,
                                 .pipelines = 2,
                                 .stages = 4,
                                 .layers = 80,
                                 .cuts = {{1, 1, 1}, {1.90, 1, 1}, {3.66, 1, 1}, {7.22, 1, 1}},
                                 .layer_memory = {2895, 2685, 2485, 2295, 2110, 1933, 1769, 1647},
                                 .embedding = 600,
                                 .extra = 4700};
const PublishedJob published_110b{.tp = 8,
                                  .pipelines = 2,
                                  .stages = 4,
                                  .layers = 80,
                                  .cuts = {{1, 1, 1}, {1.91, 1, 2}, {3.77, 1, 1}, {7.35, 1, 1}},
                                  .layer_memory = {4240, 3930, 3630, 3338, 3068, 2830, 2597, 2438},
                                  .embedding = 500,
                                  .extra = 4900};

RelayoutJob job_of(const PublishedJob& published) {
  RelayoutJob job{.tp = published.tp,
                  .pipelines = published.pipelines,
                  .stages = published.stages,
                  .layers = published.layers,
                  .micro_batches = 64,
                  .groups = {},
                  .cuts = published.cuts,
                  .memory = published_room,
                  .layer_memory = {},
                  .first_memory = {},
                  .last_memory = {},
                  .extra_memory = {},
                  .seconds = {}};
  for (std::int64_t group = 0; group < job.pipelines * job.stages; ++group) {
    std::vector<std::int64_t>& devices = job.groups.emplace_back(static_cast<std::size_t>(job.tp));
    std::iota(devices.begin(), devices.end(), group * job.tp);
  }
  const auto times = [](std::int64_t cut) { return static_cast<double>(1 << cut); };
  job.layer_memory = [=, layer = published.layer_memory](std::int64_t cut, std::int64_t in_flight) {
    const auto last = static_cast<std::int64_t>(layer.size()) - 1;
    const double more = layer[0] - layer[1];  // of a longer pipeline
    const double stated = layer[static_cast<std::size_t>(std::max<std::int64_t>(0, last + 1 - in_flight))];
    return (stated + more * static_cast<double>(std::max<std::int64_t>(0, in_flight - last - 1))) * times(cut);
  };
  job.first_memory = [=, bytes = published.embedding](std::int64_t cut) { return bytes * times(cut); };
  job.last_memory = job.first_memory;
  job.extra_memory = [bytes = published.extra](std::int64_t) { return bytes; };
  return job;
}

using Counts = std::vector<std::int64_t>;

TEST_CASE("A job without slow devices keeps its mesh", "[relayout]") {
  const RelayoutJob job = job_of(published_32b);
  const Relayout layout = relaid(job, {}).value();
  CHECK(layout.pipelines == uniform_layout(job).pipelines);
  CHECK(layout.suspended.empty());
  CHECK(layout.objective() == Approx(15 * 16));
}

/// A pipeline as the authors' files state it: the cuts of its slow groups, and the layers of all stages.
struct PublishedPipeline {
  std::vector<double> slowdowns;
  Counts cuts;
  Counts layers;
};

double dealt_layers(const RelayoutJob& job, const PublishedPipeline& published) {
  const std::int64_t stages = std::ssize(published.layers);
  CHECK(stage_layers(job, published.slowdowns, published.cuts, stages) == published.layers);
  double slowest = 0;
  for (std::size_t s = 0; s < published.layers.size(); ++s) {
    const double slowdown = s < published.slowdowns.size() ? published.slowdowns[s] : 1;
    slowest = std::max(slowest, slowdown * static_cast<double>(published.layers[s]));
  }
  return slowest;
}

TEST_CASE("Layers and micro-batches are dealt as Malleus' files state", "[relayout]") {
  SECTION("32B, where two slow GPUs are in one pipeline whose memory is full but for its first stage") {
    const RelayoutJob job = job_of(published_32b);
    const double slow = dealt_layers(job, {{2.34, 2}, {0, 1}, {11, 8, 19, 22}});
    const std::vector<SplitPart> pipelines = {{slow, 4}, {.cost = 15, .least = 4, .times = 3}};
    CHECK(least_maximum(64, pipelines) == Approx(270));
    CHECK(min_max_split(64, pipelines) == Counts{10, 18, 18, 18});
  }
  SECTION("70B with a slow GPU") {
    const RelayoutJob job = job_of(published_70b);
    const double slow = dealt_layers(job, {{7.22, 3.66, 1.90}, {3, 2, 1}, {2, 5, 11, 20, 21, 21}});
    const double usual = dealt_layers(job, {{}, {}, {20, 20, 20, 20}});
    const std::vector<SplitPart> pipelines = {{slow, 6}, {usual, 4}};
    CHECK(least_maximum(64, pipelines) == Approx(660));
    CHECK(min_max_split(64, pipelines) == Counts{31, 33});
  }
  SECTION("70B with a slow GPU in each of two nodes") {
    const RelayoutJob job = job_of(published_70b);
    const double first = dealt_layers(job, {{7.22, 7.22, 1.90}, {3, 3, 1}, {2, 2, 8, 17, 17, 17, 17}});
    const double second = dealt_layers(job, {{3.66, 3.66, 1.90}, {2, 2, 1}, {7, 7, 14, 26, 26}});
    CHECK(second == Approx(14 * 1.90));
    const std::vector<SplitPart> pipelines = {{first, 7}, {second, 5}};
    CHECK(least_maximum(64, pipelines) == Approx(665));
    CHECK(min_max_split(64, pipelines) == Counts{39, 25});
  }
}

TEST_CASE("A layout around slow GPUs is at least as good as that of Malleus' files", "[relayout]") {
  struct Case {
    const PublishedJob& job;
    DeviceSlowdowns slow;
    double published;
  };
  const auto at_most = GENERATE_REF(values<Case>({
      {published_32b, {{0, 4.79}, {8, 2.34}}, 270},
      {published_70b, {{3, 12.53}}, 660},
      {published_70b, {{3, 12.53}, {40, 5.63}}, 665},
      {published_110b, {{3, 3.8}, {40, 2.57}}, 32 * 11 * 1.91},
  }));
  const Relayout layout = relaid(job_of(at_most.job), at_most.slow).value();
  CAPTURE(at_most.published, layout.objective());
  CHECK(layout.objective() <= at_most.published * (1 + 1e-12));
  CHECK(layout.is_exhaustive);
}

TEST_CASE("A group goes without a slow GPU where it computes more then, by the authors' weights", "[relayout]") {
  // 32B: 1 / 4.79 < 1 / (2 x 2) < 1 / 2.34.
  CHECK(relaid(job_of(published_32b), {{0, 4.79}, {8, 2.34}}).value().suspended == Counts{0});
  // 110B: 1 / (1.91 x 2) + 1 / 3.77 + 1 / 7.35 = 0.663, and 1 / 0.663 = 1.51.
  CHECK(relaid(job_of(published_110b), {{3, 1.52}}).value().suspended == Counts{3});
  CHECK(relaid(job_of(published_110b), {{3, 1.50}}).value().suspended.empty());
}

/// The layers and the slices of them that a device of a layout has, and whether it has them once.
std::map<std::int64_t, std::set<std::pair<std::int64_t, std::int64_t>>> parts_of_devices(const Relayout& layout,
                                                                                         std::int64_t tp) {
  std::map<std::int64_t, std::set<std::pair<std::int64_t, std::int64_t>>> parts;
  for (const PipelineLayout& pipeline : layout.pipelines) {
    std::int64_t first = 0;
    for (const StageLayout& stage : pipeline.stages) {
      const auto slices = tp / std::ssize(stage.group.devices);
      for (std::int64_t i = 0; i < std::ssize(stage.group.devices); ++i) {
        const std::int64_t device = stage.group.devices[static_cast<std::size_t>(i)];
        REQUIRE_FALSE(parts.contains(device));  // it is in one group
        for (std::int64_t layer = first; layer < first + stage.layers; ++layer) {
          for (std::int64_t slice = 0; slice < slices; ++slice) parts[device].insert({layer, i * slices + slice});
        }
      }
      first += stage.layers;
    }
  }
  return parts;
}

TEST_CASE("a layout has all layers in every pipeline, all micro-batches, and each device once or without work",
          "[relayout]") {
  tests::for_seeds("relayout", 200, [](RandomStream& random) {
    RelayoutJob job = job_of(random.below(2) == 0 ? published_70b : published_32b);
    DeviceSlowdowns slow;
    const std::int64_t devices = job.tp * job.pipelines * job.stages;
    for (std::uint64_t i = random.below(5); i > 0; --i) {
      slow[static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(devices)))] =
          1 + static_cast<double>(random.below(60)) / 10;
    }
    const Relayout layout = relaid(job, slow).value();
    std::int64_t micro_batches = 0;
    for (const PipelineLayout& pipeline : layout.pipelines) {
      std::int64_t layers = 0;
      for (const StageLayout& stage : pipeline.stages) layers += stage.layers;
      REQUIRE(layers == job.layers);
      REQUIRE(pipeline.micro_batches >= std::ssize(pipeline.stages));
      micro_batches += pipeline.micro_batches;
    }
    REQUIRE(micro_batches == job.micro_batches);
    const auto after = parts_of_devices(layout, job.tp);
    REQUIRE(std::ssize(after) + std::ssize(layout.suspended) == devices);
    // Around slow devices nothing is slower than to wait for them.
    REQUIRE(layout.objective() <= on_devices(uniform_layout(job), job, slow).objective() * (1 + 1e-9));

    // What moves to a device is what it did not have, from devices that had it.
    const Relayout before = uniform_layout(job);
    const auto had = parts_of_devices(before, job.tp);
    std::map<std::int64_t, double> received;
    for (const Message& move : state_moves(before, layout, job, 1)) {
      REQUIRE(had.contains(static_cast<std::int64_t>(move.from.index())));
      received[static_cast<std::int64_t>(move.to.index())] += move.bytes * static_cast<double>(job.tp);
    }
    for (const auto& [device, parts] : after) {
      std::int64_t lacks = 0;
      for (const auto& part : parts) lacks += had.at(device).contains(part) ? 0 : 1;
      REQUIRE(received[device] == Approx(static_cast<double>(lacks)));
    }
  });
}

}  // namespace
}  // namespace hdpsim
