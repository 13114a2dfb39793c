// hdp-balance beside every other policy and on better clusters, simulated, over random small studies: models with and
// without experts, pools and pipelines of any shape, batches of few and of many sequences.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "sim/program/program.h"
#include "sim/run/step.h"
#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/random_clusters.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

using tests::one_of;

constexpr std::uint64_t small_studies = 60;

/// A study without plans, the batch of its only step, and changes that should cost no plan time.
struct RandomStudy {
  std::string text;
  Batch batch;
  std::vector<std::string> improvements;
};

// A number of `from` to `to`, as likely in every octave.
std::int64_t any_octave(RandomStream& random, double from, double to) {
  return std::llround(from * std::pow(to / from, random.uniform()));
}

// A body of short sequences, some of them equal, with or without a tail of long ones.
Batch random_batch(RandomStream& random, std::int64_t context, std::int64_t most_tokens) {
  const std::int64_t wanted = any_octave(random, 4, 2000);
  const double median = static_cast<double>(any_octave(random, 256, static_cast<double>(context) / 2));
  const double sigma = 1.5 * random.uniform();
  const double tail = random.below(2) == 0 ? 0.1 * random.uniform() : 0;
  Batch batch;
  std::int64_t total = 0;
  while (std::ssize(batch.sequences) < wanted && (batch.sequences.size() < 4 || total < most_tokens)) {
    double length = median * std::exp(sigma * (random.uniform() + random.uniform() + random.uniform() - 1.5) * 2);
    if (random.uniform() < tail) length = static_cast<double>(context) * std::sqrt(random.uniform());
    batch.sequences.push_back({std::clamp<std::int64_t>(std::llround(length), 16, context)});
    total += batch.sequences.back().tokens;
  }
  return batch;
}

RandomStudy random_study(RandomStream& random) {
  const bool has_experts = random.below(3) == 0;
  const std::int64_t gpus = 8 * one_of(random, {1, 2, 3, 4, 6, 8, 16, 32, 64});
  std::int64_t tp = one_of(random, {1, 2, 4, 8});
  std::int64_t pp = one_of(random, {1, 1, 2, 4});
  while (gpus / (tp * pp) < 2 && pp > 1) pp /= 2;
  while (gpus / (tp * pp) < 2) tp /= 2;
  while (gpus % (tp * pp) != 0) pp /= 2;
  const std::int64_t ranks = gpus / (tp * pp);
  std::int64_t ep = has_experts ? tp * one_of(random, {1, 1, 2, 4}) : 1;
  while (ep > 8 || ranks % std::max<std::int64_t>(1, ep / tp) != 0) ep /= 2;
  const std::int64_t capacity = std::int64_t{2048} << random.below(5);
  const std::int64_t context = std::min<std::int64_t>(capacity * ranks, capacity << random.below(6));
  const std::int64_t layers = pp * one_of(random, {2, 4, 8});
  RandomStudy study;
  study.batch = random_batch(random, context, 24 * ranks * capacity);
  const bool h100 = random.below(2) == 0;
  const std::int64_t nic = 50 << random.below(4);
  study.text = fmt::format(
      R"(name: random
cluster: {{preset: {}, gpus: {}, node: {{gpu_memory: 100 TB, nics: {{bandwidth: {} Gbit/s}}}}}}
model: {{preset: {}, num_hidden_layers: {}}}
profile: {}
data: {{lengths: {{fixed: 16}}, context: {}, tokens_per_step: {}, steps: 1}}
mesh: {{tp: {}, pp: {}, capacity: {}{}}}
{})",
      h100 ? "h100-rail" : "a100-rail-3tier", gpus, nic,
      has_experts            ? "mixtral-8x7b"
      : random.below(2) == 0 ? "llama3-8b"
                             : "llama-7b",
      layers, h100 ? "h100-published" : "bytescale-implied", context, context, tp, pp, capacity,
      ep > 1 ? fmt::format(", ep: {}", ep) : "", ep > tp ? "moe: {across: waves}\n" : "");
  study.improvements = {fmt::format("mesh.capacity={}", 2 * capacity),
                        fmt::format("cluster.node.nics.bandwidth={} Gbit/s", 2 * nic),
                        fmt::format("cluster.node.nvlink.bandwidth={} GB/s", h100 ? 900 : 600)};
  return study;
}

