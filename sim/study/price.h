#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/document/key.h"

namespace hdpsim {

/// What one of something costs: a GPU-hour, a kWh.
struct Price {
  double amount = 0;
  std::string currency;  ///< Three letters: "USD".
};

/// The unit of what GPUs are rented by.
inline constexpr std::string_view gpu_hour = "GPU-hour";

/// The values of a key that is a price of one `unit`.
[[nodiscard]] KeyShape price_shape(std::string_view unit);

/// Reads the price of one `unit`: "2.10 USD/GPU-hour". Empty, with a problem reported, unless it is a positive amount
/// of at most 1e9.
[[nodiscard]] std::optional<Price> read_price(const Value& value, std::string_view unit, Diagnostics& diagnostics);

}  // namespace hdpsim
