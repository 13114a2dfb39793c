#include "sim/program/impl/ring.h"

#include <utility>

#include "sim/program/ring_attention.h"

namespace hdpsim {
namespace {

constexpr std::int64_t fp32_bytes = 4;

struct RingWork {
  Index own;
  Index step;
};

RingWork ring_work(PassWriter& writer, Direction direction) {
  RingAttention ring = ring_attention(writer.micro_batch(), writer.model(), writer.tp(), direction);
  const Index own = writer.attention(std::move(ring.own));
  return {own, writer.attention(std::move(ring.step))};
}

// A merge reads and writes the fp32 output and reads the step's output, for the 3/4 of the queries that an average step
// touches.
Index merge_work(PassWriter& writer) {
  const Transformer& model = writer.model();
  const std::int64_t elements = writer.tokens() * (model.heads / writer.tp()) * model.head_dim;
  return writer.memory_bound({Bytes(elements * 3 / 4 * (2 * fp32_bytes + model.element_bytes)), 1});
}

}  // namespace

void forward_ring(PassWriter& writer, std::optional<Index> projected) {
  const std::size_t ranks = writer.ring();
  const auto [own, step] = ring_work(writer, Direction::forward);
  const Index message = writer.bytes(kv_bytes(writer.model(), writer.tokens(), writer.tp()));
  const bool merges = writer.recipe().separate_merge && ranks > 1;
  const Index merging = merges ? merge_work(writer) : 0;
  std::vector<Index> computed(ranks);
  std::vector<Index> received(ranks);
  const auto post = [&](std::size_t k) {
    received[k] = writer.add_ring(Opcode::exchange, Stream::comm, message, k);
    if (k >= 2) {
      writer.body().back().after(computed[k - 2]);
    } else if (projected) {
      writer.body().back().after(*projected);
    }
  };
  for (std::size_t k = 0; k < ranks; ++k) {
    if (k + 1 < ranks) post(k + 1);
    if (k > 0 && k + 1 == ranks) writer.end_ring(received[1]);
    computed[k] = writer.add_ring(Opcode::attention, Stream::compute, k == 0 ? own : step, k);
    if (k == 0) continue;
    writer.body().back().after(received[k]);
    if (merges) computed[k] = writer.add_ring(Opcode::merge, Stream::compute, merging, k);
  }
}

std::optional<Index> backward_ring(PassWriter& writer, Index differentiated) {
  const std::size_t ranks = writer.ring();
  const auto [own, step] = ring_work(writer, Direction::backward);
  const Bytes kv = kv_bytes(writer.model(), writer.tokens(), writer.tp());
  const Bytes dkv = kv * writer.recipe().dkv_bytes_per_element / writer.model().element_bytes;
  const Index first = writer.bytes(kv);
  const Index both = writer.bytes(kv + dkv);
  const Index gradient = writer.bytes(dkv);
  std::vector<Index> computed(ranks);
  std::vector<Index> received(ranks);
  const auto post = [&](std::size_t k) {
    const Index message = k == ranks ? gradient : k == 1 ? first : both;
    const Index exchange = writer.add_ring(Opcode::exchange, Stream::comm, message, k);
    writer.body().back().after(k < 2 ? differentiated : computed[k - 2]);
    if (k < ranks) received[k] = exchange;
  };
  for (std::size_t k = 0; k < ranks; ++k) {
    if (ranks > 1) post(k + 1);
    computed[k] = writer.add_ring(Opcode::attention, Stream::compute, k == 0 ? own : step, k);
    if (k > 0) writer.body().back().after(received[k]);
  }
  if (ranks == 1) return {};
  const Index last = writer.add_ring(Opcode::exchange, Stream::comm, gradient, ranks + 1);
  writer.body().back().after(computed[ranks - 1]);
  writer.end_ring(received[1]);
  return last;
}

}  // namespace hdpsim
