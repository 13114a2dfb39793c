#include "sim/program/expert_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sim/model/parameters.h"
#include "sim/model/product_format.h"
#include "sim/program/program.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::one_head_model;
using test::plan_of;

// Hidden size 64, 4 experts of inner width 128, 2 of which a token takes.
Transformer mixture(std::int64_t layers) {
  Transformer model = one_head_model(layers);
  model.moe = MixtureOfExperts{.experts = 4, .experts_per_token = 2, .expert_hidden = 128};
  return model;
}

std::string name(const LinearPart& part) {
  std::int64_t products = 0;
  for (const Gemm& product : part.gemms) products += product.count;
  return products == 0 ? "copies " : fmt::format("{} products ", products);
}

std::string names(const std::vector<ExpertStep>& steps) {
  std::string text;
  for (const ExpertStep& step : steps) {
    if (const auto* part = std::get_if<LinearPart>(&step)) {
      text += name(*part);
    } else if (const auto* exchanged = std::get_if<ExchangedExperts>(&step)) {
      text += fmt::format("exchanged: {}{}", name(exchanged->even), exchanged->wait ? "wait " : "");
    } else if (std::holds_alternative<ExpertWait>(step)) {
      text += "wait ";
    } else {
      text += fmt::format("{} ", collective_name(std::get<TensorParallelCollective>(step).kind));
    }
  }
  return text;
}

std::vector<Bytes> exchanged(const MicroBatchProgram& program) {
  std::vector<Bytes> bytes;
  for (const TensorParallelCollective& op : program.collectives) {
    if (op.kind == CollectiveKind::all_to_all) bytes.push_back(op.bytes);
  }
  return bytes;
}

std::size_t instructions(const MicroBatchProgram& program, Opcode opcode) {
  std::size_t count = 0;
  for (const Block& block : program.blocks) {
    for (const Instruction& i : block.body) count += i.opcode == opcode ? 1 : 0;
  }
  return count;
}

TEST_CASE("tokens are copied, travel to their experts and back, and backward the other way round", "[experts]") {
  const Transformer model = mixture(1);
  ExpertLayout layout{.ep = 4, .capacity_factor = {}, .shares = {}};
  const LayerOperations operations = layer_operations(model, {});
  const ExpertLayer layer{model, operations, layout, 1, 100, {100, 400}};
  CHECK(names(expert_layer(layer, Direction::forward)) == "1 products copies exchanged: 2 products copies ");
  CHECK(names(expert_layer(layer, Direction::backward)) == "copies exchanged: 4 products copies 2 products ");
  // Without tokens of its own a rank computes its expert for the others alone.
  CHECK(names(expert_layer({model, operations, layout, 1, 0, {100, 300}}, Direction::forward)) ==
        "exchanged: 2 products ");
  layout.shares = {0.4, 0.2, 0.2, 0.2};
  CHECK(names(expert_layer(layer, Direction::forward)) == "1 products copies exchanged: 2 products wait copies ");
}

TEST_CASE("tokens that travel once to each node are copied by those who get them, in fp8 after a cast", "[experts]") {
  const Transformer model = mixture(1);
  ExpertLayout layout{.ep = 4, .dispatch = ExpertDispatch::per_node};
  const LayerOperations operations = layer_operations(model, {.products = ProductFormat::fp8_blocks});
  const ExpertLayer layer{model, operations, layout, 1, 100, {100, 400}};
  CHECK(names(expert_layer(layer, Direction::forward)) == "1 products exchanged: 2 products ");
  const auto exchanged = [&] { return std::get<ExchangedExperts>(expert_layer(layer, Direction::forward).at(1)); };
  CHECK(exchanged().once_per_node);
  // 100 tokens of 64 columns in bf16, each once, of which two copies would travel.
  CHECK(exchanged().to_experts.bytes == Bytes(100 * 64 * 2));
  layout.fp8_sent = true;
  CHECK(names(expert_layer(layer, Direction::forward)) == "1 products copies exchanged: 2 products ");
  const auto sent = std::get<ExchangedExperts>(expert_layer(layer, Direction::forward).at(2));
  CHECK(sent.to_experts.bytes == Bytes(100 * (64 + 4)));
  CHECK(sent.back.bytes == Bytes(100 * 64 * 2));
  for (const Gemm& product : sent.even.gemms) CHECK(product.format == ProductFormat::fp8_blocks);
}

