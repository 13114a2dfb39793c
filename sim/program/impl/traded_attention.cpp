#include "sim/program/impl/traded_attention.h"

#include <utility>

#include "sim/program/impl/ring.h"

namespace hdpsim {
namespace {

// Operators of PyTorch put what each rank gets side by side, and what returns to all heads into the order of these
// (feifeibear/long-context-attention, yunchang/comm/all_to_all.py, all_to_all_4D, of one sequence).
void copy_for(PassWriter& writer, const SharingCollective& trade, bool to_all_heads) {
  if (!writer.recipe().is_pytorch()) return;
  const std::int64_t copies = to_all_heads ? 2 : 1;
  writer.add_ring(Opcode::merge, Stream::compute, writer.memory_bound({trade.bytes * 2 * copies, copies}), 0);
}

// `gradients`: those of the tensors go, in place of the tensors themselves, from the end of `needed` on.
void trade_inputs(PassWriter& writer, bool gradients, std::optional<Index> needed = {}) {
  const Bytes both = kv_bytes(writer.layer(), writer.shared_tokens(), writer.tp());
  const auto trade = [&](Bytes bytes, SharedTensor tensor) {
    const SharingCollective one{CollectiveKind::all_to_all, bytes, tensor, gradients};
    copy_for(writer, one, gradients);
    writer.share(one, std::exchange(needed, std::nullopt));
  };
  trade(query_bytes(writer.layer(), writer.shared_tokens(), writer.tp()), SharedTensor::queries);
  trade(both / 2, SharedTensor::keys);
  trade(both - both / 2, SharedTensor::values);
}

void trade_outputs(PassWriter& writer, bool gradients) {
  const Bytes bytes = attention_output_bytes(writer.layer(), writer.shared_tokens(), writer.tp());
  const SharingCollective one{CollectiveKind::all_to_all, bytes, SharedTensor::outputs, gradients};
  copy_for(writer, one, !gradients);
  writer.share(one);
}

}  // namespace

void forward_traded(PassWriter& writer, std::optional<Index> projected) {
  if (writer.sharing().inner == 1) return forward_ring(writer, projected);
  trade_inputs(writer, false);
  forward_ring(writer, writer.last());
  trade_outputs(writer, false);
}

std::optional<Index> backward_traded(PassWriter& writer, Index differentiated) {
  if (writer.sharing().inner == 1) return backward_ring(writer, differentiated);
  trade_outputs(writer, true);
  trade_inputs(writer, true, backward_ring(writer, writer.last()));
  return std::nullopt;
}

}  // namespace hdpsim
