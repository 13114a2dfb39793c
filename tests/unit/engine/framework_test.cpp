// What a training framework adds to the kernels: a host that issues them, and collectives beside them.

#include "sim/engine/simulator.h"
#include "sim/engine/step_ending.h"
#include "sim/model/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::all_grains;
using test::HandCosts;
using test::HandMachine;
using test::one_device_nodes;
using test::one_head_model;
using test::plan_of;

constexpr std::int64_t framework_layers = 5;

// Two ranks, so many micro-batches of one token each: attention takes one picosecond forward and two backward.
Plan two_ranks(std::size_t micro_batches) {
  std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> each;
  for (std::size_t i = 0; i < micro_batches; ++i) {
    each.push_back({{0}, 1});
    each.push_back({{1}, 1});
  }
  return plan_of(2, framework_layers, each);
}

struct Pool {
  Duration gather;
  Duration reduction;
};

// Of products alone, to half their speed.
constexpr KernelSlowdown half_speed{.product = 2};

// A product takes one microsecond, every collective over the pool what `pool` says.
Timeline run_framework(const Recipe& recipe, const Pool& pool, std::size_t micro_batches, Grain grain,
                       std::optional<KernelSlowdown> slowdown = {}) {
  HandMachine world(one_device_nodes(2, 1_GBps), std::make_unique<HandCosts>(1_us));
  world.machine.overlap_slowdown = slowdown;
  world.machine.pool = [=](CollectiveKind kind, Bytes) {
    return Estimate{kind == CollectiveKind::all_gather ? pool.gather : pool.reduction, Evidence::formula};
  };
  const Plan plan = two_ranks(micro_batches);
  const LoweringOptions options{.model = one_head_model(framework_layers), .mesh = {.hdp = 2}, .recipe = recipe};
  return simulate(Program(plan, options), world.machine, grain);
}

// Of one micro-batch: per layer 4 products forward and 8 backward, the head's one and two; and attention.
Duration forward_layer() {
  return 4_us + Duration::picoseconds(1);
}
Duration backward_layer() {
  return 8_us + Duration::picoseconds(2);
}
Duration kernels() {
  return framework_layers * (forward_layer() + backward_layer()) + 3_us;
}

// A byte a nanosecond.
Machine bytewise_pool() {
  Machine machine;
  machine.pool = test::each_moves_at(1_GBps);
  return machine;
}

std::int64_t kernels_of(const MicroBatchProgram& program) {
  std::int64_t sum = 0;
  for (const Block& block : program.blocks) {
    for (const Instruction& i : block.body) {
      if (i.opcode == Opcode::attention) {
        const bool forward = program.attention[i.work].direction == Direction::forward;
        sum += block.iterations * (forward ? 1 : 3);
      } else if (i.opcode == Opcode::dense) {
        const LinearPart& part = program.dense[i.work];
        sum += block.iterations * part.host_calls().kernels;
      }
    }
  }
  return sum;
}

struct Issued {
  Timeline timeline;
  std::int64_t kernels;
};

Issued issued(Duration issue, Duration product, Grain grain) {
  HandMachine world(one_device_nodes(1, 1_GBps), std::make_unique<HandCosts>(product));
  world.machine.host = {issue, issue, {}, issue};
  const Plan plan = plan_of(1, framework_layers, {{{0}, 1}});
  const LoweringOptions options{
      .model = one_head_model(framework_layers), .mesh = {.hdp = 1}, .recipe = {.host_issues = true}};
  const Program program(plan, options);
  return {simulate(program, world.machine, grain), kernels_of(program.micro_batch(MicroBatchId(0)))};
}

TEST_CASE("a micro-batch whose kernels are shorter than their issue takes as long as the host", "[engine][host]") {
  for (const Grain grain : all_grains) {
    const auto [timeline, kernels] = issued(1_us, 10_ns, grain);
    CHECK(timeline.step_time == kernels * 1_us);
    CHECK(timeline.ranks[0].total() == timeline.step_time);
  }
}

