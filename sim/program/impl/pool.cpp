#include "sim/program/impl/pool.h"

#include <algorithm>

#include "sim/model/parameters.h"

namespace hdpsim {
namespace {

std::int64_t parameters_of_pass(const PassWriter& writer) {
  std::int64_t sum = parameters_around(writer);
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
  return recipe.reduces_in_pass() ? writer.model().element_bytes : recipe.gradient_bytes;
}

std::int64_t parameter_width(const PassWriter& writer) {
  return writer.recipe().parameter_bytes(writer.model().element_bytes);
}

}  // namespace

std::int64_t embedding_parameters(const PassWriter& writer) {
  return divided(input_parameters(writer.model()), writer.tp());
}

std::int64_t head_parameters(const PassWriter& writer) {
  return divided(output_parameters(writer.model(), writer.work().embedding), writer.tp());
}

std::int64_t parameters_around(const PassWriter& writer) {
  return (writer.work().embedding ? embedding_parameters(writer) : 0) +
         (writer.work().head ? head_parameters(writer) : 0);
}

bool gathers_again(const PassWriter& writer) {
  return writer.work().gathers && writer.recipe().gathers_in_pass();
}

Bytes gather_bucket(const PassWriter& writer) {
  return Bytes(bucket_of(writer, writer.recipe().gathers_in_pass()) * parameter_width(writer));
}

Bytes reduce_bucket(const PassWriter& writer) {
  return Bytes(bucket_of(writer, writer.recipe().reduces_in_pass()) * gradient_width(writer));
}

void gather_first(PassWriter& writer, std::int64_t parameters) {
  writer.open_block(1, Direction::forward);
  gather(writer, parameters);
}

Index gather(PassWriter& writer, std::int64_t parameters) {
  return writer.add(Opcode::gather, Stream::pool, writer.bytes(Bytes(parameters * parameter_width(writer))));
}

Index gather_next(PassWriter& writer, const LayerRun* next) {
  const Index of_same_kind = gather(writer, writer.layer_parameters(writer.run()));
  writer.body()[of_same_kind].last_skipped = 1;
  if (next == nullptr) return of_same_kind;
  const Index of_next = gather(writer, writer.layer_parameters(*next));
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
