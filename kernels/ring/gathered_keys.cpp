#include "kernels/ring/gathered_keys.h"

namespace hdpsim::kernels {
namespace {

std::size_t index_of(KeyOrValue which) {
  return which == KeyOrValue::key ? 0 : 1;
}

}  // namespace

GatheredKeys::GatheredKeys(Backend& backend, Transport& transport)
    : backend_(backend),
      transport_(transport),
      own_(backend),
      gathered_{Scratch(backend), Scratch(backend)},
      ordered_(backend),
      delta_(backend),
      d_ordered_(backend),
      d_gathered_(backend),
      d_own_(backend) {}

void GatheredKeys::join(const GroupRows& rows, const Launches& launches, const AttentionHeads& heads) {
  rows_ = &rows;
  launches_ = &launches;
  heads_ = heads;
  if (group_ && joined_ == rows.members) return;
  group_.emplace(transport_, rows.members, &backend_);
  joined_ = rows.members;
}

void GatheredKeys::prepare_gather(KeyOrValue which, const void* kv) {
  const std::size_t each = element_bytes(backend_.element());
  const std::size_t bytes = width(which) * each;
  (void)own_.reserve(most() * bytes);
  (void)gathered_[index_of(which)].reserve(members() * most() * bytes);
  copy_rows(backend_, {own_.data(), bytes}, part(static_cast<const std::byte*>(kv), which, each), bytes, rows_->own());
}

void GatheredKeys::gather(KeyOrValue which) {
  group_->all_gather(own_.data(), gathered_[index_of(which)].data(),
                     most() * width(which) * element_bytes(backend_.element()));
}

void GatheredKeys::put_in_order() {
  const std::size_t each = element_bytes(backend_.element());
  std::byte* const ordered = ordered_.reserve(static_cast<std::size_t>(rows_->all() * kv_width(heads_)) * each);
  for (const KeyOrValue which : {KeyOrValue::key, KeyOrValue::value}) {
    const std::size_t bytes = width(which) * each;
    for (std::size_t member = 0; member < members(); ++member) {
      const StridedRows<const std::byte> from{gathered_[index_of(which)].data() + member * most() * bytes, bytes};
      for (const RowRange& range : rows_->held[member]) {
        copy_rows(backend_, part(ordered, which, each).from(range.begin), from.from(range.held), bytes, range.rows);
      }
    }
  }
}

// Each query row is in one launch, which has the sinks of its heads.
void GatheredKeys::attend(const RingForward& op) {
  for (const std::vector<AttentionBlock>& whole : *launches_) {
    const std::vector<AttentionBlock> blocks = limited(whole, op.reach);
    AttentionForward launched = forward_launch(launch(blocks), op, ordered_.data());
    launched.sinks = op.sinks;
    backend_.run(launched);
  }
}

void GatheredKeys::attend(const RingBackward& op) {
  const std::size_t d_bytes = static_cast<std::size_t>(rows_->all() * kv_width(heads_)) * sizeof(float);
  (void)delta_.reserve(static_cast<std::size_t>(rows_->own() * heads_.heads) * sizeof(float));
  begin_backward(backend_, heads_, rows_->own(), op, delta_.floats());
  backend_.fill_bytes(d_ordered_.reserve(d_bytes), 0, d_bytes);
  for (const std::vector<AttentionBlock>& whole : *launches_) {
    const std::vector<AttentionBlock> blocks = limited(whole, op.reach);
    AttentionBackward launched =
        backward_launch(launch(blocks), op, ordered_.data(), d_ordered_.floats(), delta_.floats());
    launched.sinks = op.sinks;
    launched.d_sinks = op.d_sinks;
    backend_.run(launched);
  }
}

void GatheredKeys::prepare_reduce(KeyOrValue which) {
  const std::size_t bytes = width(which) * sizeof(float);
  std::byte* const parts = d_gathered_.reserve(members() * most() * bytes);
  (void)d_own_.reserve(most() * bytes);
  const std::byte* const ordered = d_ordered_.data();
  for (std::size_t member = 0; member < members(); ++member) {
    const StridedRows<std::byte> to{parts + member * most() * bytes, bytes};
    for (const RowRange& range : rows_->held[member]) {
      copy_rows(backend_, to.from(range.held), part(ordered, which, sizeof(float)).from(range.begin), bytes,
                range.rows);
    }
  }
}

void GatheredKeys::reduce(KeyOrValue which) {
  group_->reduce_scatter(d_gathered_.floats(), d_own_.floats(), most() * width(which));
}

void GatheredKeys::finish_reduce(KeyOrValue which, float* d_kv) {
  const std::size_t bytes = width(which) * sizeof(float);
  copy_rows(backend_, part(reinterpret_cast<std::byte*>(d_kv), which, sizeof(float)), {d_own_.data(), bytes}, bytes,
            rows_->own());
}

}  // namespace hdpsim::kernels
