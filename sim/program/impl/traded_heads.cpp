#include "sim/program/impl/traded_heads.h"

namespace hdpsim {

void trade_inputs(PassWriter& writer, bool gradients) {
  if (!writer.sharing().trades_heads()) return;
  const Bytes both = kv_bytes(writer.layer(), writer.shared_tokens(), writer.tp());
  const auto trade = [&](Bytes bytes, SharedTensor tensor) {
    writer.share({CollectiveKind::all_to_all, bytes, tensor, gradients});
  };
  trade(query_bytes(writer.layer(), writer.shared_tokens(), writer.tp()), SharedTensor::queries);
  trade(both / 2, SharedTensor::keys);
  trade(both - both / 2, SharedTensor::values);
}

void trade_outputs(PassWriter& writer, bool gradients) {
  if (!writer.sharing().trades_heads()) return;
  const Bytes bytes = attention_output_bytes(writer.layer(), writer.shared_tokens(), writer.tp());
  writer.share({CollectiveKind::all_to_all, bytes, SharedTensor::outputs, gradients});
}

}  // namespace hdpsim
