#include "sim/program/impl/group_core.h"

#include <algorithm>

#include "sim/model/mixing.h"
#include "sim/program/impl/gathered_keys.h"
#include "sim/program/impl/ring.h"
#include "sim/program/impl/traded_heads.h"

namespace hdpsim {

void core_forward(PassWriter& writer, std::optional<Index> projected) {
  if (writer.sharing().gathers) return forward_gathered(writer, projected);
  trade_inputs(writer, false);
  forward_ring(writer, writer.sharing().trades_heads() ? std::optional(writer.last()) : projected);
  trade_outputs(writer, false);
}

std::optional<Index> core_backward(PassWriter& writer, Index differentiated) {
  if (writer.sharing().gathers) {
    backward_gathered(writer, differentiated);
    return std::nullopt;
  }
  if (!writer.sharing().trades_heads()) return backward_ring(writer, differentiated);
  trade_outputs(writer, true);
  const std::optional<Index> last_exchange = backward_ring(writer, writer.last());
  const auto behind_ring = static_cast<std::size_t>(writer.last()) + 1;
  trade_inputs(writer, true);
  if (last_exchange) writer.body()[behind_ring].after(*last_exchange);
  return std::nullopt;
}

std::optional<Index> state_exchange(PassWriter& writer, Index mixed) {
  const std::int64_t ranks = writer.sharing().ranks();
  std::int64_t states = 0;
  const auto add = [&](std::int64_t tokens) { states += std::max<std::int64_t>(0, std::min(tokens, 2 * ranks) - 2); };
  for (const Span& span : writer.micro_batch().spans) add(span.tokens);
  add(writer.micro_batch().padding);
  const Bytes message = state_bytes(*writer.layer().linear, writer.tp()) * states;
  if (!writer.sharing().has_ring()) {
    writer.share({CollectiveKind::all_gather, message, SharedTensor::states});
    return std::nullopt;
  }
  const auto once = static_cast<std::size_t>(writer.sharing().parties) + 1;
  const Index received = writer.add_ring(Opcode::exchange, Stream::comm, writer.bytes(message), once);
  writer.body().back().after(mixed);
  writer.end_ring(received);
  return received;
}

}  // namespace hdpsim
