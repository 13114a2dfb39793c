#include "sim/study/price.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/real_number.h"

namespace hdpsim {
namespace {

std::optional<Price> price_of(std::string_view text, std::string_view unit) {
  Price price;
  const auto [end, error] = read_real_number(text.data(), text.data() + text.size(), price.amount);
  if (error != std::errc{} || !(price.amount > 0 && price.amount <= 1e9)) return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  if (rest.size() != 4 + unit.size() || rest[3] != '/' || !rest.ends_with(unit)) return std::nullopt;
  price.currency = rest.substr(0, 3);
  const bool letters =
      std::all_of(price.currency.begin(), price.currency.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return letters ? std::optional(price) : std::nullopt;
}

}  // namespace

KeyShape price_shape(std::string_view unit) {
  KeyShape shape = shape_of(KeyShape::Kind::text);
  shape.unit = fmt::format("an amount of money a {}", unit);
  return shape;
}

std::optional<Price> read_price(const Value& value, std::string_view unit, Diagnostics& diagnostics) {
  std::optional<Price> price = price_of(value.text, unit);
  if (!price) {
    diagnostics.error(value.position, fmt::format("\"{}\" is not a positive amount of money a {}", value.text, unit),
                      fmt::format("write an amount and a currency: 2.10 USD/{}", unit));
  }
  return price;
}

}  // namespace hdpsim