TEST_CASE("with compression means of clusters travel and are computed, between what senders do for it", "[experts]") {
  const Transformer model = mixture(1);
  ExpertLayout layout{.ep = 4, .compression = ExpertCompression{.rate = 0.25, .hashes = 3, .columns = 16}};
  const LayerOperations operations = layer_operations(model, {});
  const ExpertLayer layer{model, operations, layout, 1, 100, {100, 400}};
  const auto steps = expert_layer(layer, Direction::forward);
  CHECK(names(steps) == "1 products copies 1 products exchanged: 2 products copies copies ");
  const auto back = expert_layer(layer, Direction::backward);
  CHECK(names(back) == "copies copies exchanged: 4 products copies copies 2 products ");
  // 100 tokens have 200 copies of 64 columns in bf16, each expert has as many: 50 clusters.
  const auto exchanged = std::get<ExchangedExperts>(steps.at(3));
  CHECK(exchanged.to_experts.bytes == Bytes(50 * 64 * 2));
  CHECK(exchanged.back.bytes == exchanged.to_experts.bytes);
  for (const Gemm& product : exchanged.even.gemms) CHECK(product.m == 50);
  const auto traffic = [](const ExpertStep& step) { return std::get<LinearPart>(step).traffic(); };
  const auto& hashed = std::get<LinearPart>(steps.at(2));
  CHECK(flops_of(hashed.gemms.at(0)).count() == 2.0 * 3 * 16 * 64 * 200);
  // The components of 3 turned copies, 8 passes of a sort over keys and places of 8 bytes, and copies three times.
  CHECK(hashed.traffic() == Bytes(200 * 3 * 16 * 2 + 200 * 8 * 2 * 16 + (3 * 200 + 2 * 50) * 128));
  // The host issues the product, the choice of components, the sort, means and differences.
  CHECK(hashed.host_calls() == HostCalls{.kernels = 5, .in_loops = 7});
  CHECK(traffic(steps.at(4)) == Bytes((2 * 200 + 50) * 128));
  CHECK(traffic(back.at(1)) == Bytes((200 + 50) * 128));
  CHECK(traffic(back.at(3)) == Bytes((2 * 200 + 2 * 50) * 128));
  // Those who only compute experts compress nothing, nor does what computes the gradients of weights.
  CHECK(names(expert_layer({model, operations, layout, 1, 0, {100, 300}}, Direction::forward)) ==
        "exchanged: 2 products ");
  const ExpertLayer weights{model, operations, layout, 1, 100, {100, 400}, Gradients::weights};
  CHECK(names(expert_layer(weights, Direction::backward)) == "copies exchanged: 2 products copies 1 products ");
  layout.compression->is_free = true;
  CHECK(names(expert_layer(layer, Direction::forward)) == "1 products copies exchanged: 2 products copies ");
}

TEST_CASE("experts that are cut as a dense MLP need its two collectives and no other", "[experts]") {
  Transformer model = mixture(1);
  const ExpertLayout layout{};
  LayerOperations operations = layer_operations(model, {});
  const ExpertLayer layer{model, operations, layout, 2, 100, {100, 100}};
  CHECK(names(expert_layer(layer, Direction::forward)) ==
        "1 products all_gather copies 8 products copies reduce_scatter ");
  model.moe->shared_hidden = 64;
  operations = layer_operations(model, {});
  CHECK(names(expert_layer(layer, Direction::backward)) ==
        "all_gather copies 16 products copies reduce_scatter 2 products all_gather 4 products reduce_scatter ");
}

