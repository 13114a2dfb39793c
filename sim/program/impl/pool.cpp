#include "sim/program/impl/pool.h"

#include <algorithm>

#include "sim/model/parameters.h"

namespace hdpsim {
namespace {

DeviceParameters parameters_of_pass(const PassWriter& writer) {
  DeviceParameters sum;
  if (writer.work().embedding) sum += embedding_parameters(writer);
  if (writer.work().head) sum += head_parameters(writer);
  for (const LayerRun& run : writer.work().layers) sum += run.count * writer.layer_parameters(run);
  return sum;
}

// Parameters of one collective; none where every pass has one for each layer. Experts have buckets of their own, as
// large as the others (Megatron-LM, core/distributed/distributed_data_parallel.py, expert_parallel_params).
DeviceParameters bucket_of(const PassWriter& writer, bool in_every_pass) {
  if (in_every_pass) return {};
  const std::int64_t most = writer.recipe().bucket_parameters(writer.options().mesh.hdp);
  const DeviceParameters all = parameters_of_pass(writer);
  return {std::min(most, all.common), std::min(most, all.experts)};
}

std::int64_t gradient_width(const PassWriter& writer) {
  const Recipe& recipe = writer.recipe();
  return recipe.reduces_in_pass() ? recipe.reduction_bytes(writer.model().element_bytes) : recipe.gradient_bytes;
}

PoolBytes gathered_in(const PassWriter& writer, const DeviceParameters& parameters) {
  return pool_bytes(parameters, writer.recipe().gathered_type(), writer.model().element_bytes);
}

// All parameters of a table on a device, or none if they are frozen.
std::int64_t trained(const PassWriter& writer, std::int64_t parameters) {
  return writer.recipe().lora.is_on() ? 0 : divided(parameters, writer.tp());
}

// Adds the reduction of one kind of the parameters, behind what computed their gradients.
void reduce(PassWriter& writer, const DeviceParameters& parameters, std::int64_t DeviceParameters::*kind,
            Index computed) {
  const std::int64_t each = parameters.*kind;
  if (each == 0) return;
  const auto iterations = static_cast<std::uint32_t>(writer.iterations());
  const std::int64_t bucket = bucket_of(writer, writer.recipe().reduces_in_pass()).*kind;
  const auto layers = static_cast<std::uint32_t>(std::clamp<std::int64_t>(bucket / each, 1, writer.iterations()));
  const auto add = [&](std::uint32_t of_layers) -> Instruction& {
    DeviceParameters reduced;
    reduced.*kind = of_layers * each;
    const Index reduction =
        writer.add(Opcode::reduce, Stream::pool, writer.pool(pool_bytes(reduced, gradient_width(writer))));
    return writer.body()[reduction].after(computed);
  };
  // The gradients of the last bucket can be reduced only when the last of its layers has them.
  if (layers < iterations || layers == 1) add(1).last_skipped = layers == 1 ? 0 : layers;
  if (layers > 1) add(layers).first_iteration = iterations - 1;
}

}  // namespace

DeviceParameters embedding_parameters(const PassWriter& writer) {
  return {.common = trained(writer, input_parameters(writer.model()))};
}

DeviceParameters head_parameters(const PassWriter& writer) {
  return {.common = trained(writer, output_parameters(writer.model(), writer.work().embedding))};
}

// Frozen ones are elements, and gathered where all parameters are sharded.
PoolBytes gather_around(const PassWriter& writer) {
  const PassWork& work = writer.work();
  const Transformer& model = writer.model();
  const std::int64_t parameters = (work.embedding ? divided(input_parameters(model), writer.tp()) : 0) +
                                  (work.head ? divided(output_parameters(model, work.embedding), writer.tp()) : 0);
  if (!writer.recipe().lora.is_on()) return gathered_in(writer, {.common = parameters});
  return {.common = Bytes(writer.recipe().gathers_in_pass() ? parameters * model.element_bytes : 0), .experts = {}};
}

bool gathers_again(const PassWriter& writer) {
  return writer.work().gathers && writer.recipe().gathers_in_pass();
}

PoolBytes gather_bucket(const PassWriter& writer) {
  DeviceParameters bucket = bucket_of(writer, writer.recipe().gathers_in_pass());
  bucket.weights = bucket.all();
  return gathered_in(writer, bucket);
}

PoolBytes reduce_bucket(const PassWriter& writer) {
  return pool_bytes(bucket_of(writer, writer.recipe().reduces_in_pass()), gradient_width(writer));
}

HostShares host_copies(const PassWriter& writer) {
  const Recipe& recipe = writer.recipe();
  const auto ranks = static_cast<double>(writer.options().mesh.ranks_of_a_shard_group());
  return {recipe.gathers_in_pass() && recipe.host.parameters ? 1 / ranks : 0,
          recipe.reduces_in_pass() ? recipe.host.optimizer / ranks : 0};
}

void gather_first(PassWriter& writer, const PoolBytes& parameters) {
  writer.open_block(1, Direction::forward);
  gather(writer, parameters);
}

Index gather(PassWriter& writer, const PoolBytes& parameters) {
  return writer.add(Opcode::gather, Stream::pool, writer.pool(parameters));
}

Index gather_next(PassWriter& writer, const LayerRun* next) {
  const Index of_same_kind = gather(writer, writer.layer_gather(writer.run()));
  writer.body()[of_same_kind].last_skipped = 1;
  if (next == nullptr) return of_same_kind;
  const Index of_next = gather(writer, writer.layer_gather(*next));
  writer.body()[of_next].first_iteration = static_cast<std::uint32_t>(writer.iterations() - 1);
  return of_same_kind;
}

void wait_for_gather(PassWriter& writer, Index gather) {
  writer.body()[gather].after(writer.last(), 1);
  const Index first = writer.first_kernel().value();
  const Index always = writer.first_kernel_of_all();
  writer.body()[first].after(gather, 1);
  if (always != first) writer.body()[always].after(gather, 1);
}

void reduce(PassWriter& writer, const DeviceParameters& parameters) {
  const PassWork& work = writer.work();
  if (!work.reduces || work.kind == PassKind::input_gradient) return;
  const Index computed = writer.last();
  reduce(writer, parameters, &DeviceParameters::common, computed);
  reduce(writer, parameters, &DeviceParameters::experts, computed);
}

}  // namespace hdpsim