TEST_CASE("a host that is fast enough costs nothing where products are", "[engine][host]") {
  for (const Grain grain : all_grains) {
    // The embedding has no product, and its memory-bound kernels take no time here: one forward, one backward.
    const Timeline timeline = issued(1_us, 100_us, grain).timeline;
    CHECK(timeline.ranks[0][Activity::overhead] == 2 * 1_us);
    CHECK(timeline.ranks[0][Activity::linear] == (framework_layers * 12 + 3) * 100_us);
  }
}

TEST_CASE("ranks that update whole parameters all-reduce gradients and broadcast one after another", "[engine][zero]") {
  const Plan plan = two_ranks(1);
  const auto end_of = [&](bool whole) {
    const LoweringOptions options{.model = one_head_model(framework_layers),
                                  .mesh = {.hdp = 2},
                                  .recipe = {.zero = 1, .whole_parameters = whole}};
    return Program(plan, options).step_end();
  };
  CHECK(end_of(true).all_reduce);
  CHECK(end_of(true).broadcasts == 2);
  CHECK(end_of(false).broadcasts == 0);
  CHECK(end_of(true).optimizer.elementwise.traffic == end_of(false).optimizer.elementwise.traffic);
  CHECK(gradient_reduction(end_of(true), bytewise_pool()) == 2 * gradient_reduction(end_of(false), bytewise_pool()));
  // A microsecond before each of the two.
  Machine machine;
  machine.pool = [](CollectiveKind kind, Bytes bytes) {
    const Duration start = kind == CollectiveKind::broadcast ? 1_us : Duration{};
    return Estimate{start + bytes / 1_GBps, Evidence::measured};
  };
  CHECK(parameter_gather(end_of(true), machine) == parameter_gather(end_of(false), machine) + 2 * 1_us);
}

TEST_CASE("without sharding gradients are all-reduced and nothing is gathered", "[engine][zero]") {
  const Plan plan = two_ranks(1);
  const auto end_of = [&](std::int64_t zero) {
    const LoweringOptions options{
        .model = one_head_model(framework_layers), .mesh = {.hdp = 2}, .recipe = {.zero = zero}};
    return Program(plan, options).step_end();
  };
  // fp32 gradients are twice as many bytes as bf16 parameters, and an all-reduce passes them around twice.
  const Duration gradients = end_of(1).gradient.common / 1_GBps;
  CHECK(gradient_reduction(end_of(0), bytewise_pool()) == 2 * gradients);
  CHECK(gradient_reduction(end_of(1), bytewise_pool()) == gradients);
  CHECK(parameter_gather(end_of(0), bytewise_pool()) == Duration{});
  CHECK(2 * parameter_gather(end_of(1), bytewise_pool()) == gradients);
  CHECK(end_of(0).optimizer.elementwise.traffic == end_of(1).optimizer.elementwise.traffic * 2);
  CHECK(end_of(0).all_reduce);
  CHECK(end_of(0).parameters == PoolBytes{});
  CHECK(end_of(3).gradient == PoolBytes{});
  CHECK(end_of(3).parameters == PoolBytes{});
  CHECK(end_of(3).optimizer.elementwise.traffic == end_of(1).optimizer.elementwise.traffic);
}

TEST_CASE("matrices that are orthogonalized are dealt to ranks, no matrix to two", "[engine]") {
  // A product takes a second for every 2 m n k; all else is free.
  class ProductCosts final : public CostModel {
   public:
    [[nodiscard]] Estimate gemm(const Gemm& op) const override {
      return {Duration::seconds(static_cast<double>(op.m * op.n * op.k)), Evidence::formula};
    }
    [[nodiscard]] Estimate attention(const Attention&) const override { return {}; }
    [[nodiscard]] Estimate memory_bound(const MemoryBound&) const override { return {}; }
    [[nodiscard]] std::int64_t kernels(const Attention&) const override { return 1; }
  };
  OptimizerWork work;
  work.orthogonal = {{{{2, 3, 4}, {1, 1, 6}}, 6, 3}, {{{5, 1, 1}}, 3, 3}};  // six of 30 s and three of 5 s
  const ProductCosts products;
  Machine device;
  device.cost = &products;
  CHECK(optimizer_estimate(work, device).time.seconds() == Approx((6 * 30 + 3 * 5) / 3.0));
  for (Orthogonalization& matrices : work.orthogonal) matrices.ranks = 100;
  CHECK(optimizer_estimate(work, device).time.seconds() == Approx(30));  // that of one matrix
}

