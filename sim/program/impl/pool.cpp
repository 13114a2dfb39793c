#include "sim/program/impl/pool.h"

#include <algorithm>

#include "sim/model/parameters.h"

namespace hdpsim {
namespace {

std::int64_t parameters_of_pass(const PassWriter& writer) {
  std::int64_t sum =
      (writer.work().embedding ? embedding_parameters(writer) : 0) + (writer.work().head ? head_parameters(writer) : 0);
  for (const LayerRun& run : writer.work().layers) sum += run.count * writer.layer_parameters(run);
  return sum;
}

// Parameters of one collective; 0 where every pass has one for each layer.
std::int64_t bucket_of(const PassWriter& writer, bool in_every_pass) {
  if (in_every_pass) return 0;
  return std::min(writer.recipe().bucket_parameters(writer.options().mesh.hdp), parameters_of_pass(writer));
}

std::int64_t gradient_width(const PassWriter& writer) {
  const Recipe& recipe = writer.recipe();
  return recipe.reduces_in_pass() ? recipe.reduction_bytes(writer.model().element_bytes) : recipe.gradient_bytes;
}

// Bytes of so many parameters, of tables and norms or, with `weights`, of layers' products.
Bytes gathered_in(const PassWriter& writer, std::int64_t parameters, std::int64_t weights) {
  return parameter_bytes(writer.recipe().gathered_type(), parameters, weights, writer.model().element_bytes);
}

// All parameters of a table on a device, or none if they are frozen.
std::int64_t trained(const PassWriter& writer, std::int64_t parameters) {
  return writer.recipe().lora.is_on() ? 0 : divided(parameters, writer.tp());
}

}  // namespace

std::int64_t embedding_parameters(const PassWriter& writer) {
  return trained(writer, input_parameters(writer.model()));
}

std::int64_t head_parameters(const PassWriter& writer) {
  return trained(writer, output_parameters(writer.model(), writer.work().embedding));
}

// Frozen ones are elements, and gathered where all parameters are sharded.
Bytes gather_around(const PassWriter& writer) {
  const PassWork& work = writer.work();
  const Transformer& model = writer.model();
  const std::int64_t parameters = (work.embedding ? divided(input_parameters(model), writer.tp()) : 0) +
                                  (work.head ? divided(output_parameters(model, work.embedding), writer.tp()) : 0);
  if (!writer.recipe().lora.is_on()) return gathered_in(writer, parameters, 0);
  return Bytes(writer.recipe().gathers_in_pass() ? parameters * model.element_bytes : 0);
}

bool gathers_again(const PassWriter& writer) {
  return writer.work().gathers && writer.recipe().gathers_in_pass();
}

Bytes gather_bucket(const PassWriter& writer) {
  const std::int64_t bucket = bucket_of(writer, writer.recipe().gathers_in_pass());
  return gathered_in(writer, bucket, bucket);
}

Bytes reduce_bucket(const PassWriter& writer) {
  return Bytes(bucket_of(writer, writer.recipe().reduces_in_pass()) * gradient_width(writer));
}

HostShares host_copies(const PassWriter& writer) {
  const Recipe& recipe = writer.recipe();
  const auto ranks = static_cast<double>(writer.options().mesh.ranks_of_a_shard_group());
  return {recipe.gathers_in_pass() && recipe.host.parameters ? 1 / ranks : 0,
          recipe.reduces_in_pass() ? recipe.host.optimizer / ranks : 0};
}

void gather_first(PassWriter& writer, Bytes parameters) {
  writer.open_block(1, Direction::forward);
  gather(writer, parameters);
}

Index gather(PassWriter& writer, Bytes parameters) {
  return writer.add(Opcode::gather, Stream::pool, writer.bytes(parameters));
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

void reduce(PassWriter& writer, std::int64_t parameters) {
  const PassWork& work = writer.work();
  if (!work.reduces || parameters == 0 || work.kind == PassKind::input_gradient) return;
  const Index computed = writer.last();
  const auto iterations = static_cast<std::uint32_t>(writer.iterations());
  const auto layers = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      bucket_of(writer, writer.recipe().reduces_in_pass()) / parameters, 1, writer.iterations()));
  const auto add = [&](std::uint32_t of_layers) -> Instruction& {
    const Bytes bytes(of_layers * parameters * gradient_width(writer));
    const Index reduction = writer.add(Opcode::reduce, Stream::pool, writer.bytes(bytes));
    return writer.body()[reduction].after(computed);
  };
  // The gradients of the last bucket can be reduced only when the last of its layers has them.
  if (layers < iterations || layers == 1) add(1).last_skipped = layers == 1 ? 0 : layers;
  if (layers > 1) add(layers).first_iteration = iterations - 1;
}

}  // namespace hdpsim
