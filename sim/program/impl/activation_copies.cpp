#include "sim/program/impl/activation_copies.h"

#include <algorithm>

#include "sim/model/kept_tensors.h"
#include "sim/model/parameters.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {
namespace {

KeptLoad load_of(const MicroBatch& micro_batch, const GroupSharing& sharing, std::int64_t tokens, std::int64_t tp) {
  return {.tokens = tokens,
          .tp = tp,
          .pairs = micro_batch.pairs_per_rank(),
          .trades_heads = form_of(sharing).keeps_traded(sharing)};
}

Bytes offloaded_bytes(const LayerKind& kind, const MicroBatch& micro_batch, const KeptLoad& load) {
  if (micro_batch.token_wise) return token_wise_bytes(kind.kept, load, micro_batch.offload);
  return kept_bytes(kind.kept, load).scaled(micro_batch.offload);
}

Bytes offloaded_bytes(const PassWriter& writer) {
  KeptLoad load = load_of(writer.micro_batch(), writer.sharing(), writer.tokens(), writer.tp());
  load.expert_tokens = divided(writer.expert_tokens().all, writer.options().experts.division().devices());
  return offloaded_bytes(writer.kind_of_layers(), writer.micro_batch(), load);
}

}  // namespace

std::uint32_t resident_here(const PassWriter& writer) {
  std::int64_t left = resident_layers;
  const std::vector<LayerRun>& runs = writer.work().layers;
  for (auto run = runs.rbegin(); run != runs.rend() && run->kind != writer.run().kind; ++run) left -= run->count;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 0, writer.run().count));
}

void offload(PassWriter& writer) {
  if (!writer.micro_batch().offloads()) return;
  const Index computed = writer.last();
  const Index copy = writer.add(Opcode::offload, Stream::d2h, writer.bytes(offloaded_bytes(writer)));
  writer.body()[copy].last_skipped = resident_here(writer);
  writer.body()[copy].after(computed);
  writer.body()[writer.first_of_layer()].after(copy, resident_layers);
}

std::optional<Index> prefetch(PassWriter& writer) {
  if (!writer.micro_batch().offloads()) return std::nullopt;
  const Index copy = writer.add(Opcode::prefetch, Stream::h2d, writer.bytes(offloaded_bytes(writer)));
  writer.body()[copy].first_iteration = resident_here(writer);
  return copy;
}

void wait_for_prefetch(PassWriter& writer, Index copy) {
  const Index kernel = writer.first_kernel().value();
  const Index first = writer.first_of_layer();
  writer.body()[kernel].after(copy);
  if (first != kernel) writer.body()[first].after(copy);  // a ring's first exchange
  writer.body()[copy].after(writer.last(), resident_layers);
}

void copy_activations(const MicroBatch& micro_batch, const LoweringOptions& options, const ModelParts& parts,
                      MicroBatchProgram& program) {
  const KeptLoad load = load_of(micro_batch, program.sharing, micro_batch.tokens_per_rank(), options.mesh.tp);
  for (const Block& block : program.blocks) {
    if (!block.kind) continue;
    for (const Instruction& instruction : block.body) {
      if (!copies_activations(instruction.opcode)) continue;
      program.bytes[instruction.work] = offloaded_bytes(parts.kinds[*block.kind], micro_batch, load);
    }
  }
}

}  // namespace hdpsim
