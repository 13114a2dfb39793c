#include "kernels/ring/gathered_keys.h"

namespace hdpsim::kernels {
namespace {

std::size_t index_of(KeyOrValue which) {
  return which == KeyOrValue::key ? 0 : 1;
}

// The keys or the values of rows of both.
template <class T>
StridedRows<T> half(T* both, KeyOrValue which, std::size_t width) {
  return {both + index_of(which) * width, 2 * width};
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
  const std::size_t width = element_width();
  (void)own_.reserve(most() * width);
  (void)gathered_[index_of(which)].reserve(members() * most() * width);
  copy_rows(backend_, {own_.data(), width}, half(static_cast<const std::byte*>(kv), which, width), width, rows_->own());
}

void GatheredKeys::gather(KeyOrValue which) {
  group_->all_gather(own_.data(), gathered_[index_of(which)].data(), most() * element_width());
}

void GatheredKeys::put_in_order() {
  const std::size_t width = element_width();
  std::byte* const ordered = ordered_.reserve(static_cast<std::size_t>(rows_->all()) * 2 * width);
  for (const KeyOrValue which : {KeyOrValue::key, KeyOrValue::value}) {
    for (std::size_t member = 0; member < members(); ++member) {
      const StridedRows<const std::byte> from{gathered_[index_of(which)].data() + member * most() * width, width};
      for (const RowStretch& stretch : rows_->held[member]) {
        copy_rows(backend_, half(ordered, which, width).from(stretch.begin), from.from(stretch.held), width,
                  stretch.rows);
      }
    }
  }
}

void GatheredKeys::attend(const RingForward& op) {
  const std::int64_t query_width = heads_.heads * heads_.dim;
  const std::byte* const keys = ordered_.data();
  for (const std::vector<AttentionBlock>& blocks : *launches_) {
    backend_.run(AttentionForward{.heads = heads_,
                                  .blocks = blocks,
                                  .q = {op.q, query_width},
                                  .k = {keys, 2 * width()},
                                  .v = {keys + element_width(), 2 * width()},
                                  .o = {op.o, query_width},
                                  .lse = op.lse,
                                  .lse_stride = rows_->own()});
  }
}

void GatheredKeys::attend(const RingBackward& op) {
  const std::int64_t query_width = heads_.heads * heads_.dim;
  const std::int64_t own = rows_->own();
  const std::size_t d_bytes = static_cast<std::size_t>(rows_->all()) * 2 * fp32_width();
  (void)delta_.reserve(static_cast<std::size_t>(own * heads_.heads) * sizeof(float));
  backend_.run(AttentionDelta{
      .heads = heads_, .rows = own, .o = {op.o, query_width}, .d_o = {op.d_o, query_width}, .delta = delta_.floats()});
  backend_.fill_bytes(op.d_q, 0, static_cast<std::size_t>(own * query_width) * sizeof(float));
  backend_.fill_bytes(d_ordered_.reserve(d_bytes), 0, d_bytes);
  const std::byte* const keys = ordered_.data();
  for (const std::vector<AttentionBlock>& blocks : *launches_) {
    backend_.run(AttentionBackward{.heads = heads_,
                                   .blocks = blocks,
                                   .q = {op.q, query_width},
                                   .k = {keys, 2 * width()},
                                   .v = {keys + element_width(), 2 * width()},
                                   .d_o = {op.d_o, query_width},
                                   .lse = op.lse,
                                   .delta = delta_.floats(),
                                   .lse_stride = own,
                                   .d_q = {op.d_q, query_width},
                                   .d_k = {d_ordered_.floats(), 2 * width()},
                                   .d_v = {d_ordered_.floats() + width(), 2 * width()},
                                   .deterministic = op.deterministic});
  }
}

void GatheredKeys::prepare_reduce(KeyOrValue which) {
  const std::size_t width = fp32_width();
  std::byte* const parts = d_gathered_.reserve(members() * most() * width);
  (void)d_own_.reserve(most() * width);
  const std::byte* const ordered = d_ordered_.data();
  for (std::size_t member = 0; member < members(); ++member) {
    const StridedRows<std::byte> to{parts + member * most() * width, width};
    for (const RowStretch& stretch : rows_->held[member]) {
      copy_rows(backend_, to.from(stretch.held), half(ordered, which, width).from(stretch.begin), width, stretch.rows);
    }
  }
}

void GatheredKeys::reduce() {
  group_->reduce_scatter(d_gathered_.floats(), d_own_.floats(), most() * static_cast<std::size_t>(width()));
}

void GatheredKeys::finish_reduce(KeyOrValue which, float* d_kv) {
  const std::size_t width = fp32_width();
  copy_rows(backend_, half(reinterpret_cast<std::byte*>(d_kv), which, width), {d_own_.data(), width}, width,
            rows_->own());
}

}  // namespace hdpsim::kernels
