#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/trace/batch_source.h"

namespace hdpsim {

/// The number of tokens of a document that are trained on.
[[nodiscard]] inline std::int64_t kept_tokens(std::int64_t tokens, const BatchOptions& options) {
  if (tokens <= options.context || options.overlong == Overlong::split) return tokens;
  return options.overlong == Overlong::truncate ? options.context : 0;
}

/// The sequences that so many tokens of one document become.
[[nodiscard]] inline double pieces_of(std::int64_t kept, std::int64_t context) {
  return static_cast<double>(kept / context + (kept % context != 0 ? 1 : 0));
}

/// Appends the tokens [from, kept) of a document, in pieces that end at multiples of the context, at most `budget`
/// tokens in all. Returns where it stopped.
[[nodiscard]] inline std::int64_t append_pieces(Batch& batch, std::int64_t document, std::int64_t from,
                                                std::int64_t kept, std::int64_t budget, std::int64_t context) {
  const std::int64_t end = kept - from <= budget ? kept : from + budget;
  while (from < end) {
    const std::int64_t piece_end = std::min(end, (from / context + 1) * context);
    batch.sequences.push_back({piece_end - from, document});
    from = piece_end;
  }
  return end;
}

/// InputError if an option is out of range.
void check(const BatchOptions& options);

}  // namespace hdpsim
