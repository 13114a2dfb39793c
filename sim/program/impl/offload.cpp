#include "sim/program/impl/offload.h"

#include "sim/model/kept_tensors.h"
#include "sim/model/parameters.h"

namespace hdpsim {
namespace {

Bytes offloaded_bytes(const PassWriter& writer, const LayerRun& of) {
  const LoweringOptions& options = writer.options();
  const MicroBatch& micro_batch = writer.micro_batch();
  const std::vector<KeptTensor> kept =
      kept_tensors(writer.model_of(of), options.recipe, expert_use(options.model, options.experts));
  if (micro_batch.token_wise) return token_wise_bytes(kept, writer.tokens(), writer.tp(), micro_batch.offload);
  const std::int64_t group_tokens = divided(writer.expert_tokens().all, options.experts.ep);
  return kept_bytes(kept, writer.tokens(), writer.tp(), 0, group_tokens).scaled(micro_batch.offload);
}

}  // namespace

void offload(PassWriter& writer, const LayerRun& of) {
  if (!writer.micro_batch().offloads()) return;
  const Index computed = writer.last();
  const Index copy = writer.add(Opcode::offload, Stream::d2h, writer.bytes(offloaded_bytes(writer, of)));
  writer.body()[copy].last_skipped = resident_layers;
  writer.body()[copy].after(computed);
  first_of_layer(writer).after(copy, resident_layers);
}

std::optional<Index> prefetch(PassWriter& writer, const LayerRun& of) {
  if (!writer.micro_batch().offloads()) return std::nullopt;
  const Index copy = writer.add(Opcode::prefetch, Stream::h2d, writer.bytes(offloaded_bytes(writer, of)));
  writer.body()[copy].first_iteration = resident_layers;
  return copy;
}

void wait_for_prefetch(PassWriter& writer, Index copy) {
  first_kernel(writer).after(copy);
  if (first_of_layer(writer).stream == Stream::comm) first_of_layer(writer).after(copy);
  writer.body()[copy].after(writer.last(), resident_layers);
}

}  // namespace hdpsim
