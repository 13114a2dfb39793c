#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/profile/profile_file.h"
#include "sim/program/program.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

constexpr std::int64_t capacity = 2048;

Transformer seven_billion() {
  Transformer model;
  model.name = "7b";
  model.layers = 8;
  model.hidden = 4096;
  model.heads = 32;
  model.kv_heads = 32;
  model.head_dim = 128;
  model.ffn_hidden = 11008;
  model.vocabulary = 32000;
  return model;
}

// What the engine takes for micro-batches of equal sequences, by the seconds that a second one adds to the step.
class Measured {
 public:
  explicit Measured(Recompute recompute = {}, std::int64_t zero = 1, double copies = 1, std::int64_t stages = 1)
      : lowering_{.model = seven_billion(),
                  .mesh = {.hdp = 8 / stages, .tp = 2, .pp = stages},
                  .recipe = {.recompute = recompute, .zero = zero}} {
    Diagnostics problems;
    auto profile = load_profile("bytescale-implied", HDPSIM_SOURCE_DIR "/calib/profiles", {}, problems);
    problems.throw_if_any();
    profile->host_copies->d2h = profile->host_copies->d2h.scaled(copies);
    profile->host_copies->d2h_both = profile->host_copies->d2h_both.scaled(copies);
    world_ = World::make(test::two_nodes(), *profile, {.mesh = lowering_.mesh}, problems);
    problems.throw_if_any();
  }

  [[nodiscard]] double seconds(const std::vector<std::size_t>& ranks, std::int64_t tokens, double offload = 0) {
    return step({{ranks, tokens}, {ranks, tokens}}, offload) - step({{ranks, tokens}}, offload);
  }
  // Of a pipeline that is full.
  [[nodiscard]] double seconds_of_one_more(std::int64_t tokens) {
    const auto of = [&](std::size_t count) {
      return step(std::vector<std::pair<std::vector<std::size_t>, std::int64_t>>(count, {{0}, tokens}), 0);
    };
    return of(13) - of(12);
  }
  [[nodiscard]] WorkModel model() const { return world_->job().work_model(lowering_, capacity); }

 private:
  double step(const std::vector<std::pair<std::vector<std::size_t>, std::int64_t>>& micro_batches, double offload) {
    Plan plan = test::plan_of(lowering_.mesh.hdp, lowering_.model.layers, micro_batches);
    for (MicroBatch& micro_batch : plan.micro_batches) micro_batch.offload = offload;
    return simulate(Program(plan, lowering_), world_->machine(), Grain::closed_form).step_time.seconds();
  }

  LoweringOptions lowering_;
  std::unique_ptr<World> world_;
};

bool is_within(double share, double predicted, double measured) {
  return predicted >= (1 - share) * measured && predicted <= (1 + share) * measured;
}

}  // namespace

TEST_CASE("a micro-batch takes planners no less than its gradients take the pool, however few tokens it has",
          "[engine][probes]") {
  Measured engine({}, 2);
  const WorkModel work = engine.model();
  const double measured = engine.seconds({0}, 1);
  CAPTURE(work.least, measured, Measured().model().least);
  CHECK(is_within(0.001, work.least, measured));
  CHECK(work.seconds(causal_pairs(1), 1, 1) >= work.least);
  CHECK(measured > 1.5 * Measured().model().least);
}

TEST_CASE("planners know how much heavier the stage with the loss is", "[engine][probes]") {
  Measured engine({}, 1, 1, 4);
  const WorkModel work = engine.model();
  REQUIRE(work.chunk_excess.size() == 4);
  const ChunkExcess& last = work.chunk_excess.back();
  // Every micro-batch more occupies the last stage, which all wait for. Between the sizes of the probes, the rates of
  // products jump by more than stages differ.
  for (const std::int64_t tokens : {capacity / 2, capacity}) {
    const double mean = work.seconds(static_cast<double>(tokens * (tokens + 1) / 2), tokens, 1);
    const double per_token = last.per_token.forward + last.per_token.backward;
    const double predicted = mean + per_token * static_cast<double>(tokens) + last.fixed.forward + last.fixed.backward;
    const double measured = engine.seconds_of_one_more(tokens);
    CAPTURE(tokens, mean, predicted, measured);
    CHECK(is_within(0.02, predicted, measured));
  }
}

TEST_CASE("planners know what a rank waits for copies that its forward pass does not hide", "[engine][probes]") {
  Measured engine({}, 1, 0.5);
  const WorkModel work = engine.model();
  const double without = engine.seconds({0}, capacity);
  const double waited = engine.seconds({0}, capacity, 1) - without;
  const double share = 1 - resident_share(1, seven_billion().layers);
  const double predicted = share * work.copy_wait(causal_pairs(capacity), capacity, 1);
  CAPTURE(predicted, waited, without);
  CHECK(waited > 0.1 * without);
  CHECK(is_within(0.15, predicted, waited));
}

}  // namespace hdpsim
