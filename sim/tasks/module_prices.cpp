#include "sim/tasks/module_prices.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/engine/priced_program.h"
#include "sim/model/memory.h"
#include "sim/model/optimizer_work.h"
#include "sim/model/parameters.h"

namespace hdpsim {
namespace {

// Three micro-batches of one rank: the second neither begins nor ends the rank's step.
Plan plan_of_samples(const LoweringOptions& job, std::int64_t samples, std::int64_t tokens) {
  constexpr int micro_batches = 3;
  Plan plan;
  plan.policy = "tasks";
  plan.ranks = job.mesh.hdp;
  plan.capacity = samples * tokens;
  plan.layers = layers_of_pass(job);
  plan.schedule.resize(static_cast<std::size_t>(plan.ranks));
  for (int i = 0; i < micro_batches; ++i) {
    MicroBatch micro_batch;
    micro_batch.group = {HdpRank(0)};
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      micro_batch.spans.push_back({SequenceId(plan.sequence_tokens.size()), 0, tokens});
      plan.sequence_tokens.push_back(tokens);
    }
    plan.schedule[0].emplace_back(plan.micro_batches.size());
    plan.micro_batches.push_back(std::move(micro_batch));
  }
  return plan;
}

// The time of the blocks that are loops over layers, or of the others, in one direction.
double seconds_of(const PricedProgram& priced, bool of_layers, Direction direction) {
  PricedProgram part = priced;
  std::vector<Block> blocks;
  std::vector<std::vector<Duration>> times;
  for (std::size_t i = 0; i < priced.program.blocks.size(); ++i) {
    const Block& block = priced.program.blocks[i];
    if (block.kind.has_value() != of_layers || block.direction != direction) continue;
    blocks.push_back(block);
    times.push_back(priced.times[i]);
  }
  if (blocks.empty()) return 0;
  part.program.blocks = std::move(blocks);
  part.times = std::move(times);
  return time_of_one_rank(part, 1).total().seconds();
}

DeviceMemory memory_of(const TaskModule& module) {
  const PointSpec& spec = module.point().spec;
  DeviceShape shape{.tp = module.tp, .pp = 1, .pool = 1, .layers = {}, .embedding = true, .head = module.has_head};
  return {spec.model, whole_shape(spec.model, shape), spec.recipe};
}

}  // namespace

ModulePrices::ModulePrices(const TaskModule& module) : module_(module), world_(module.point().make_world()) {}

OperatorSeconds ModulePrices::seconds(OperatorKind kind, std::int64_t samples, std::int64_t tokens) {
  const auto [found, is_new] = known_.try_emplace({samples, tokens});
  if (is_new) found->second = price(samples, tokens);
  return kind == OperatorKind::layer ? found->second.layer : found->second.head;
}

ModulePrices::Price ModulePrices::price(std::int64_t samples, std::int64_t tokens) const {
  const StudyPoint& point = module_.point();
  const Plan plan = plan_of_samples(point.lowering(), samples, tokens);
  const Program program(plan, point.lowered);
  const PassId second(1);
  HDPSIM_CHECK(program.pipeline().passes() == 3, "{} passes of three micro-batches", program.pipeline().passes());
  const PricedProgram priced = hdpsim::price(program, second, world_->machine());
  const auto layers = static_cast<double>(module_.model().layers);
  const auto layer = [&](Direction direction) {
    return seconds_of(priced, true, direction) / layers + more_attention(direction, samples, tokens);
  };
  Price found{{layer(Direction::forward), layer(Direction::backward)}, {}};
  if (module_.has_head) {
    found.head = {seconds_of(priced, false, Direction::forward), seconds_of(priced, false, Direction::backward)};
  }
  return found;
}

double ModulePrices::more_attention(Direction direction, std::int64_t samples, std::int64_t tokens) const {
  if (module_.is_causal) return 0;
  const Transformer& model = module_.model();
  Attention launch;
  launch.heads = std::max<std::int64_t>(1, model.heads / module_.tp);
  launch.kv_heads = std::max<std::int64_t>(1, model.kv_heads / module_.tp);
  launch.head_dim = model.head_dim;
  launch.direction = direction;
  const auto with = [&](Mask mask) {
    launch.blocks = {{tokens, tokens, mask, samples}};
    return world_->machine().cost->attention(launch).time.seconds();
  };
  const bool again = direction == Direction::backward && module_.recipe().recompute.has(LayerModule::attention);
  double more = with(Mask::full) - with(Mask::causal);
  if (again) {
    launch.direction = Direction::forward;
    more += with(Mask::full) - with(Mask::causal);
  }
  return std::max(0.0, more);
}

std::int64_t ModuleMemory::parameters(OperatorKind kind) const {
  const Transformer& model = module_.model();
  const std::int64_t all =
      kind == OperatorKind::layer ? layer_parameter_count(model) : parameters_around_layers(model, true, true);
  return divided(all, module_.tp);
}

Bytes ModuleMemory::states(OperatorKind kind, std::int64_t sharers) const {
  const Recipe& recipe = module_.recipe();
  const std::int64_t held = parameters(kind);
  const std::int64_t updated = recipe.zero > 0 ? divided(held, sharers) : held;
  return parameter_bytes(recipe.parameters, held, held, module_.model().element_bytes) +
         Bytes(held * recipe.gradient_bytes) + optimizer_bytes(recipe, updated, 1);
}

Bytes ModuleMemory::kept(OperatorKind kind, std::int64_t samples, std::int64_t tokens) const {
  if (kind == OperatorKind::head) return {};
  MemoryLoad load;
  load.tokens = samples * tokens;
  load.pairs = static_cast<double>(samples) * static_cast<double>(tokens) * static_cast<double>(tokens);
  return memory_of(module_).kept(load) / module_.model().layers;
}

Bytes ModuleMemory::moment(std::int64_t samples, std::int64_t tokens) const {
  MemoryLoad load;
  load.tokens = samples * tokens;
  load.pairs = static_cast<double>(samples) * static_cast<double>(tokens) * static_cast<double>(tokens);
  const DeviceMemory memory = memory_of(module_);
  return memory.peak(load).total() - memory.states().total() - memory.kept(load);
}

double ModuleMemory::output_bytes(std::int64_t tokens) const {
  return static_cast<double>(tokens * module_.model().hidden * module_.model().element_bytes);
}

}  // namespace hdpsim