TEST_CASE("devices that cut experts gather copies before the products and sum results behind them", "[experts]") {
  const Plan plan = plan_of(1, 1, {{{0}, 100}});
  LoweringOptions options{mixture(1), Mesh{.hdp = 1, .tp = 4, .ep = 2, .etp = 2}};
  options.experts = {.ep = 2, .etp = 2};
  const MicroBatchProgram program = Program(plan, options).micro_batch(MicroBatchId(0));
  std::vector<CollectiveKind> kinds;
  for (const TensorParallelCollective& op : program.collectives) {
    if (op.among == CollectiveGroup::tensor_parallel) continue;
    kinds.push_back(op.kind);
    // 25 tokens a device, two copies each; four devices' copies for two of four experts, in bf16 of 64 columns.
    const bool is_exchange = op.among == CollectiveGroup::experts;
    CHECK(op.bytes == Bytes((is_exchange ? 25 * 2 : 4 * 25 * 2 / 2) * 64 * 2));
  }
  using enum CollectiveKind;
  const std::vector<CollectiveKind> once = {all_to_all, all_gather, reduce_scatter, all_to_all};
  REQUIRE(kinds.size() == 8);  // forward and backward
  CHECK(std::vector(kinds.begin(), kinds.begin() + 4) == once);
  CHECK(std::vector(kinds.begin() + 4, kinds.end()) == once);
  // Each of the two experts has 50 rows; gate and up are one product of half of 2 x 128 columns.
  const auto is_first = [](const Gemm& product) { return product.m == 50 && product.n == 128 && product.k == 64; };
  const auto has_it = [&](const LinearPart& part) {
    return std::any_of(part.gemms.begin(), part.gemms.end(), is_first);
  };
  CHECK(std::any_of(program.dense.begin(), program.dense.end(), has_it));
}

TEST_CASE("experts that work in a latent are fed by a product before the copies and followed by one behind them",
          "[experts]") {
  Transformer model = mixture(1);
  model.moe->latent = 16;
  const ExpertLayout groups{.ep = 4, .capacity_factor = {}, .shares = {}};
  const LayerOperations operations = layer_operations(model, {});
  const ExpertLayer layer{model, operations, groups, 1, 100, {100, 400}};
  CHECK(names(expert_layer(layer, Direction::forward)) ==
        "1 products 1 products copies exchanged: 2 products copies 1 products ");
  CHECK(names(expert_layer(layer, Direction::backward)) ==
        "2 products copies exchanged: 4 products copies 2 products 2 products ");
  // Copies of 16 elements travel, in groups and between the devices that cut experts.
  const ExpertRows rows = expert_rows(*model.moe, groups, {100, 400});
  CHECK(expert_exchange_bytes(model, rows) == Bytes(100 * 2 * 16 * 2));
  const auto steps = expert_layer({model, operations, {}, 2, 100, {100, 100}}, Direction::forward);
  const auto* gather = std::get_if<TensorParallelCollective>(&steps.at(2));
  REQUIRE(gather != nullptr);
  CHECK(gather->bytes == Bytes(100 * 16 * 2));
}

TEST_CASE("what each expert of a device needs besides its products is counted for each", "[experts]") {
  const Transformer model = mixture(1);
  const ExpertLayout layout{.ep = 2};
  const auto backward = [&](const Recipe& recipe) {
    const LayerOperations operations = layer_operations(model, recipe);
    const auto steps = expert_layer({model, operations, layout, 1, 100, {100, 200}}, Direction::backward);
    return std::get<ExchangedExperts>(steps.at(1)).even;
  };
  const LinearPart fused = backward({});
  CHECK(fused.gemms.size() == 4);  // two products of backward of each of two matrices
  for (const Gemm& product : fused.gemms) CHECK(product.count == 2);
  // A kernel reads an expert's gradient in bf16, and reads and writes its fp32 sum.
  const std::int64_t weights = 2 * 3 * 64 * 128;
  const LinearPart added = backward({.accumulation_fusion = false});
  CHECK(added.traffic() - fused.traffic() == Bytes(weights * (2 + 2 * 4)));
  CHECK(added.launches() - fused.launches() == 2 * 2);
  // Under autocast weights and their gradients are cast; the experts of a device are one tensor.
  const LinearPart cast = backward({.zero = 3, .parameters = NumberType::fp32});
  const LinearPart flat = backward({.zero = 3});
  CHECK(cast.traffic() - flat.traffic() >= Bytes(weights * 2 * (4 + 2)));
}

TEST_CASE("kernels pad copies to whole blocks of fp8 unless the router or the dispatcher has done so", "[experts]") {
  const Transformer model = mixture(1);
  const LayerOperations operations = layer_operations(model, {.products = ProductFormat::fp8_blocks});
  const auto traffic = [&](const ExpertLayout& layout) {
    const auto steps = expert_layer({model, operations, layout, 1, 100, {100, 400}}, Direction::forward);
    for (const ExpertStep& step : steps) {
      if (const auto* exchanged = std::get_if<ExchangedExperts>(&step)) return exchanged->even.traffic();
    }
    return Bytes{};
  };
  // 200 copies of 64 columns in bf16 are read and written, before the products and behind them.
  const Bytes passes(200 * 64 * 2 * 4);
  const Bytes padded = traffic({.ep = 4, .router_padding = true});
  CHECK(traffic({.ep = 4}) == padded + passes);
  CHECK(traffic({.ep = 4, .dispatch = ExpertDispatch::hybrid_ep}) == padded);
  CHECK(traffic({.ep = 4, .dispatch = ExpertDispatch::per_node}) == padded + 2 * passes);  // sorted, too
}

