#include "kernels/exec/impl/group_core.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/spec/error.h"
#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

std::byte* bytes_at(void* data) {
  return static_cast<std::byte*>(data);
}

const std::byte* bytes_at(const void* data) {
  return static_cast<const std::byte*>(data);
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

KeyOrValue half_of(SharedTensor tensor) {
  return tensor == SharedTensor::keys ? KeyOrValue::key : KeyOrValue::value;
}

// Outputs are made of heads and needed as tokens; all else is made of tokens. Gradients go the other way.
TradedHeads::Way way_of(const SharingCollective& op) {
  const bool back = (op.tensor == SharedTensor::outputs) != op.gradients;
  return back ? TradedHeads::Way::to_tokens : TradedHeads::Way::to_heads;
}

}  // namespace

GroupCore::GroupCore(Backend& backend, Transport& pool, const AttentionHeads& heads)
    : backend_(backend),
      heads_(heads),
      ring_(backend, pool),
      local_(backend, pool),
      chunks_(backend),
      gathered_(backend, pool),
      traded_(backend, pool),
      d_o_(backend),
      d_q_(backend),
      d_kv_(backend) {}

void GroupCore::join(const Share& share) {
  share_ = &share;
  local_.join({&share.local, &share.self, 0}, heads_);
  if (share.chunk) chunks_.join(*share.chunk, heads_);
  if (share.sharing.gathers) return gathered_.join(share.together, share.launches, heads_);
  AttentionHeads own = heads_;
  own.heads /= share.sharing.inner;
  own.kv_heads /= share.sharing.inner;
  ring_.join({&share.documents, &share.members, share.position}, own);
  if (share.sharing.trades_heads()) traded_.join(share.together);
}

std::size_t GroupCore::party_bytes(std::int64_t heads, std::size_t each) const {
  return size(share_->attended_rows() * heads / share_->sharing.inner * heads_.dim) * each;
}

void GroupCore::reserve_gradients() {
  (void)d_o_.reserve(party_bytes(heads_.heads, element_bytes(backend_.element())));
  (void)d_q_.reserve(party_bytes(heads_.heads, sizeof(float)));
  (void)d_kv_.reserve(party_bytes(2 * heads_.kv_heads, sizeof(float)));
}

TradedTensor GroupCore::traded(const SharingCollective& op, const Tensors& tensors) const {
  const LayerActivations& layer = tensors.layer;
  const SharedActivations& shared = tensors.shared;
  const std::size_t parts = size(share_->sharing.inner);
  const bool is_fp32 = op.gradients && op.tensor != SharedTensor::outputs;
  const std::size_t each = is_fp32 ? sizeof(float) : element_bytes(backend_.element());
  // Rows of `heads` heads, of which the tensor has the `count` from `first` on.
  const auto tensor = [&](void* tokens, void* heads, std::int64_t of, std::int64_t first, std::int64_t count) {
    const std::size_t row = size(of * heads_.dim) * each;
    const std::size_t offset = size(first * heads_.dim) * each;
    return TradedTensor{.tokens = {bytes_at(tokens) + offset, row},
                        .heads = {bytes_at(heads) + offset / parts, row / parts},
                        .width = size(count * heads_.dim) * each / parts};
  };
  const std::int64_t kv = heads_.kv_heads;
  switch (op.tensor) {
    case SharedTensor::queries:
      return op.gradients ? tensor(shared.d_q, d_q_.data(), heads_.heads, 0, heads_.heads)
                          : tensor(layer.q, layer.traded_q, heads_.heads, 0, heads_.heads);
    case SharedTensor::outputs:
      return op.gradients ? tensor(shared.d_o, d_o_.data(), heads_.heads, 0, heads_.heads)
                          : tensor(layer.o, layer.traded_o, heads_.heads, 0, heads_.heads);
    case SharedTensor::keys:
    case SharedTensor::values: {
      const std::int64_t first = op.tensor == SharedTensor::keys ? 0 : kv;
      return op.gradients ? tensor(shared.d_kv, d_kv_.data(), 2 * kv, first, kv)
                          : tensor(layer.kv, layer.traded_kv, 2 * kv, first, kv);
    }
    case SharedTensor::states:
      break;
  }
  HDPSIM_CHECK(false, "states of linear mixing are traded");
}

