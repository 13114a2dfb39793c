#include "sim/program/impl/traded_heads.h"

namespace hdpsim {

void trade_inputs(PassWriter& writer) {
  if (!writer.sharing().trades_heads()) return;
  const Bytes both = kv_bytes(writer.layer(), writer.tokens(), writer.tp());
  writer.share(CollectiveKind::all_to_all, query_bytes(writer.layer(), writer.tokens(), writer.tp()));
  writer.share(CollectiveKind::all_to_all, both / 2);
  writer.share(CollectiveKind::all_to_all, both - both / 2);
}

void trade_outputs(PassWriter& writer) {
  if (!writer.sharing().trades_heads()) return;
  writer.share(CollectiveKind::all_to_all, attention_output_bytes(writer.layer(), writer.tokens(), writer.tp()));
}

}  // namespace hdpsim
