#include "calib/measure/measurement_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "calib/measure/workload.h"
#include "tests/support/catch.h"
#include "tests/support/synthetic_backend.h"

namespace hdpsim::calib {
namespace {

using test::SyntheticDevice;
using test::SyntheticLaw;

std::vector<Planned> plan_on(SyntheticDevice& device, const Wishes& wishes) {
  return plan_measurements(device, device.speed(device.circumstances()), wishes);
}

std::map<std::string, int> families_of(const std::vector<Planned>& plan) {
  std::map<std::string, int> counts;
  for (const Planned& planned : plan) ++counts[std::string(family_of(planned.subject))];
  return counts;
}

std::vector<Attention> attention_of(const std::vector<Planned>& plan) {
  std::vector<Attention> launches;
  for (const Planned& planned : plan) {
    if (const auto* op = std::get_if<Attention>(&planned.subject)) launches.push_back(*op);
  }
  return launches;
}

std::int64_t longest_of(const std::vector<Planned>& plan) {
  std::int64_t longest = 0;
  for (const Attention& op : attention_of(plan)) {
    for (const AttentionBlock& block : op.blocks) longest = std::max(longest, block.queries);
  }
  return longest;
}

TEST_CASE("a plan is expected to end within its budget, all rounds together", "[calibration_plan]") {
  const double budget = GENERATE(2.0, 20.0, 200.0);
  CAPTURE(budget);
  SyntheticDevice device;
  double expected = 0;
  double essential = 0;
  for (const Planned& planned : plan_on(device, {.budget_s = budget})) {
    expected += 2 * planned.expected_s;
    if (planned.essential) essential += 2 * planned.expected_s;
  }
  CHECK(expected - essential <= budget);  // a budget of two seconds has no place for what every plan needs
  CHECK(expected >= 0.5 * budget);
}

TEST_CASE("no plan measures a thing twice a round", "[calibration_plan]") {
  SyntheticDevice device;
  std::set<std::string> texts;
  for (const Planned& planned : plan_on(device, full_wishes())) {
    CHECK(texts.insert(subject_text(planned.subject)).second);
  }
}

TEST_CASE("a full plan covers every family, mask, direction and head dimension, rectangles and packs",
          "[calibration_plan]") {
  SyntheticDevice device;
  const std::vector<Planned> plan = plan_on(device, full_wishes());
  const auto families = families_of(plan);
  CHECK(families.at("attention") >= 100);
  CHECK(families.at("gemm") >= 60);
  CHECK(families.at("memory_bound") >= 60);
  CHECK(families.at("messages") >= 40);
  CHECK(families.count("copies") == 0);  // the device has none

  std::set<std::tuple<std::int64_t, Direction, Mask>> squares;
  std::set<std::tuple<std::int64_t, Direction, Mask>> packs;
  std::set<std::pair<std::int64_t, Direction>> rectangles;
  for (const Attention& op : attention_of(plan)) {
    const AttentionBlock& first = op.blocks.front();
    if (op.blocks.size() > 1) {
      packs.emplace(op.head_dim, op.direction, first.mask);
    } else if (first.queries == first.keys) {
      squares.emplace(op.head_dim, op.direction, first.mask);
    } else {
      rectangles.emplace(op.head_dim, op.direction);
    }
  }
  CHECK(squares.size() == 8);
  CHECK(packs.size() == 8);
  CHECK(rectangles.size() == 4);
}

TEST_CASE("every memory-bound kernel that the simulator tells from others is measured", "[calibration_plan]") {
  SyntheticDevice device;
  std::set<std::string_view> measured;
  const std::vector<Planned> plan = plan_on(device, full_wishes());
  for (const Planned& planned : plan) {
    if (const auto* op = std::get_if<MemoryBoundSubject>(&planned.subject)) measured.insert(op->kernel);
  }
  for (int kind = 1; kind <= static_cast<int>(MemoryKernel::adam); ++kind) {
    if (static_cast<MemoryKernel>(kind) == MemoryKernel::fp32_loss) continue;  // the kernels here fuse the loss
    CHECK(measured.contains(memory_kernel_name(static_cast<MemoryKernel>(kind))));
  }
}

TEST_CASE("causal blocks have as many keys as queries", "[calibration_plan]") {
  SyntheticDevice device;
  for (const Attention& op : attention_of(plan_on(device, full_wishes()))) {
    for (const AttentionBlock& block : op.blocks) {
      CHECK((block.mask == Mask::full || block.queries == block.keys));
      CHECK((block.queries > 0 && block.keys > 0 && block.count > 0));
    }
  }
}

TEST_CASE("a faster device is measured to greater lengths in the same time", "[calibration_plan]") {
  SyntheticDevice slow(SyntheticLaw{.flops = 50e9});
  SyntheticDevice fast(SyntheticLaw{.flops = 50e12, .bytes_per_s = 1e12});
  const Wishes wishes = quick_wishes();
  CHECK(longest_of(plan_on(fast, wishes)) >= 4 * longest_of(plan_on(slow, wishes)));
}

TEST_CASE("the products of a model come before any others", "[calibration_plan]") {
  SyntheticDevice device(SyntheticLaw{.flops = 500e12, .bytes_per_s = 1e12});
  Transformer model;
  model.name = "m";
  model.layers = 2;
  model.hidden = 1792;
  model.heads = 14;
  model.kv_heads = 14;
  model.head_dim = 128;
  model.ffn_hidden = 4864;
  model.vocabulary = 32'000;
  const std::vector<Planned> plan = plan_on(device, {.budget_s = 120, .model = model});
  const auto has = [&](const Gemm& gemm) {
    return std::any_of(plan.begin(), plan.end(), [&](const Planned& planned) {
      const auto* op = std::get_if<Gemm>(&planned.subject);
      return op != nullptr && *op == gemm;
    });
  };
  CHECK(has({1024, 5376, 1792}));  // Q, K and V at once
  CHECK(has({4096, 1792, 4864}));  // back from the inner width of the MLP
}

TEST_CASE("no tensors are planned that the device's memory does not hold", "[calibration_plan]") {
  SyntheticDevice device(SyntheticLaw{.flops = 500e12});
  DeviceSpeed speed = device.speed(device.circumstances());
  speed.memory_bytes = 1 << 20;
  const std::vector<Planned> plan = plan_measurements(device, speed, full_wishes());
  CHECK_FALSE(plan.empty());
  for (const Planned& planned : plan) {
    CHECK(memory_of(planned.subject, device.backend().element()) <= speed.memory_bytes);
  }
}

TEST_CASE("a shorter time is shared by almost as many subjects, each with fewer samples", "[calibration_plan]") {
  SyntheticDevice device;
  const Wishes quick = quick_wishes();
  const Wishes short_of_time = wishes_within(20, quick);
  CHECK(short_of_time.time_limit_s == 20);
  CHECK(short_of_time.budget_s < 20);
  CHECK(short_of_time.sampling_s < quick.sampling_s);
  CHECK(2 * plan_on(device, short_of_time).size() >= plan_on(device, quick).size());
  CHECK(wishes_within(1000, quick).budget_s == quick.budget_s);
}

TEST_CASE("a device that others share is measured as widely, with fewer samples of each", "[calibration_plan]") {
  SyntheticDevice device;
  DeviceSpeed speed = device.speed(device.circumstances());
  const std::size_t alone = plan_measurements(device, speed, quick_wishes()).size();
  speed.available = 0.2;
  const Wishes wishes = wishes_on(speed, quick_wishes());
  CHECK(wishes.sampling_s < quick_wishes().sampling_s);
  const std::vector<Planned> plan = plan_measurements(device, speed, wishes);
  CHECK(2 * plan.size() >= alone);
  double expected = 0;
  for (const Planned& planned : plan) expected += 2 * planned.expected_s;
  CHECK(expected <= wishes.budget_s);
}

TEST_CASE("a device that others share is measured in many short rounds", "[calibration_plan]") {
  SyntheticDevice device;
  DeviceSpeed speed = device.speed(device.circumstances());
  const Wishes alone = wishes_on(speed, full_wishes());
  CHECK(alone.rounds == full_wishes().rounds);
  speed.shared = true;
  const Wishes shared = wishes_on(speed, full_wishes());
  CHECK(shared.rounds > alone.rounds);
  CHECK(shared.least_rounds > shared.rounds);
  CHECK(shared.most_rounds > shared.least_rounds);
  CHECK(shared.sampling_s < alone.sampling_s);
}

TEST_CASE("messages are left to a file where the wishes say so", "[calibration_plan]") {
  SyntheticDevice device;
  CHECK(families_of(plan_on(device, {.messages = false})).count("messages") == 0);
}

}  // namespace
}  // namespace hdpsim::calib
