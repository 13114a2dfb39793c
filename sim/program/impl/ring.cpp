#include "sim/program/impl/ring.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/mixing.h"
#include "sim/model/shares.h"
#include "sim/model/sharing_form.h"
#include "sim/program/ring_launches.h"

namespace hdpsim {
namespace {

// The tokens of a party, and the devices over which its heads are cut: ranks of a ring are those of GroupSharing.
std::int64_t party_tokens(const PassWriter& writer) {
  return writer.shared_tokens() * writer.sharing().inner;
}

std::int64_t cuts_of_heads(const PassWriter& writer) {
  return writer.tp() * writer.sharing().inner;
}

std::size_t parties(const PassWriter& writer) {
  return static_cast<std::size_t>(writer.sharing().parties);
}

struct RingWork {
  Index own = 0;
  Index step = 0;
  std::optional<std::int64_t> halo;     ///< RingAttention::halo.
  std::int64_t halo_rows = 0;           ///< Queries that the halo touches.
  std::vector<BusiestLaunch> uneven{};  ///< By step, in place of `own` and `step` where ranks are unequal.
  RingAttention chosen{};               ///< What a single rank scores: RingAttention::scores and target.
};

RingWork ring_work(PassWriter& writer, Direction direction) {
  if (is_uneven(writer.micro_batch())) {
    HDPSIM_CHECK(writer.sharing().inner == 1, "{} ranks trade heads and have unequal attention",
                 writer.sharing().inner);
    HDPSIM_CHECK(!writer.layer().indexer, "unequal ranks choose keys");
    return {.halo = std::nullopt, .uneven = writer.group_work().in_ring()};
  }
  RingAttention ring = ring_attention(writer.micro_batch(), writer.layer(), writer.tp(), writer.sharing(), direction);
  std::int64_t rows = 0;
  for (const AttentionBlock& block : ring.step.blocks) rows += block.queries * block.count;
  const Index own = writer.attention(std::move(ring.own), SpanLaunch::Part::own);
  const Index step = writer.attention(std::move(ring.step), SpanLaunch::Part::step);
  return {own, step, ring.halo, rows, {}, std::move(ring)};
}

// The attention of a step, to keys that `received` brings.
Index attend_step(PassWriter& writer, const RingWork& work, std::size_t step, std::optional<Index> received) {
  if (!work.uneven.empty()) return writer.attend(work.uneven[step], step, received);
  writer.choose_keys(work.chosen, step);
  const Index index = writer.add_ring(Opcode::attention, Stream::compute, step == 0 ? work.own : work.step, step);
  if (received) writer.body().back().after(*received);
  return index;
}

// A merge reads and writes the fp32 output of some queries and reads the step's output.
Index merge_work(PassWriter& writer, std::int64_t queries, std::int64_t of, std::int64_t in) {
  const Transformer& layer = writer.layer();
  const std::int64_t elements = queries * (layer.heads / cuts_of_heads(writer)) * value_dim(layer);
  return writer.memory_bound({Bytes(elements * of / in * (2 * fp32_bytes + layer.element_bytes)), 1});
}

// What the operators of a ring in PyTorch read and write besides: outputs and the gradients of queries, keys and values
// are summed in fp32 (zhuzilin/ring-flash-attention, zigzag_ring_flash_attn.py and utils.py). In bytes of an element of
// the model's type and of one in fp32: casts of the first step's result and of the sum; in half of the steps a half of
// the outputs is copied out of the sum and back; a step adds its gradients to 3/4 of those of queries, keys and values.
constexpr std::int64_t cast_kernels = 2;
constexpr std::int64_t slice_kernels = 1;
constexpr std::int64_t sum_kernels = 3;

bool sums_by_operators(const PassWriter& writer) {
  return writer.recipe().is_pytorch() && writer.sharing().parties > 1 && !writer.layer().indexer;
}

std::int64_t elements_of(const PassWriter& writer, bool gradients) {
  const Transformer& layer = writer.layer();
  const std::int64_t queries = party_tokens(writer) * (layer.heads / cuts_of_heads(writer)) * value_dim(layer);
  const Bytes keys = kv_bytes(layer, party_tokens(writer), cuts_of_heads(writer));
  return queries + (gradients ? keys.count() / layer.element_bytes : 0);
}

// The casts around a ring.
void cast_sums(PassWriter& writer, Direction direction) {
  const bool is_backward = direction == Direction::backward;
  const Bytes cast(elements_of(writer, is_backward) * (writer.layer().element_bytes + fp32_bytes));
  const std::int64_t tensors = is_backward ? 3 : 1;
  writer.add_ring(Opcode::merge, Stream::compute, writer.memory_bound({cast * 2, cast_kernels * tensors}), 0);
}

// The copies of slices of a step forward, and its sums backward.
Index sum_step(PassWriter& writer, Direction direction) {
  const bool is_backward = direction == Direction::backward;
  const std::int64_t elements = elements_of(writer, is_backward);
  const std::int64_t summed = 3 * elements / 4 * (2 * fp32_bytes + writer.layer().element_bytes);
  const std::int64_t sliced = elements / 4 * 2 * fp32_bytes;
  return writer.memory_bound({Bytes(is_backward ? summed : sliced), is_backward ? sum_kernels : slice_kernels});
}

Bytes kv_of(const PassWriter& writer, std::int64_t tokens) {
  return kv_bytes(writer.layer(), tokens, cuts_of_heads(writer));
}

Bytes gradients_of(const PassWriter& writer, Bytes kv) {
  return kv * writer.recipe().dkv_bytes_per_element / writer.layer().element_bytes;
}

// The halo comes while the rank's own parts are computed. Its exchange and its kernels come once a layer and not once a
// ring step: planners read that off the steps' numbers.
void forward_halo(PassWriter& writer, const RingWork& work, std::optional<Index> projected) {
  if (*work.halo == 0) {
    writer.attend_local();
    writer.add_ring(Opcode::attention, Stream::compute, work.own, 0);
    return;
  }
  const std::size_t once = parties(writer) + 1;
  const Index message = writer.bytes(kv_of(writer, *work.halo));
  const Index received = writer.add_ring(Opcode::exchange, Stream::comm, message, once);
  if (projected) writer.body().back().after(*projected);
  writer.attend_local();
  writer.add_ring(Opcode::attention, Stream::compute, work.own, 0);
  writer.end_ring(received);
  writer.add_ring(Opcode::attention, Stream::compute, work.step, 0);
  writer.body().back().after(received);
  if (!writer.recipe().separate_merge) return;
  writer.add_ring(Opcode::merge, Stream::compute, merge_work(writer, work.halo_rows, 1, 1), 0);
}

// The gradients of the halo's keys and values return to the ranks that have them.
std::optional<Index> backward_halo(PassWriter& writer, const RingWork& work, Index differentiated) {
  if (*work.halo == 0) {
    writer.attend_local();
    writer.add_ring(Opcode::attention, Stream::compute, work.own, 0);
    return std::nullopt;
  }
  const std::size_t once = parties(writer) + 1;
  const Bytes kv = kv_of(writer, *work.halo);
  const Index received = writer.add_ring(Opcode::exchange, Stream::comm, writer.bytes(kv), once);
  writer.body().back().after(differentiated);
  writer.attend_local();
  writer.add_ring(Opcode::attention, Stream::compute, work.own, 0);
  const Index computed = writer.add_ring(Opcode::attention, Stream::compute, work.step, 0);
  writer.body().back().after(received);
  const Index gradients = writer.bytes(gradients_of(writer, kv));
  const Index returned = writer.add_ring(Opcode::exchange, Stream::comm, gradients, once);
  writer.body().back().after(computed);
  writer.end_ring(received);
  return returned;
}

}  // namespace

void forward_ring(PassWriter& writer, std::optional<Index> projected) {
  const std::size_t ranks = parties(writer);
  const RingWork work = ring_work(writer, Direction::forward);
  if (work.halo) return forward_halo(writer, work, projected);
  const Index message = writer.bytes(kv_of(writer, party_tokens(writer)));
  const bool by_operators = sums_by_operators(writer);
  const bool merges = (writer.recipe().separate_merge || by_operators) && ranks > 1;
  // An average step touches 3/4 of the queries.
  const bool alike = merges && work.uneven.empty();
  const Index merging = alike ? merge_work(writer, party_tokens(writer), 3, 4) : 0;
  const auto merge_of = [&](std::size_t k) {
    return alike ? merging : merge_work(writer, work.uneven[k].foreign_queries, 1, 1);
  };
  const Index slices = by_operators ? sum_step(writer, Direction::forward) : 0;
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
    if (k == 0) writer.attend_local();
    computed[k] = attend_step(writer, work, k, k > 0 ? std::optional(received[k]) : std::nullopt);
    if (k > 0 && merges) computed[k] = writer.add_ring(Opcode::merge, Stream::compute, merge_of(k), k);
    if (k > 0 && by_operators) computed[k] = writer.add_ring(Opcode::merge, Stream::compute, slices, k);
  }
  if (by_operators) cast_sums(writer, Direction::forward);
}