TEST_CASE("kernels of PyTorch activate experts one after another, and multiply by probabilities in fp32", "[experts]") {
  const Transformer model = mixture(1);
  const ExpertLayout layout{.ep = 4};
  const auto traffic = [&](bool fuses, Direction direction) {
    const LayerOperations operations = layer_operations(model, {.activation_fusion = fuses});
    const auto steps = expert_layer({model, operations, layout, 1, 100, {100, 400}}, direction);
    return std::get<ExchangedExperts>(steps.at(direction == Direction::forward ? 2 : 1)).even.traffic();
  };
  // 200 copies of 128 columns. Fused: 3 and 5 tensors in bf16. Else 5 and 13, and of the probabilities 12 and 34 bytes.
  const std::int64_t inner = 200 * 128;
  CHECK(traffic(false, Direction::forward) - traffic(true, Direction::forward) == Bytes(inner * (2 * 2 + 12)));
  CHECK(traffic(false, Direction::backward) - traffic(true, Direction::backward) == Bytes(inner * (2 * 8 + 34)));
}

TEST_CASE("an all-to-all carries every copy of a device's tokens once", "[experts]") {
  const Plan plan = plan_of(1, 3, {{{0}, 1000}});
  LoweringOptions options{mixture(3), Mesh{.hdp = 1, .tp = 2, .ep = 2}};
  options.experts.ep = 2;
  const MicroBatchProgram program = Program(plan, options).micro_batch(MicroBatchId(0));
  // 500 tokens on each device, 2 copies, 64 elements of 2 bytes; dispatch and combine, forward and backward.
  CHECK(exchanged(program) == std::vector<Bytes>(4, Bytes(500 * 2 * 64 * 2)));
  const auto exchanges = [&](Recompute recompute) {
    options.recipe.recompute = recompute;
    return exchanged(Program(plan, options).micro_batch(MicroBatchId(0))).size();
  };
  // Experts that are computed again send copies again; their activations are where they were.
  CHECK(exchanges(Recompute::full) == 6);
  CHECK(exchanges({LayerModule::experts}) == 6);
  CHECK(exchanges({LayerModule::activation, LayerModule::attention}) == 4);
}

TEST_CASE("a block says between which all-to-alls a group computes its experts", "[experts]") {
  const Plan plan = plan_of(1, 3, {{{0}, 1000}});
  LoweringOptions options{mixture(3), Mesh{.hdp = 1, .tp = 2, .ep = 2}};
  options.experts.ep = 2;
  options.recipe.recompute = Recompute::full;
  const MicroBatchProgram program = Program(plan, options).micro_batch(MicroBatchId(0));
  const auto is_exchange = [&](const Instruction& i) {
    return i.opcode == Opcode::collective && program.collectives[i.work].among == CollectiveGroup::experts;
  };
  for (const Block& block : program.blocks) {
    std::vector<std::size_t> ends;
    for (const BodyRange& experts : block.exchanged_experts) {
      ends.insert(ends.end(), {experts.first, experts.last});
      CHECK(experts.last == experts.first + 2);  // one instruction computes them
    }
    std::vector<std::size_t> exchanges;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      if (is_exchange(block.body[i])) exchanges.push_back(i);
    }
    CHECK(ends == exchanges);
  }
  CHECK(program.blocks[2].exchanged_experts.size() == 1);
  CHECK(program.blocks[5].exchanged_experts.size() == 2);  // forward again
}

