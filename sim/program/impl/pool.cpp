#include "sim/program/impl/pool.h"

#include "sim/model/parameters.h"

namespace hdpsim {

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

void gather_first(PassWriter& writer, std::int64_t parameters) {
  writer.open_block(1, Direction::forward);
  gather(writer, parameters);
}

Index gather(PassWriter& writer, std::int64_t parameters) {
  const std::int64_t width = writer.recipe().parameter_bytes(writer.model().element_bytes);
  return writer.add(Opcode::gather, Stream::pool, writer.bytes(Bytes(parameters * width)));
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
  const Recipe& recipe = writer.recipe();
  const Index computed = writer.last();
  const std::int64_t width = recipe.reduces_in_pass() ? writer.model().element_bytes : recipe.gradient_bytes;
  const Index reduction = writer.add(Opcode::reduce, Stream::pool, writer.bytes(Bytes(parameters * width)));
  writer.body()[reduction].after(computed);
}

}  // namespace hdpsim
