#pragma once

#include <cstdint>
#include <vector>

namespace hdpsim {

/// A run of tokens that attends only to itself. Its SequenceId is its index in the batch.
struct Sequence {
  std::int64_t tokens = 0;
  /// The source document. Pieces of one split document share this number; unique to a document within a batch.
  std::int64_t document = 0;

  friend bool operator==(const Sequence&, const Sequence&) = default;
};

/// The sequences of one optimizer step, in data order.
struct Batch {
  std::vector<Sequence> sequences;

  [[nodiscard]] std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const Sequence& sequence : sequences) sum += sequence.tokens;
    return sum;
  }
};

}  // namespace hdpsim