std::optional<Index> backward_ring(PassWriter& writer, Index differentiated) {
  const std::size_t ranks = parties(writer);
  const RingWork work = ring_work(writer, Direction::backward);
  if (work.halo) return backward_halo(writer, work, differentiated);
  const RingTensors passing =
      form_of(writer.sharing()).passing(writer.layer(), writer.recipe(), party_tokens(writer), cuts_of_heads(writer));
  const Index first = writer.bytes(passing.tensors);
  const Index both = writer.bytes(passing.tensors + passing.gradients);
  const Index gradient = writer.bytes(passing.gradients);
  const bool by_operators = sums_by_operators(writer);
  const Index sums = by_operators ? sum_step(writer, Direction::backward) : 0;
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
    if (k == 0) writer.attend_local();
    computed[k] = attend_step(writer, work, k, k > 0 ? std::optional(received[k]) : std::nullopt);
    if (k > 0 && by_operators) computed[k] = writer.add_ring(Opcode::merge, Stream::compute, sums, k);
  }
  if (ranks == 1) return {};
  if (by_operators) cast_sums(writer, Direction::backward);
  const Index last = writer.add_ring(Opcode::exchange, Stream::comm, gradient, ranks + 1);
  writer.body().back().after(computed[ranks - 1]);
  writer.end_ring(received[1]);
  return last;
}

}  // namespace hdpsim
