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

GroupCore::GroupCore(Backend& backend, Transport& pool, const LayerKinds& kinds)
    : backend_(backend),
      kinds_(kinds),
      ring_(backend, pool),
      halo_(backend, pool),
      local_(backend, pool),
      chunks_(backend),
      gathered_(backend, pool),
      traded_(backend, pool),
      d_o_(backend),
      d_q_(backend),
      d_kv_(backend) {
  for (std::size_t kind = 0; kind < kinds.count(); ++kind) {
    const Transformer& layer = kinds.kind(kind);
    of_kinds_.push_back({heads_of(layer), {layer.window, layer.attention_chunk}});
  }
}

void GroupCore::join(const Share& share) {
  share_ = &share;
  kind_.reset();
}

void GroupCore::take_kind_of(std::int64_t layer) {
  const std::size_t kind = kinds_.kind_of(layer);
  if (kind_ == kind) return;
  kind_ = kind;
  has_halo_ = false;
  const Share& share = *share_;
  local_.join({&share.local, &share.self, 0}, heads());
  if (share.chunk) chunks_.join(*share.chunk, heads());
  if (share.sharing.gathers) return gathered_.join(share.together, share.launches, heads());
  AttentionHeads own = heads();
  own.heads /= share.sharing.inner;
  own.kv_heads /= share.sharing.inner;
  const RingPlace place{&share.documents, &share.members, share.position};
  has_halo_ = share.sharing.has_ring() && reach().limits(share.documents.longest());
  has_halo_ ? halo_.join(place, own, reach().window) : ring_.join(place, own);
  if (share.sharing.trades_heads()) traded_.join(share.together);
}

std::size_t GroupCore::party_bytes(std::int64_t width, std::size_t each) const {
  return size(share_->attended_rows() * width / share_->sharing.inner) * each;
}

void GroupCore::reserve_gradients() {
  (void)d_o_.reserve(party_bytes(output_width(heads()), element_bytes(backend_.element())));
  (void)d_q_.reserve(party_bytes(query_width(heads()), sizeof(float)));
  (void)d_kv_.reserve(party_bytes(kv_width(heads()), sizeof(float)));
}

TradedTensor GroupCore::traded(const SharingCollective& op, const Tensors& tensors) const {
  const LayerActivations& layer = tensors.layer;
  const SharedActivations& shared = tensors.shared;
  const std::size_t parts = size(share_->sharing.inner);
  const bool is_fp32 = op.gradients && op.tensor != SharedTensor::outputs;
  const std::size_t each = is_fp32 ? sizeof(float) : element_bytes(backend_.element());
  // Rows of `of` numbers, of which the tensor has the `count` from `first` on.
  const auto tensor = [&](void* tokens, void* heads, std::int64_t of, std::int64_t first, std::int64_t count) {
    const std::size_t row = size(of) * each;
    const std::size_t offset = size(first) * each;
    return TradedTensor{.tokens = {bytes_at(tokens) + offset, row},
                        .heads = {bytes_at(heads) + offset / parts, row / parts},
                        .width = size(count) * each / parts};
  };
  const std::int64_t query = query_width(heads());
  const std::int64_t output = output_width(heads());
  const std::int64_t both = kv_width(heads());
  switch (op.tensor) {
    case SharedTensor::queries:
      return op.gradients ? tensor(shared.d_q, d_q_.data(), query, 0, query)
                          : tensor(layer.q, layer.traded_q, query, 0, query);
    case SharedTensor::outputs:
      return op.gradients ? tensor(shared.d_o, d_o_.data(), output, 0, output)
                          : tensor(layer.o, layer.traded_o, output, 0, output);
    case SharedTensor::keys:
    case SharedTensor::values: {
      const std::int64_t keys = key_width(heads());
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

void GroupCore::prepare(const SharingCollective& op, const Tensors& tensors) {
  take_kind_of(tensors.index);
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
  op.gradients ? gathered_.reduce(half_of(op.tensor)) : gathered_.gather(half_of(op.tensor));
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
  take_kind_of(tensors.index);
  direction_ = direction;
  layer_ = tensors.index;
  const LayerActivations& layer = tensors.layer;
  const SharedActivations& shared = tensors.shared;
  const bool trades = share_->sharing.trades_heads();
  const void* const q = trades ? layer.traded_q : layer.q;
  const void* const kv = trades ? layer.traded_kv : layer.kv;
  void* const o = trades ? layer.traded_o : layer.o;
  const Reach seen = share_->sharing.has_ring() && !has_halo_ ? Reach{} : reach();
  const auto begin_ring = [&](const auto& op) {
    if (share_->sharing.gathers) return;
    has_halo_ ? halo_.begin(op) : ring_.begin(op);
  };
  if (direction == Direction::forward) {
    forward_ = {.q = q, .kv = kv, .o = o, .lse = layer.lse, .reach = seen};
    return begin_ring(forward_);
  }
  backward_ = {.q = q,
               .kv = kv,
               .o = o,
               .lse = layer.lse,
               .d_o = trades ? d_o_.data() : shared.d_o,
               .d_q = trades ? d_q_.floats() : shared.d_q,
               .d_kv = trades ? d_kv_.floats() : shared.d_kv,
               .reach = seen};
  begin_ring(backward_);
}

void GroupCore::attend(int step) {
  if (share_->chunk) {
    return direction_ == Direction::forward ? chunks_.attend(layer_, forward_) : chunks_.attend(layer_, backward_);
  }
  if (has_halo_) return halo_.attend();
  if (!share_->sharing.gathers) return ring_.attend(step);
  direction_ == Direction::forward ? gathered_.attend(forward_) : gathered_.attend(backward_);
}

void GroupCore::attend_local() {
  if (share_->local.rows(0) == 0) return;
  const std::int64_t rows = share_->shared_rows();
  const std::size_t element = element_bytes(backend_.element());
  const std::size_t queries = size(rows * query_width(heads()));
  const std::size_t outputs = size(rows * output_width(heads()));
  const std::size_t keys = size(rows * kv_width(heads()));
  const std::size_t statistics = size(rows * heads().heads);
  if (direction_ == Direction::forward) {
    RingForward own = forward_;
    own.q = bytes_at(own.q) + queries * element;
    own.kv = bytes_at(own.kv) + keys * element;
    own.o = bytes_at(own.o) + outputs * element;
    own.lse += statistics;
    own.reach = reach();
    local_.begin(own);
  } else {
    RingBackward own = backward_;
    own.q = bytes_at(own.q) + queries * element;
    own.kv = bytes_at(own.kv) + keys * element;
    own.o = bytes_at(own.o) + outputs * element;
    own.lse += statistics;
    own.d_o = bytes_at(own.d_o) + outputs * element;
    own.d_q += queries;
    own.d_kv += keys;
    own.reach = reach();
    local_.begin(own);
  }
  local_.attend(0);
}

}  // namespace hdpsim::kernels::exec