TEST_CASE("a stage's matrices are those of its layers, on every rank without sharding", "[engine]") {
  const Plan plan = two_ranks(1);
  const auto end_of = [&](std::int64_t zero) {
    const LoweringOptions options{.model = one_head_model(framework_layers),
                                  .mesh = {.hdp = 2},
                                  .recipe = {.zero = zero, .optimizer = Optimizer::muon}};
    return Program(plan, options).step_end();
  };
  for (const std::int64_t zero : {0, 1}) {
    const std::vector<Orthogonalization> all = end_of(zero).optimizer.orthogonal;
    REQUIRE(all.size() == weight_matrices(one_head_model(framework_layers), 1, 1).size());
    for (const Orthogonalization& matrices : all) {
      CHECK(matrices.matrices == framework_layers);
      CHECK(matrices.ranks == (zero == 0 ? 1 : 2));
    }
  }
}

TEST_CASE("parameters that are gathered faster than layers compute cost the first gathers and the last reductions",
          "[engine][zero]") {
  // Before the first layer; behind the head's, the first layer's and the embedding's backward.
  for (const Grain grain : all_grains) {
    for (const std::size_t micro_batches : {1, 3}) {
      const Timeline timeline = run_framework({.zero = 3}, {.gather = 1_us, .reduction = 1_us}, micro_batches, grain);
      const auto count = static_cast<std::int64_t>(micro_batches);
      CHECK(timeline.step_time == count * (kernels() + 4 * 1_us));
      CHECK(timeline.ranks[0][Activity::grad_sync] == count * 4 * 1_us);
    }
  }
}

TEST_CASE("products lose part of their time to the parameters and gradients that move beside them", "[engine][zero]") {
  // A gather beside all forward layers but the last, beside the head's backward and all backward layers but the first;
  // a reduction beside the layers that follow another one. Half of a microsecond each is lost.
  const std::int64_t beside = (framework_layers - 1) + 1 + (framework_layers - 1) + (framework_layers - 1);
  for (const Grain grain : all_grains) {
    const Pool pool{.gather = 1_us, .reduction = 1_us};
    const Timeline undisturbed = run_framework({.zero = 3}, pool, 1, grain);
    const Timeline slowed = run_framework({.zero = 3}, pool, 1, grain, half_speed);
    CHECK(slowed.step_time == undisturbed.step_time + beside * 500_ns);
    CHECK(slowed.ranks[0][Activity::linear] == undisturbed.ranks[0][Activity::linear] + beside * 500_ns);
  }
}

TEST_CASE("parameters in fp32 are gathered in twice the bytes and reduced in as many", "[engine][zero]") {
  const Plan plan = two_ranks(1);
  const auto moved = [&](Opcode opcode, bool fp32) {
    const LoweringOptions options{.model = one_head_model(framework_layers),
                                  .mesh = {.hdp = 2},
                                  .recipe = {.zero = 3, .parameters = fp32 ? NumberType::fp32 : NumberType::bf16}};
    const MicroBatchProgram program = Program(plan, options).micro_batch(MicroBatchId(0));
    Bytes sum;
    for (const Block& block : program.blocks) {
      for (const Instruction& i : block.body) {
        if (i.opcode == opcode) sum += block.iterations * program.pools[i.work].common;
      }
    }
    return sum;
  };
  CHECK(moved(Opcode::gather, false) > Bytes{});
  CHECK(moved(Opcode::gather, true) == 2 * moved(Opcode::gather, false));
  CHECK(moved(Opcode::reduce, true) == moved(Opcode::reduce, false));
}

