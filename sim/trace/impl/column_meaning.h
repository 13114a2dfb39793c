#pragma once

#include <cstdint>
#include <string_view>

namespace hdpsim {

/// What a column can hold, by the words of its name: "seq_len", "SeqLen" and "seq len" have the same ones.
enum class ColumnMeaning : std::uint8_t {
  other,
  length,         ///< Tokens: `length`, `seq_len`, `num_tokens`.
  range,          ///< From which to which length: `range`, `bin`, `bucket`.
  lower,          ///< The shortest length of a bin: `lower`, `from`, `bin_start`.
  upper,          ///< The longest length of a bin: `upper_bound`, `to`, `max_len`.
  count,          ///< How many documents: `count`, `docs`, `num_samples`.
  number,         ///< The same, or the number of the row: `n`, `number`.
  share,          ///< The part of the documents: `frequency`, `percent`, `weight`.
  likelihood,     ///< The same, or something about a single document: `p`, `probability`, `ratio`.
  token_share,    ///< The part of the tokens: `token_share`.
  cumulative,     ///< Documents that are at most as long: `cdf`, `cum_count`.
  quantile,       ///< The part of the documents that is at most as long: `quantile`, `percentile`.
  unclear_share,  ///< Of longer documents, or of the tokens in shorter ones: `ccdf`, `cum_tokens`.
};

[[nodiscard]] ColumnMeaning meaning_of_column(std::string_view name);

}  // namespace hdpsim