TEST_CASE("ranks of a wave meet equally often, whether they have tokens or not", "[experts]") {
  const Plan plan = in_expert_waves(plan_of(2, 4, {{{0}, 1000}}), 2, 0);
  using enum LayerModule;
  for (const Recompute recompute :
       {Recompute::none, Recompute::selective, Recompute::full, Recompute{experts, norm}, Recompute{activation, qkv}}) {
    LoweringOptions options{mixture(4), Mesh{.hdp = 2, .ep = 2}};
    Layer dense = options.model;
    dense.moe.reset();
    options.model.others = {dense};
    options.model.pattern = {{1, 1}, {3, 0}};
    options.experts.ep = 2;
    options.recipe.recompute = recompute;
    const Program program(plan, options);
    const MicroBatchProgram full = program.micro_batch(MicroBatchId(0));
    const MicroBatchProgram empty = program.micro_batch(MicroBatchId(1));
    CHECK(exchanged(full) == exchanged(empty));
    CHECK(instructions(empty, Opcode::attention) == 0);
    CHECK(instructions(empty, Opcode::collective) + instructions(empty, Opcode::dense) + 1 ==
          empty.blocks[0].body.size() + empty.blocks[1].body.size() + empty.blocks[2].body.size());
    CHECK(empty.blocks[1].iterations == 3);  // of four layers one is dense
  }
}

TEST_CASE("gradients of whole experts are reduced over the devices that have the same ones", "[experts]") {
  const Transformer model = mixture(2);
  const std::int64_t experts = 2 * 4 * 3 * 64 * 128;
  const std::int64_t routers = 2 * 4 * 64;  // whole on every device
  const std::int64_t rest = (parameter_count(model) - experts - routers) / 2 + routers;
  const Plan plan = in_expert_waves(plan_of(4, 2, {{{0, 1, 2, 3}, 1000}}), 2, 0);
  LoweringOptions options{model, Mesh{.hdp = 4, .tp = 2, .ep = 4}};
  options.experts.ep = 4;
  const StepEnd end = Program(plan, options).step_end();
  CHECK(end.gradient == PoolBytes{Bytes(4 * rest), Bytes(4 * experts / 4)});
  CHECK(end.parameters == PoolBytes{Bytes(2 * rest), Bytes(2 * experts / 4)});
  // The optimizer has an eighth of the rest, and of an expert that is on two of eight devices a half.
  CHECK(end.optimizer.elementwise.traffic == Bytes((7 * 4 + 2) * ((rest + 3) / 4 + experts / 4 / 2)));
  CHECK(parameters_of_stage(model, options.mesh, ChunkMap({}, 1), 0) == rest + experts / 4);
  // In fp8 the device casts all parameters that it holds.
  options.recipe.products = ProductFormat::fp8;
  const Bytes with_casts = Program(plan, options).step_end().optimizer.elementwise.traffic;
  CHECK(with_casts - end.optimizer.elementwise.traffic ==
        Bytes(cast_bytes(ProductFormat::fp8, rest + experts / 4, model.element_bytes)));
}

TEST_CASE("whatever is sharded, a device gathers and reduces its experts and its other parameters once a step or pass",
          "[experts][zero]") {
  const Plan plan = in_expert_waves(plan_of(4, 2, {{{0}, 1000}, {{1}, 1000}, {{2}, 1000}, {{3}, 1000}}), 2, 0);
  for (const std::int64_t zero : {0, 1, 2, 3}) {
    for (const bool overlaps : {false, true}) {
      LoweringOptions options{mixture(2), Mesh{.hdp = 4, .tp = 2, .ep = 4}};
      options.experts.ep = 4;
      options.recipe = {
          .zero = zero, .gradient_bytes = 2, .overlap_grad_reduce = overlaps, .overlap_param_gather = overlaps};
      const Program program(plan, options);
      const MicroBatchProgram pass = program.micro_batch(MicroBatchId(0));
      PoolBytes gathered = program.step_end().parameters;
      PoolBytes reduced = program.step_end().gradient;
      for (const Block& block : pass.blocks) {
        for (const Instruction& i : block.body) {
          if (i.stream != Stream::pool) continue;
          PoolBytes& sum = i.opcode == Opcode::gather ? gathered : reduced;
          sum.common += i.runs(block.iterations) * pass.pools[i.work].common;
          sum.experts += i.runs(block.iterations) * pass.pools[i.work].experts;
        }
      }
      const DeviceParameters layers = device_parameters(options.model, {{2, 0}}, 0, 2, 4);
      const DeviceParameters all =
          device_parameters(options.model, {{2, 0}}, parameters_around_layers(options.model, true, true), 2, 4);
      const Bytes experts(2 * all.experts);
      CAPTURE(zero, overlaps);
      // With level 3 backward gathers the layers again; what is around them is rounded apart from them.
      CHECK(reduced.experts == experts);
      CHECK(gathered.experts == (zero == 0 ? Bytes{} : zero == 3 ? experts * 2 : experts));
      const auto is_close = [](Bytes a, std::int64_t b) { return std::abs(a.count() - b) <= 8; };
      CHECK(is_close(reduced.common, 2 * all.common));
      CHECK(is_close(gathered.common, zero == 0 ? 0 : 2 * (all.common + (zero == 3 ? layers.common : 0))));
      CHECK(program.step_end().all_reduce == (zero == 0));
    }
  }
}