TEST_CASE("layers that compute faster than their parameters arrive go at the pace of the pool", "[engine][zero]") {
  // Forward: a gather before the first layer, one beside each but the last, which then computes. Backward: the first
  // gather beside the head and its reduction behind; each layer's reduction, and each other layer's gather before it;
  // the embedding's reduction.
  for (const Grain grain : all_grains) {
    const Timeline timeline = run_framework({.zero = 3}, {.gather = 10_us, .reduction = 10_us}, 1, grain);
    const std::int64_t in_forward = 1 + (framework_layers - 1);
    const std::int64_t in_backward = 2 + framework_layers + (framework_layers - 1) + 1;
    CHECK(timeline.step_time == (in_forward + in_backward) * 10_us + forward_layer() + 1_us);
    CHECK(timeline.ranks[0].total() == timeline.step_time);
  }
}

TEST_CASE("gradients that are reduced beside the last backward leave those of its first layer and of the tables",
          "[engine][zero]") {
  for (const Grain grain : all_grains) {
    const Pool pool{.gather = 1_us, .reduction = 1_us};
    const Recipe beside{.zero = 1, .bucket = 1, .overlap_grad_reduce = true};
    // The head's, the first layer's and the embedding's; then the gather of the parameters.
    CHECK(run_framework(beside, pool, 4, grain).step_time == 4 * kernels() + 3 * 1_us + 1_us);
  }
}

