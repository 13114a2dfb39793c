#include "sim/program/impl/group_core.h"

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

}  // namespace hdpsim
