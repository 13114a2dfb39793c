#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/plan/group_cut.h"

namespace hdpsim {

/// The ways of cutting of make_group_cut(), one file each, besides dispatch_cut(). Queries that move are those of a
/// micro-batch under TokenCut::served.
[[nodiscard]] std::unique_ptr<GroupCut> per_document_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks);
[[nodiscard]] std::unique_ptr<GroupCut> per_pack_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks);
[[nodiscard]] std::unique_ptr<GroupCut> served_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks,
                                                   const std::vector<ServedQueries>& moved);

/// What is wrong with a micro-batch whose cut moves queries, or would if it were of that cut: how messages about it go
/// on. Its spans and its group need not be sound.
[[nodiscard]] std::vector<std::string> served_problems(const MicroBatch& micro_batch);

/// The tokens of each span of a micro-batch, without its padding.
[[nodiscard]] std::vector<std::int64_t> span_lengths(const MicroBatch& micro_batch);

/// Tokens dealt to 2N parts: an equal number each, and the remainder one token each round the parts.
class PartDealing {
 public:
  /// `first` is the part that gets the first token of the remainder.
  PartDealing(std::int64_t tokens, std::int64_t ranks, std::int64_t first)
      : parts_(2 * ranks), each_(tokens / parts_), remainder_(tokens % parts_), first_(first) {}

  /// The tokens of the parts before `part`, from 0 to 2N; of all if it is 2N. O(1).
  [[nodiscard]] std::int64_t begin(std::int64_t part) const;
  /// Calls visit(part, begin, tokens) for all parts that have tokens, in their order.
  template <class Visit>
  void for_each(Visit visit) const {
    std::int64_t begin = 0;
    const auto visit_all = [&](std::int64_t from, std::int64_t to, std::int64_t tokens) {
      if (tokens == 0) return;
      for (std::int64_t part = from; part < to; ++part, begin += tokens) visit(part, begin, tokens);
    };
    const std::int64_t wrapped = std::max<std::int64_t>(0, first_ + remainder_ - parts_);
    const std::int64_t last = std::min(parts_, first_ + remainder_);
    visit_all(0, wrapped, each_ + 1);
    visit_all(wrapped, first_, each_);
    visit_all(first_, last, each_ + 1);
    visit_all(last, parts_, each_);
  }
  /// The part that gets the first token of the next remainder.
  [[nodiscard]] std::int64_t next() const { return (first_ + remainder_) % parts_; }

 private:
  std::int64_t parts_;
  std::int64_t each_;
  std::int64_t remainder_;
  std::int64_t first_;
};

/// Documents packed one after another.
class Pack {
 public:
  explicit Pack(const std::vector<std::int64_t>& lengths);
  [[nodiscard]] std::int64_t tokens() const { return begins_.back(); }
  [[nodiscard]] std::int64_t begin(std::size_t document) const { return begins_.at(document); }
  /// The tokens from `begin` up to `end`, by document. O(pieces + log documents).
  [[nodiscard]] std::vector<CutPiece> pieces(std::int64_t begin, std::int64_t end) const;

 private:
  std::vector<std::int64_t> begins_;  ///< Of each document, and the end of the last.
};

}  // namespace hdpsim
