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

KeyShape offload_shape(const OffloadWords& words) {
  KeyShape ratio = shape_of(KeyShape::Kind::number);
  ratio.range = Range{0, 1};
  ratio.limits = range_text(*ratio.range);
  const KeyShape word = words.splits_tokens ? word_shape({"none", "auto", "token-wise"}) : word_shape({"none", "auto"});
  return either_shape({word, ratio});
}

std::string offload_meaning(const OffloadWords& words) {
  return fmt::format(
      "the share of the activations of every micro-batch that goes to the host, but for two layers of a pass, which "
      "stay; `auto`: {}{}",
      words.automatic, words.splits_tokens ? "; `token-wise`: MEMO's split between host memory and recomputation" : "");
}

OffloadRule offload_of(const Value& value, const OffloadWords& words, Diagnostics& diagnostics) {
  using Mode = OffloadRule::Mode;
  if (value.text == "none") return {};
  if (value.text == "auto") return {Mode::automatic, 0};
  if (words.splits_tokens && value.text == "token-wise") return {Mode::token_wise, 0};
  Diagnostics not_a_number;
  const double ratio = read<double>(value, not_a_number).value_or(-1);
  if (ratio >= 0 && ratio <= 1) return {ratio > 0 ? Mode::fixed : Mode::none, ratio};
  const std::string_view third = words.splits_tokens ? ", token-wise" : "";
  diagnostics.error(
      value.position,
      fmt::format("'offload' is {}, it must be none, auto{} or a ratio from 0 to 1", written(value), third),
      fmt::format("write none, auto{} or a ratio such as 0.5", third));
  return {};
}

}  // namespace hdpsim