TEST_CASE("layers that are reduced in buckets leave those of the last bucket, and pay for each bucket once",
          "[engine][zero]") {
  const Transformer model = one_head_model(framework_layers);
  const std::int64_t layer = layer_parameter_count(model);
  const std::int64_t bucket = 2 * layer;
  const auto share = [&](std::int64_t parameters) {
    return std::min(1.0, static_cast<double>(parameters) / static_cast<double>(bucket));
  };
  for (const Grain grain : all_grains) {
    const Pool pool{.gather = 1_us, .reduction = 1_us};
    const Recipe beside{.zero = 1, .bucket = bucket, .overlap_grad_reduce = true};
    // The head's, those of the last two layers and the embedding's; then the gather of the parameters.
    const double exposed = share(output_parameters(model, true)) + 1 + share(input_parameters(model)) + 1;
    CHECK(run_framework(beside, pool, 4, grain).step_time.seconds() ==
          Approx((4 * kernels()).seconds() + exposed * 1e-6).epsilon(1e-6));
    // All layers are one bucket: nothing is reduced before the last of them.
    const Recipe together{.zero = 1, .bucket = 1'000'000'000, .overlap_grad_reduce = true};
    CHECK(run_framework(together, pool, 4, grain).step_time.seconds() ==
          Approx((4 * kernels()).seconds() + 2e-6).epsilon(1e-3));
  }
}

TEST_CASE("parameters that are gathered beside the first forward leave those of the tables and the first layer",
          "[engine][zero]") {
  for (const Grain grain : all_grains) {
    const Pool pool{.gather = 1_us, .reduction = 2_us};
    const Recipe beside{.zero = 1, .bucket = 1, .overlap_param_gather = true};
    CHECK(run_framework(beside, pool, 4, grain).step_time == 4 * kernels() + 1_us + 2_us);
  }
}

TEST_CASE("ranks that shard in groups gather in a group and reduce in it, then over the groups", "[engine][zero]") {
  const Bytes gradients(8'000'000'000);
  Machine machine;
  machine.pool = test::each_takes(9_s);
  const auto kinds = std::make_shared<std::vector<CollectiveKind>>();
  const auto at = [&](Bandwidth rate) {
    return [kinds, rate](CollectiveKind kind, Bytes bytes) {
      kinds->push_back(kind);
      return Estimate{bytes / rate, Evidence::formula};
    };
  };
  machine.hybrid = HybridSharding{4, at(100_GBps), at(10_GBps)};
  const PoolBytes common{gradients, {}};
  CHECK(gather_of(common, machine).time == gradients / 100_GBps);
  CHECK(reduction_of(common, false, machine).time == gradients / 100_GBps + Bytes(gradients.count() / 4) / 10_GBps);
  CHECK(*kinds == std::vector{CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce});
  CHECK(reduction_of(common, true, machine).time == 18_s);  // nothing is sharded
  // Whole experts come behind, over the devices that have the same ones.
  machine.expert_pools = test::each_takes(2_s);
  const PoolBytes both{gradients, gradients};
  CHECK(gather_of(both, machine).time == gather_of(common, machine).time + 2_s);
  CHECK(reduction_of(both, true, machine).time == 18_s + 4_s);
  machine.expert_hybrid = HybridSharding{2, at(100_GBps), at(10_GBps)};
  CHECK(reduction_of(both, false, machine).time ==
        reduction_of(common, false, machine).time + gradients / 100_GBps + Bytes(gradients.count() / 2) / 10_GBps);
}

TEST_CASE("a pipeline waits for the parameters of its first chunk and ends with the gradients of it",
          "[engine][zero][pipeline]") {
  const Plan plan = plan_of(2, 4, {{{0}, 1}, {{1}, 1}, {{0}, 1}, {{1}, 1}, {{0}, 1}, {{1}, 1}, {{0}, 1}, {{1}, 1}});
  for (const Grain grain : all_grains) {
    // Fast enough for all other chunks to have theirs in time.
    const auto step_time = [&](const Recipe& recipe, Bandwidth rate) {
      HandMachine world(one_device_nodes(4, 1_GBps), std::make_unique<HandCosts>(1_us), 2);
      world.machine.pool = test::each_moves_at(rate);
      const LoweringOptions options{
          .model = one_head_model(4), .mesh = {.hdp = 2, .pp = 2}, .recipe = recipe, .pipeline = {"interleaved", 2}};
      return simulate(Program(plan, options), world.machine, grain).step_time;
    };
    const Bandwidth rate = 1000_GBps;
    const Recipe beside{.overlap_grad_reduce = true, .overlap_param_gather = true};
    // The first of four chunks: a layer and the embedding. Gradients are fp32, parameters bf16.
    const std::int64_t first_chunk = layer_parameter_count(one_head_model(4)) + 1000 * 64;
    const Duration exposed = Bytes(first_chunk * 2) / rate + Bytes(first_chunk * 4) / rate;
    const Duration kernels = step_time(beside, 1000000_GBps);
    CHECK(step_time(beside, rate).seconds() == Approx((kernels + exposed).seconds()).epsilon(1e-3));
    // A stage has two layers and one table.
    const Duration whole = Bytes(2 * first_chunk * 2) / rate + Bytes(2 * first_chunk * 4) / rate;
    CHECK(step_time({}, rate) > kernels + exposed);
    CHECK(step_time({}, rate) < kernels + whole);
  }
}

// ---- Tensor parallelism

struct TensorParallel {
  bool sequence_parallel = true;
  bool overlap = false;
  bool gradients_overlap = false;
  Duration chunk = 2_us;  ///< A product of the tokens of one device; of all of them it takes 8 us.
};

constexpr std::int64_t rank_tokens = 1000;
constexpr std::int64_t tp_devices = 4;

class ChunkCosts final : public CostModel {
 public:
  explicit ChunkCosts(Duration chunk) : whole_(8_us), chunk_(chunk) {}
  [[nodiscard]] Estimate gemm(const Gemm& op) const override {
    return op.m == rank_tokens / tp_devices ? Estimate{chunk_, Evidence::measured} : whole_.gemm(op);
  }
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override { return whole_.memory_bound(op); }
  [[nodiscard]] Estimate attention(const Attention& op) const override { return whole_.attention(op); }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return whole_.kernels(op); }

 private:
  HandCosts whole_;
  Duration chunk_;
};

Breakdown run_framework(const TensorParallel& way, Duration collective, Grain grain,
                        std::optional<KernelSlowdown> slowdown = {}) {
  HandMachine world(one_device_nodes(1, 1_GBps), std::make_unique<ChunkCosts>(way.chunk));
  world.machine.overlap_slowdown = slowdown;
  world.machine.tp = tp_devices;
  world.machine.tensor_parallel = [=](CollectiveKind kind, Bytes) {
    return Estimate{kind == CollectiveKind::all_reduce ? 3 * collective : collective, Evidence::formula};
  };
  const Plan plan = plan_of(1, framework_layers, {{{0}, rank_tokens}});
  LoweringOptions options{.model = one_head_model(framework_layers), .mesh = {.hdp = 1, .tp = tp_devices}};
  options.recipe.sequence_parallel = way.sequence_parallel;
  options.recipe.overlap_tp = way.overlap;
  options.recipe.overlap_tp_gradients = way.gradients_overlap;
  return simulate(Program(plan, options), world.machine, grain).ranks[0];
}

TEST_CASE("without sequence parallelism a layer has two all-reduces forward and two backward", "[engine][tp]") {
  for (const Grain grain : all_grains) {
    // One behind the embedding, one behind the head's backward, and the gather of the loss.
    CHECK(run_framework({.sequence_parallel = false}, 1_us, grain)[Activity::tp_comm] ==
          (4 * framework_layers + 2) * 3_us + 1_us);
  }
}

TEST_CASE("a collective beside its product leaves a chunk, or what is longer than the product", "[engine][tp]") {
  for (const Grain grain : all_grains) {
    // Eight a layer have a product, and the final norm's the head's product; the embedding has none, and the head's
    // stay beside nothing.
    const std::int64_t beside = 8 * framework_layers + 1;
    const std::int64_t alone = 2 + 2;
    CHECK(run_framework({.overlap = true}, 4_us, grain)[Activity::tp_comm] == beside * 1_us + alone * 4_us);
    CHECK(run_framework({.overlap = true}, 20_us, grain)[Activity::tp_comm] ==
          beside * (20_us - 8_us + 2_us) + alone * 20_us);
  }
}

TEST_CASE("chunks fill each other's last waves: they take as long as the whole product", "[engine][tp]") {
  for (const Grain grain : all_grains) {
    CHECK(run_framework({.overlap = true, .chunk = 3_us}, 4_us, grain)[Activity::tp_comm] ==
          run_framework({.overlap = true}, 4_us, grain)[Activity::tp_comm]);
  }
}

TEST_CASE("a product that a collective slows down leaves what it loses of it", "[engine][tp]") {
  for (const Grain grain : all_grains) {
    const std::int64_t alone = (4 + 2) * framework_layers + 4;
    const std::int64_t beside = 4 * framework_layers + 2;
    // In four microseconds a product does what takes it two alone; in twenty it is over after sixteen.
    const TensorParallel way{.gradients_overlap = true};
    CHECK(run_framework(way, 4_us, grain, half_speed)[Activity::tp_comm] == alone * 4_us + beside * 2_us);
    CHECK(run_framework(way, 20_us, grain, half_speed)[Activity::tp_comm] == alone * 20_us + beside * (20_us - 8_us));
    CHECK(run_framework(way, 12_us, grain, half_speed)[Activity::tp_comm] ==
          alone * 12_us + beside * (8_us + 6_us - 8_us));
  }
}

TEST_CASE("an input that is gathered again hides behind a product, and so does the sum of its gradient",
          "[engine][tp]") {
  for (const Grain grain : all_grains) {
    // A layer's two gathers and two sums forward, and in backward the gathers of two gradients, stay alone; so do the
    // sum behind the embedding, the gather before the final norm's product, that of the loss, and backward the gather
    // before the embedding. Beside products of eight microseconds go four a layer and two at the head.
    const std::int64_t alone = (4 + 2) * framework_layers + 4;
    const std::int64_t beside = 4 * framework_layers + 2;
    CHECK(run_framework({.gradients_overlap = true}, 4_us, grain)[Activity::tp_comm] == alone * 4_us);
    CHECK(run_framework({.gradients_overlap = true}, 20_us, grain)[Activity::tp_comm] ==
          alone * 20_us + beside * (20_us - 8_us));
    // In chunks go the others that have a product: all but those of the embedding and the loss.
    CHECK(run_framework({.overlap = true, .gradients_overlap = true}, 4_us, grain)[Activity::tp_comm] ==
          (alone - 3) * 1_us + 3 * 4_us);
    // Without sequence parallelism all-reduces of inputs' gradients, two a layer and the head's, of which each takes
    // three times as long, go beside a product; forward, the embedding's and the gather of the loss stay alone.
    CHECK(run_framework({.sequence_parallel = false, .gradients_overlap = true}, 4_us, grain)[Activity::tp_comm] ==
          (2 * framework_layers + 1) * 12_us + 4_us + (2 * framework_layers + 1) * (12_us - 8_us));
  }
}

}  // namespace
}  // namespace hdpsim