// 512 GPUs that know of faults, and documents of up to 64Ki tokens of all lengths.
RandomStudy study_of_pipelines(std::uint64_t seed, int pp) {
  constexpr std::int64_t context = 65536;
  RandomStream random(seed, "pipelines");
  RandomStudy study;
  for (std::int64_t left = 8 << 20; left > 0; left -= study.batch.sequences.back().tokens) {
    study.batch.sequences.push_back({std::min(left, any_octave(random, 64, context))});
  }
  study.text = fmt::format(R"(name: pipelines
cluster: {{preset: h100-rail, gpus: 512}}
model: {{preset: llama3-8b, num_hidden_layers: 8}}
profile: h100-published
data: {{lengths: {{fixed: 16}}, context: {}, tokens_per_step: {}, steps: 1}}
mesh: {{tp: 2, pp: {}, capacity: 8Ki}}
planner: {{knows: [faults]}}
)",
                           context, context, pp);
  return study;
}

/// What one plan of a batch takes.
struct Outcome {
  double seconds = 0;
  bool fits = true;  ///< No rank holds more than its capacity.
};

std::optional<Outcome> outcome_of(const Study& study, const Batch& batch) {
  const StudyPoint& point = study.points[0];
  try {
    const Plan plan = make_plan(point, 0, 0, batch);
    const Program program(plan, point.lowered);
    const auto world = point.make_world();
    return Outcome{simulate_plan(program, *world, conditions_of(point)).step_time.seconds(),
                   tokens_held(plan) <= point.spec.capacity};
  } catch (const InputError&) {  // the policy has no plan for the batch
    return std::nullopt;
  }
}

/// Simulates policies on random studies.
class Arena {
 public:
  /// hdp-balance on the study as it was drawn from `seed`, once for all tests. It has a plan of every batch.
  Outcome balanced(std::uint64_t seed, const RandomStudy& drawn) {
    static std::map<std::uint64_t, Outcome> known;
    const auto found = known.find(seed);
    if (found != known.end()) return found->second;
    const auto outcome = run(drawn, "hdp-balance");
    REQUIRE(outcome);
    return known.emplace(seed, *outcome).first->second;
  }

