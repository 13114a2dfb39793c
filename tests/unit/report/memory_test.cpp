#include "sim/report/memory.h"

#include "sim/model/work.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

Transformer small_model() {
  Transformer model;
  model.layers = 4;
  model.hidden = 64;
  model.heads = 4;
  model.kv_heads = 4;
  model.head_dim = 16;
  model.ffn_hidden = 128;
  model.vocabulary = 100;
  return model;
}

Plan plan_with(std::vector<MicroBatch> micro_batches) {
  Plan plan;
  plan.micro_batches = std::move(micro_batches);
  return plan;
}

MicroBatch micro_batch(std::int64_t tokens, std::size_t ranks, double offload = 0) {
  MicroBatch made;
  for (std::size_t rank = 0; rank < ranks; ++rank) made.group.emplace_back(rank);
  made.spans = {{SequenceId(0), 0, tokens}};
  made.offload = offload;
  return made;
}

TEST_CASE("an empty plan holds weights, gradients and one optimizer shard", "[memory]") {
  const Transformer model = small_model();
  const std::int64_t parameters = parameters_per_device(model, 2);
  const MemoryUse use = memory_use(plan_with({}), model, {.hdp = 1, .tp = 2, .pp = 1});
  CHECK(use.device == Bytes(parameters * (2 + 4 + 12)));
  CHECK(use.host == Bytes());
}

TEST_CASE("activations are those of the largest share of a rank", "[memory]") {
  const Transformer model = small_model();
  const Mesh mesh{.hdp = 4, .tp = 1, .pp = 1};
  const Bytes states = memory_use(plan_with({}), model, mesh).device;
  const Bytes layer = activation_bytes(model, 500, 1);
  // 2,000 tokens on four ranks are 500 each, more than 300 on one.
  const MemoryUse use = memory_use(plan_with({micro_batch(300, 1), micro_batch(2000, 4)}), model, mesh);
  CHECK(use.device == states + 4 * layer);
}

TEST_CASE("channels count on the device whose activations stand beside them", "[memory]") {
  const Transformer model = small_model();
  const Mesh mesh{.hdp = 4, .tp = 1, .pp = 1};
  // Ranks 0 and 1 hold 500 tokens and have one peer each; ranks 1 to 3 hold 100 tokens and have two, rank 1 three.
  MicroBatch wide = micro_batch(300, 3);
  for (HdpRank& rank : wide.group) rank = HdpRank(rank.index() + 1);
  const Plan plan = plan_with({micro_batch(1000, 2), wide});
  const ConnectionTable connections = connections_of(plan, Communicators::one);
  const Bytes states = memory_use(plan_with({}), model, mesh).device;
  const Bytes full = 4 * activation_bytes(model, 500, 1);
  REQUIRE_FALSE(memory_use(plan, model, mesh).connections);
  const MemoryUse use = memory_use(plan, model, mesh, {&connections, 1_MiB});
  CHECK(use.connections == 3_MiB);
  CHECK(use.device == states + full + 3_MiB);  // rank 1
  CHECK(use.host == Bytes());
}

TEST_CASE("offload moves all but two layers to the host", "[memory]") {
  const Transformer model = small_model();
  const Mesh mesh{.hdp = 4, .tp = 1, .pp = 1};
  const Bytes states = memory_use(plan_with({}), model, mesh).device;
  const Bytes layer = activation_bytes(model, 500, 1);
  const MemoryUse all = memory_use(plan_with({micro_batch(500, 1, 1.0)}), model, mesh);
  CHECK(all.device == states + 2 * layer);
  CHECK(all.host == 2 * layer);
  const MemoryUse half = memory_use(plan_with({micro_batch(500, 1, 0.5)}), model, mesh);
  CHECK(half.device == states + 3 * layer);
  CHECK(half.host == layer);
}

TEST_CASE("stage 0 of p holds the activations of p micro-batches at once, under GPipe of all", "[memory]") {
  const Transformer model = small_model();  // four layers: two a stage
  const Mesh mesh{.hdp = 1, .tp = 1, .pp = 2};
  Plan plan = plan_with({micro_batch(500, 1), micro_batch(500, 1), micro_batch(500, 1)});
  plan.ranks = 1;
  plan.schedule = {{}};
  Plan empty = plan;
  empty.micro_batches.clear();
  for (std::size_t m = 0; m < 3; ++m) plan.schedule[0].emplace_back(m);
  const auto device = [&](const Plan& of, PipelineSchedule schedule) {
    const LoweringOptions options{.model = model, .mesh = mesh, .pipeline = {schedule, 1}};
    return memory_use(Program(of, options)).device.count();
  };
  const auto layers = [&](std::int64_t count) {
    return static_cast<double>(count * activation_bytes(model, 500, 1).count());
  };
  // Under 1F1B stage 0 is fuller, which has not the last norm: that much less lies above the states of stage 1.
  const double norm = static_cast<double>(model.hidden * (weight_bytes + gradient_bytes + optimizer_bytes));
  const auto above_states = [&](PipelineSchedule schedule) {
    return static_cast<double>(device(plan, schedule) - device(empty, schedule));
  };
  CHECK(above_states(PipelineSchedule::one_f_one_b) == layers(2 * 2) - norm);
  CHECK(above_states(PipelineSchedule::gpipe) == layers(3 * 2));
}

}  // namespace
}  // namespace hdpsim
