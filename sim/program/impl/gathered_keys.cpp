#include "sim/program/impl/gathered_keys.h"

#include <utility>

#include "sim/program/ring_attention.h"

namespace hdpsim {
namespace {

// Keys and values of all ranks.
Bytes gathered(const PassWriter& writer) {
  return kv_bytes(writer.layer(), writer.tokens() * writer.sharing().ranks(), writer.tp());
}

void gather(PassWriter& writer) {
  const Bytes both = gathered(writer);
  writer.share(CollectiveKind::all_gather, both / 2);
  writer.share(CollectiveKind::all_gather, both - both / 2);
  writer.add_ring(Opcode::merge, Stream::compute, writer.memory_bound({both * 2, 1}), 0);
}

void attend(PassWriter& writer, Direction direction) {
  RingAttention all = ring_attention(writer.micro_batch(), writer.layer(), writer.tp(), writer.sharing(), direction);
  writer.add_ring(Opcode::attention, Stream::compute, writer.attention(std::move(all.own)), 0);
}

}  // namespace

void forward_gathered(PassWriter& writer) {
  gather(writer);
  attend(writer, Direction::forward);
}

void backward_gathered(PassWriter& writer) {
  gather(writer);
  attend(writer, Direction::backward);
  const Bytes gradients = gathered(writer) * writer.recipe().dkv_bytes_per_element / writer.layer().element_bytes;
  writer.share(CollectiveKind::reduce_scatter, gradients / 2);
  writer.share(CollectiveKind::reduce_scatter, gradients - gradients / 2);
}

}  // namespace hdpsim