  /// Nothing where the policy does not suit the pool or the batch.
  std::optional<Outcome> run(const RandomStudy& drawn, const std::string& policy,
                             const std::vector<std::string>& overrides = {}) {
    try {
      const Study study = parse_study("study.yaml", drawn.text + "plans: [" + policy + "]\n", overrides, catalog_);
      return outcome_of(study, drawn.batch);
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

 private:
  Catalog catalog_{HDPSIM_SOURCE_DIR};
};

std::string replay(std::uint64_t seed, const RandomStudy& drawn) {
  return fmt::format("replay: HDPSIM_SEED={} test_property [best]\n{}{} sequences", seed, drawn.text,
                     drawn.batch.sequences.size());
}

/// A policy that was faster, and by how much.
struct Behind {
  std::string policy;
  double ratio = 0;
};

Behind most_behind(Arena& arena, const RandomStudy& drawn, double ours) {
  Behind most;
  for (const std::string& policy : policy_names()) {
    if (policy == "hdp-balance") continue;
    const auto other = arena.run(drawn, policy);
    if (other && other->fits && ours / other->seconds > most.ratio) most = {policy, ours / other->seconds};
  }
  return most;
}

}  // namespace

TEST_CASE("hdp-balance is as fast as the fastest other policy, in nearly all small studies within a hundredth",
          "[property][best]") {
  constexpr double equal = 1.01;
  constexpr double much = 1.05;
  constexpr std::int64_t one_in = 50;  // may lose by more than a hundredth
  Arena arena;
  std::int64_t lost = 0;
  const auto seeds = tests::seeds(small_studies);
  for (const std::uint64_t seed : seeds) {
    RandomStream random(seed, "best plan");
    const RandomStudy drawn = random_study(random);
    INFO(replay(seed, drawn));
    const Outcome ours = arena.balanced(seed, drawn);
    CHECK(ours.fits);
    const Behind behind = most_behind(arena, drawn, ours.seconds);
    CAPTURE(behind.policy, behind.ratio);
    CHECK(behind.ratio < much);
    if (behind.ratio > equal) ++lost;
  }
  CHECK((lost <= std::ssize(seeds) / one_in || tests::one_seed()));
}

TEST_CASE("hdp-balance with groups that choose how they share is hardly ever slower than with one way for all",
          "[property][best]") {
  constexpr double equal = 1.01;
  constexpr double much = 1.06;
  constexpr std::int64_t one_in = 40;  // may lose by more than a hundredth
  Arena arena;
  std::int64_t lost = 0;
  std::int64_t asked = 0;
  for (const std::uint64_t seed : tests::seeds(small_studies / 2)) {
    RandomStream random(seed, "best plan");
    const RandomStudy drawn = random_study(random);
    INFO(replay(seed, drawn));
    const Outcome free = arena.balanced(seed, drawn);
    for (const std::string way : {"p2p", "all_gather", "a2a"}) {
      CAPTURE(way);
      const auto ours = arena.run(drawn, "hdp-balance: {search: own}", {"mesh.cp_comm_type=" + way});
      if (!ours) continue;
      CHECK(free.seconds < ours->seconds * much);
      if (free.seconds > ours->seconds * equal) ++lost;
      ++asked;
    }
  }
  CHECK((lost <= asked / one_in || tests::one_seed()));
}

TEST_CASE("hdp-balance: more capacity, faster NICs and faster NVLink cost hardly any plan more than a hundredth",
          "[property][best]") {
  constexpr double no_worse = 1.01;
  constexpr double much = 1.06;
  constexpr std::int64_t one_in = 40;  // may be slower by more than a hundredth
  Arena arena;
  std::int64_t slower = 0;
  std::int64_t changes = 0;
  for (const std::uint64_t seed : tests::seeds(small_studies)) {
    RandomStream random(seed, "best plan");
    const RandomStudy drawn = random_study(random);
    INFO(replay(seed, drawn));
    const Outcome before = arena.balanced(seed, drawn);
    for (const std::string& more : drawn.improvements) {
      CAPTURE(more);
      const auto after = arena.run(drawn, "hdp-balance", {more});
      REQUIRE(after);
      CHECK(after->seconds <= before.seconds * much);
      if (after->seconds > before.seconds * no_worse) ++slower;
      ++changes;
    }
  }
  CHECK((slower <= changes / one_in || tests::one_seed()));
}

TEST_CASE("hdp-balance: a device of a pipeline that is known to be slow costs what its rank computes less",
          "[property][best]") {
  constexpr double hardly_more = 1.02;
  Arena arena;
  for (const std::uint64_t seed : tests::seeds(3)) {
    for (const auto& [pp, slowdown] : {std::pair{2, 4}, std::pair{4, 2}, std::pair{4, 4}}) {
      const RandomStudy pipelines = study_of_pipelines(seed, pp);
      INFO(fmt::format("replay: HDPSIM_SEED={} test_property [best]\npp {}, {} x", seed, pp, slowdown));
      const auto before = arena.run(pipelines, "hdp-balance: {search: own}");
      const auto after = arena.run(pipelines, "hdp-balance: {search: own}",
                                   {fmt::format("faults=[{{device: 17, slowdown: {}}}]", slowdown)});
      REQUIRE(before);
      REQUIRE(after);
      const double ranks = 256.0 / pp;
      const double speeds = ranks - 1 + 1.0 / slowdown;  // of all, in ranks without a fault
      CHECK(after->seconds <= before->seconds * ranks / speeds * hardly_more);
    }
  }
}

}  // namespace hdpsim