void GroupCore::prepare(const SharingCollective& op, const Tensors& tensors) {
  if (share_->sharing.gathers) {
    op.gradients ? gathered_.prepare_reduce(half_of(op.tensor))
                 : gathered_.prepare_gather(half_of(op.tensor), tensors.layer.kv);
    return;
  }
  if (op.gradients) reserve_gradients();
  under_way_ = traded(op, tensors);
  traded_.prepare(under_way_, way_of(op));
}

void GroupCore::run_collective(const SharingCollective& op) {
  if (!share_->sharing.gathers) return traded_.trade(under_way_);
  op.gradients ? gathered_.reduce() : gathered_.gather(half_of(op.tensor));
}

void GroupCore::meet(const SharingCollective& op) {
  try {
    run_collective(op);
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("attention of ranks {}, {}: {}", fmt::join(share_->together.members, " "),
                                  collective_name(op.kind), error.what()));
  }
}

void GroupCore::finish(const SharingCollective& op, const Tensors& tensors) {
  if (!share_->sharing.gathers) return traded_.finish(under_way_, way_of(op));
  if (op.gradients) gathered_.finish_reduce(half_of(op.tensor), tensors.shared.d_kv);
}

void GroupCore::begin(Direction direction, const Tensors& tensors) {
  direction_ = direction;
  layer_ = tensors.index;
  const LayerActivations& layer = tensors.layer;
  const SharedActivations& shared = tensors.shared;
  const bool trades = share_->sharing.trades_heads();
  const void* const q = trades ? layer.traded_q : layer.q;
  const void* const kv = trades ? layer.traded_kv : layer.kv;
  void* const o = trades ? layer.traded_o : layer.o;
  if (direction == Direction::forward) {
    forward_ = {.q = q, .kv = kv, .o = o, .lse = layer.lse};
    if (!share_->sharing.gathers) ring_.begin(forward_);
    return;
  }
  backward_ = {.q = q,
               .kv = kv,
               .o = o,
               .lse = layer.lse,
               .d_o = trades ? d_o_.data() : shared.d_o,
               .d_q = trades ? d_q_.floats() : shared.d_q,
               .d_kv = trades ? d_kv_.floats() : shared.d_kv};
  if (!share_->sharing.gathers) ring_.begin(backward_);
}

void GroupCore::attend(int step) {
  if (share_->chunk) {
    return direction_ == Direction::forward ? chunks_.attend(layer_, forward_) : chunks_.attend(layer_, backward_);
  }
  if (!share_->sharing.gathers) return ring_.attend(step);
  direction_ == Direction::forward ? gathered_.attend(forward_) : gathered_.attend(backward_);
}

void GroupCore::attend_local() {
  if (share_->local.rows(0) == 0) return;
  const auto before = [&](std::int64_t heads) { return size(share_->shared_rows() * heads); };
  const std::size_t element = element_bytes(backend_.element());
  const std::size_t of_queries = before(heads_.heads * heads_.dim);
  const std::size_t of_keys = before(2 * heads_.kv_heads * heads_.dim);
  if (direction_ == Direction::forward) {
    local_.begin(RingForward{.q = bytes_at(forward_.q) + of_queries * element,
                             .kv = bytes_at(forward_.kv) + of_keys * element,
                             .o = bytes_at(forward_.o) + of_queries * element,
                             .lse = forward_.lse + before(heads_.heads)});
  } else {
    local_.begin(RingBackward{.q = bytes_at(backward_.q) + of_queries * element,
                              .kv = bytes_at(backward_.kv) + of_keys * element,
                              .o = bytes_at(backward_.o) + of_queries * element,
                              .lse = backward_.lse + before(heads_.heads),
                              .d_o = bytes_at(backward_.d_o) + of_queries * element,
                              .d_q = backward_.d_q + of_queries,
                              .d_kv = backward_.d_kv + of_keys,
                              .deterministic = backward_.deterministic});
  }
  local_.attend(0);
}

}  // namespace hdpsim::kernels::exec
