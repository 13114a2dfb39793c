#include "sim/program/impl/activation_copies.h"

#include <algorithm>

#include "sim/model/kept_tensors.h"
#include "sim/model/parameters.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {
namespace {

Bytes offloaded_bytes(const PassWriter& writer) {
  const LoweringOptions& options = writer.options();
  const MicroBatch& micro_batch = writer.micro_batch();
  const std::vector<KeptTensor> kept =
      kept_tensors(writer.layer(), options.recipe, expert_use(options.model, options.experts));
  const KeptLoad load{.tokens = writer.tokens(),
                      .tp = writer.tp(),
                      .pairs = micro_batch.pairs_per_rank(),
                      .expert_tokens = divided(writer.expert_tokens().all, options.experts.ep),
                      .trades_heads = form_of(writer.sharing()).keeps_traded(writer.sharing())};
  if (micro_batch.token_wise) return token_wise_bytes(kept, load, micro_batch.offload);
  return kept_bytes(kept, load).scaled(micro_batch.offload);
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

}  // namespace hdpsim