TEST_CASE("combined 1F1B: each forward pass but the first ones runs beside a backward pass of another micro-batch",
          "[experts][pipeline]") {
  const Plan plan =
      plan_of(1, 8, {{{0}, 10}, {{0}, 10}, {{0}, 10}, {{0}, 10}, {{0}, 10}, {{0}, 10}, {{0}, 10}, {{0}, 10}});
  const Pipeline combined(plan, 2, {.schedule = "combined-1f1b", .virtual_stages = 2});
  const Pipeline alone(plan, 2, {.schedule = "interleaved", .virtual_stages = 2});
  for (std::int64_t stage = 0; stage < 2; ++stage) {
    const std::vector<PassId>& order = combined.orders()[combined.worker(HdpRank(0), stage).index()];
    const auto first_backward = [](const Pipeline& pipeline, const std::vector<PassId>& passes) {
      return std::find_if(passes.begin(), passes.end(),
                          [&](PassId id) { return pipeline.pass(id).kind == PassKind::backward; }) -
             passes.begin();
    };
    const std::vector<PassId>& of_alone = alone.orders()[alone.worker(HdpRank(0), stage).index()];
    CHECK(first_backward(combined, order) == first_backward(alone, of_alone) + 1);
    std::int64_t pairs = 0;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      const auto partner = combined.overlap_partner(order[i]);
      if (combined.pass(order[i]).kind != PassKind::forward || !partner) continue;
      ++pairs;
      CHECK(*partner == order[i + 1]);
      CHECK(combined.overlap_partner(*partner) == order[i]);
      const StagePass forward = combined.pass(order[i]);
      const StagePass backward = combined.pass(*partner);
      CHECK((forward.chunk != backward.chunk || forward.micro_batch != backward.micro_batch));
    }
    const std::int64_t warm_up = 2 * (1 - stage) + 2 + 1;
    CHECK(pairs == 8 * 2 - warm_up);
    for (const PassId id : of_alone) CHECK_FALSE(alone.overlap_partner(id));
  }
}

TEST_CASE("a rank without tokens gathers the experts that it computes for others, and reduces their gradients",
          "[experts][zero]") {
  const Plan plan = in_expert_waves(plan_of(2, 2, {{{0}, 1000}, {{0}, 1000}, {{1}, 1000}}), 2, 0);
  LoweringOptions options{mixture(2), Mesh{.hdp = 2, .tp = 1, .ep = 2}};
  options.mesh.hdp = 2;
  options.experts.ep = 2;
  options.recipe.zero = 3;
  const Program program(plan, options);
  for (std::size_t id = 0; id < plan.micro_batches.size(); ++id) {
    if (plan.micro_batches[id].tokens_per_rank() > 0) continue;
    const MicroBatchProgram pass = program.micro_batch(MicroBatchId(id));
    CHECK(instructions(pass, Opcode::gather) > 0);
    CHECK(instructions(pass, Opcode::reduce) > 0);
  }
}

TEST_CASE("DualPipe: stages sum the gradients of their experts with the other copy of the model, too", "[experts]") {
  const Plan plan = in_expert_waves(plan_of(4, 8, {{{0}, 1000}, {{1}, 1000}, {{2}, 1000}, {{3}, 1000}}), 2, 0);
  LoweringOptions options{mixture(8), Mesh{.hdp = 4, .tp = 1, .pp = 4, .ep = 2}};
  options.pipeline.schedule = "dualpipe";
  options.experts.ep = 2;
  const Program program(plan, options);
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const StepEnd end = program.step_end(stage);
    CHECK(end.gradient.experts > Bytes{});
    // Four devices share the common parameters of a stage, and two have the same experts.
    CHECK(end.twice == end.gradient.common / 4 + end.gradient.experts / 2);
  }
}

}  // namespace
}  // namespace hdpsim
