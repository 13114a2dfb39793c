#include "kernels/exec/impl/group_core.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/exec/impl/executed_sharing.h"
#include "kernels/spec/error.h"

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

}  // namespace

GroupCore::GroupCore(Backend& backend, Transport& pool, const LayerKinds& kinds)
    : backend_(backend), pool_(pool), kinds_(kinds), local_(backend, pool), chunks_(backend) {
  for (std::size_t kind = 0; kind < kinds.count(); ++kind) {
    const Transformer& layer = kinds.kind(kind);
    of_kinds_.push_back({heads_of(layer), {layer.window, layer.attention_chunk}});
  }
}

void GroupCore::join(const Share& share) {
  share_ = &share;
  kind_.reset();
  const KeyExchange exchange = share.sharing.exchange;
  std::unique_ptr<SharedCore>& core = cores_.at(static_cast<std::size_t>(exchange));
  if (!core) core = executed_sharing(exchange).make(backend_, pool_);
  core_ = core.get();
}

void GroupCore::take_kind_of(std::int64_t layer) {
  const std::size_t kind = kinds_.kind_of(layer);
  if (kind_ == kind) return;
  kind_ = kind;
  local_.join({&share_->local, &share_->self, 0}, heads());
  if (share_->chunk) chunks_.join(*share_->chunk, heads());
  core_->join(*share_, heads(), reach());
}

void GroupCore::prepare(const SharingCollective& op, const Tensors& tensors) {
  take_kind_of(tensors.index);
  core_->prepare(op, tensors);
}

void GroupCore::meet(const SharingCollective& op) {
  try {
    core_->run(op);
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("attention of ranks {}, {}: {}", fmt::join(share_->together.members, " "),
                                  collective_name(op.kind), error.what()));
  }
}

void GroupCore::finish(const SharingCollective& op, const Tensors& tensors) {
  core_->finish(op, tensors);
}

void GroupCore::begin(Direction direction, const Tensors& tensors) {
  take_kind_of(tensors.index);
  direction_ = direction;
  layer_ = tensors.index;
  const LayerActivations& layer = tensors.layer;
  const SharedActivations& shared = tensors.shared;
  if (direction == Direction::forward) {
    forward_ = {.q = layer.q, .kv = layer.kv, .o = layer.o, .lse = layer.lse, .reach = reach()};
    return core_->begin(forward_, tensors);
  }
  backward_ = {.q = layer.q,
               .kv = layer.kv,
               .o = layer.o,
               .lse = layer.lse,
               .d_o = shared.d_o,
               .d_q = shared.d_q,
               .d_kv = shared.d_kv,
               .reach = reach()};
  core_->begin(backward_, tensors);
}

void GroupCore::attend(int step) {
  if (!share_->chunk) return core_->attend(step);
  direction_ == Direction::forward ? chunks_.attend(layer_, forward_) : chunks_.attend(layer_, backward_);
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
