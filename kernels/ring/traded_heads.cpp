#include "kernels/ring/traded_heads.h"

namespace hdpsim::kernels {
namespace {

StridedRows<const std::byte> read(const StridedRows<std::byte>& rows) {
  return {rows.data, rows.stride};
}

// The part of a rank's tokens that belongs to a member.
StridedRows<std::byte> heads_of(const TradedTensor& tensor, std::size_t member) {
  return {tensor.tokens.data + member * tensor.width, tensor.tokens.stride};
}

}  // namespace

void TradedHeads::join(const GroupRows& rows) {
  rows_ = &rows;
  if (group_ && joined_ == rows.members) return;
  group_.emplace(transport_, rows.members, &backend_);
  joined_ = rows.members;
}

void TradedHeads::prepare(const TradedTensor& tensor, Way way) {
  (void)sent_.reserve(rows_->members.size() * part_bytes(tensor));
  (void)received_.reserve(rows_->members.size() * part_bytes(tensor));
  for (std::size_t member = 0; member < rows_->members.size(); ++member) {
    const StridedRows<std::byte> to = part(sent_, tensor, member);
    if (way == Way::to_heads) {
      copy_rows(backend_, to, read(heads_of(tensor, member)), tensor.width, rows_->own());
      continue;
    }
    for (const RowRange& range : rows_->held[member]) {
      copy_rows(backend_, to.from(range.held), read(tensor.heads.from(range.begin)), tensor.width, range.rows);
    }
  }
}

void TradedHeads::trade(const TradedTensor& tensor) {
  group_->all_to_all(sent_.data(), received_.data(), part_bytes(tensor));
}

void TradedHeads::finish(const TradedTensor& tensor, Way way) {
  for (std::size_t member = 0; member < rows_->members.size(); ++member) {
    const StridedRows<std::byte> from = part(received_, tensor, member);
    if (way == Way::to_tokens) {
      copy_rows(backend_, heads_of(tensor, member), read(from), tensor.width, rows_->own());
      continue;
    }
    for (const RowRange& range : rows_->held[member]) {
      copy_rows(backend_, tensor.heads.from(range.begin), read(from.from(range.held)), tensor.width, range.rows);
    }
  }
}

}  // namespace hdpsim::kernels
