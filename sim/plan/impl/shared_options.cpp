#include "sim/plan/impl/shared_options.h"

#include <fmt/format.h>

namespace hdpsim {

std::string_view written(const Value& value) {
  return value.is_scalar() ? std::string_view(value.text) : kind_name(value.kind);
}

std::optional<std::int64_t> cp_of(const Value& value, Diagnostics& diagnostics) {
  if (value.text == "auto") return std::nullopt;
  const std::optional<std::int64_t> ranks = parse_count(value.text).value;
  if (value.is_scalar() && ranks.value_or(0) >= 1) return ranks;
  diagnostics.error(value.position, fmt::format("'cp' is {}, it must be auto or a number of ranks", written(value)),
                    "write cp: auto, or cp: 8");
  return std::nullopt;
}

OffloadRule offload_of(const Value& value, Diagnostics& diagnostics) {
  using Mode = OffloadRule::Mode;
  if (value.text == "none") return {};
  if (value.text == "auto") return {Mode::automatic, 0};
  if (value.text == "token-wise") return {Mode::token_wise, 0};
  Diagnostics not_a_number;
  const double ratio = read<double>(value, not_a_number).value_or(-1);
  if (ratio >= 0 && ratio <= 1) return {ratio > 0 ? Mode::fixed : Mode::none, ratio};
  diagnostics.error(
      value.position,
      fmt::format("'offload' is {}, it must be none, auto, token-wise or a ratio from 0 to 1", written(value)),
      "write none, auto, token-wise or a ratio such as 0.5");
  return {};
}

}  // namespace hdpsim
