#include "sim/study/long_times.h"

#include <fmt/format.h>

#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

constexpr double least_s = 1e-6;
constexpr double most_years = 1000;
constexpr double year_s = 365 * 86400.0;

const char* least_text(bool may_be_zero) {
  return may_be_zero ? "0 s" : "1 us";
}

}  // namespace

std::optional<double> read_long_time(const Value& value, std::string_view key, bool may_be_zero,
                                     Diagnostics& diagnostics) {
  const Parsed<double> seconds = parse_seconds(value.text);
  if (!value.is_scalar() || !seconds.value) {
    diagnostics.error(value.position, value.is_scalar() ? seconds.error : fmt::format("'{}' must be a time", key),
                      seconds.help);
    return std::nullopt;
  }
  const bool is_enough = *seconds.value >= least_s || (may_be_zero && *seconds.value == 0);
  if (is_enough && *seconds.value <= most_years * year_s) return seconds.value;
  diagnostics.error(value.position, fmt::format("'{}' is {}, it must be from {} to {} years", key, value.text,
                                                least_text(may_be_zero), most_years));
  return std::nullopt;
}

KeyShape long_time_shape(bool may_be_zero) {
  KeyShape shape = shape_of(KeyShape::Kind::text);
  shape.unit = "a time";
  shape.limits = fmt::format("from {} to {} years", least_text(may_be_zero), most_years);
  return shape;
}

}  // namespace hdpsim
