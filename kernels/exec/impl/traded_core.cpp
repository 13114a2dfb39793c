#include "kernels/exec/impl/traded_core.h"

#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}

std::size_t size_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

// Outputs are made of heads and needed as tokens; all else is made of tokens. Gradients go the other way.
TradedHeads::Way way_of(const SharingCollective& op) {
  const bool back = (op.tensor == SharedTensor::outputs) != op.gradients;
  return back ? TradedHeads::Way::to_tokens : TradedHeads::Way::to_heads;
}

}  // namespace

void TradedCore::join(const Share& share, const AttentionHeads& heads, const Reach& reach) {
  share_ = &share;
  heads_ = heads;
  RingCore::join(share, heads, reach);
  if (trades()) traded_.join(share.together);
}

std::size_t TradedCore::party_bytes(std::int64_t width, std::size_t each) const {
  return size_of(share_->attended_rows() * width / share_->sharing.inner) * each;
}

void TradedCore::reserve_gradients() {
  (void)d_o_.reserve(party_bytes(output_width(heads_), element_bytes(backend_.element())));
  (void)d_q_.reserve(party_bytes(query_width(heads_), sizeof(float)));
  (void)d_kv_.reserve(party_bytes(kv_width(heads_), sizeof(float)));
}

TradedTensor TradedCore::traded(const SharingCollective& op, const CoreTensors& tensors) const {
  const LayerActivations& layer = tensors.layer;
  const SharedActivations& shared = tensors.shared;
  const std::size_t parts = size_of(share_->sharing.inner);
  const bool is_fp32 = op.gradients && op.tensor != SharedTensor::outputs;
  const std::size_t each = is_fp32 ? sizeof(float) : element_bytes(backend_.element());
  // Rows of `of` numbers, of which the tensor has the `count` from `first` on.
  const auto tensor = [&](void* tokens, void* heads, std::int64_t of, std::int64_t first, std::int64_t count) {
    const std::size_t row = size_of(of) * each;
    const std::size_t offset = size_of(first) * each;
    return TradedTensor{.tokens = {bytes_of(tokens) + offset, row},
                        .heads = {bytes_of(heads) + offset / parts, row / parts},
                        .width = size_of(count) * each / parts};
  };
  const std::int64_t query = query_width(heads_);
  const std::int64_t output = output_width(heads_);
  const std::int64_t both = kv_width(heads_);
  switch (op.tensor) {
    case SharedTensor::queries:
      return op.gradients ? tensor(shared.d_q, d_q_.data(), query, 0, query)
                          : tensor(layer.q, layer.traded_q, query, 0, query);
    case SharedTensor::outputs:
      return op.gradients ? tensor(shared.d_o, d_o_.data(), output, 0, output)
                          : tensor(layer.o, layer.traded_o, output, 0, output);
    case SharedTensor::keys:
    case SharedTensor::values: {
      const std::int64_t keys = key_width(heads_);
      const std::int64_t first = op.tensor == SharedTensor::keys ? 0 : keys;
      const std::int64_t count = op.tensor == SharedTensor::keys ? keys : both - keys;
      return op.gradients ? tensor(shared.d_kv, d_kv_.data(), both, first, count)
                          : tensor(layer.kv, layer.traded_kv, both, first, count);
    }
    case SharedTensor::states:
    case SharedTensor::mixed:
    case SharedTensor::served:
      break;
  }
  HDPSIM_CHECK(false, "tensor {} is traded, which is not executed", static_cast<int>(op.tensor));
}

void TradedCore::prepare(const SharingCollective& op, const CoreTensors& tensors) {
  if (op.gradients) reserve_gradients();
  under_way_ = traded(op, tensors);
  traded_.prepare(under_way_, way_of(op));
}

void TradedCore::finish(const SharingCollective& op, const CoreTensors& /*tensors*/) {
  traded_.finish(under_way_, way_of(op));
}

void TradedCore::begin(const RingForward& op, const CoreTensors& tensors) {
  RingForward of_party = op;
  if (trades()) {
    of_party.q = tensors.layer.traded_q;
    of_party.kv = tensors.layer.traded_kv;
    of_party.o = tensors.layer.traded_o;
  }
  RingCore::begin(of_party, tensors);
}

void TradedCore::begin(const RingBackward& op, const CoreTensors& tensors) {
  RingBackward of_party = op;
  if (trades()) {
    of_party.q = tensors.layer.traded_q;
    of_party.kv = tensors.layer.traded_kv;
    of_party.o = tensors.layer.traded_o;
    of_party.d_o = d_o_.data();
    of_party.d_q = d_q_.floats();
    of_party.d_kv = d_kv_.floats();
  }
  RingCore::begin(of_party, tensors);
}

}  // namespace hdpsim::kernels::exec
