#include "sim/profile/impl/field_reader.h"

#include <fmt/format.h>

#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

const std::vector<Value>& no_items() {
  static const std::vector<Value> none;
  return none;
}

constexpr Between<FlopRate> limits_of(FlopRate) {
  return limits::flop_rate;
}
constexpr Between<Bandwidth> limits_of(Bandwidth) {
  return limits::bandwidth;
}
constexpr Between<Bytes> limits_of(Bytes) {
  return limits::message;
}
constexpr Between<Duration> limits_of(Duration) {
  return {1_ps, limits::time.most};
}

}  // namespace

std::string FieldReader::text(MapReader& map, std::string_view key) {
  const auto read = map.required<std::string>(key);
  if (read && read->empty()) diagnostics_.error(map.value().find(key)->position, fmt::format("'{}' says nothing", key));
  return read.value_or("");
}

std::int64_t FieldReader::count(MapReader& map, std::string_view key) {
  return map.required_in<std::int64_t>(key, positive_range).value_or(0);
}

std::int64_t FieldReader::tile_side(MapReader& map, std::string_view key) {
  return map.required_in<std::int64_t>(key, {1, 65536}).value_or(0);
}

double FieldReader::number(MapReader& map, std::string_view key) {
  return map.required_in<double>(key, not_negative).value_or(0);
}

Duration FieldReader::time(MapReader& map, std::string_view key) {
  return map.required_in<Duration>(key, limits::time).value_or(Duration{});
}

template <class T>
T FieldReader::positive(MapReader& map, std::string_view key) {
  const auto read = map.required<T>(key);
  if (!read) return T{};
  check_positive(*map.value().find(key), key, *read);
  return *read;
}

template <class T>
std::optional<T> FieldReader::optional_positive(MapReader& map, std::string_view key) {
  const auto read = map.optional<T>(key);
  if (read) check_positive(*map.value().find(key), key, *read);
  return read;
}

template <class T>
void FieldReader::check_positive(const Value& value, std::string_view key, const T& quantity) {
  const Between<T> range = limits_of(T{});
  if (quantity >= range.least && quantity <= range.most) return;
  diagnostics_.error(value.position, fmt::format("'{}' is {}, it must be from {} to {}", key, value.text,
                                                 limit_text(range.least), limit_text(range.most)));
}

std::optional<Spread> FieldReader::spread(MapReader& map) {
  const auto p10 = map.optional<Duration>("p10");
  const auto p90 = map.optional<Duration>("p90");
  const auto runs = map.optional_in<std::int64_t>("runs", positive_range);
  if (!p10 && !p90 && !runs) return std::nullopt;
  if (p10 && p90 && runs && *p10 > Duration{} && *p10 <= *p90) return Spread{*p10, *p90, *runs};
  map.error("a spread needs 'p10', 'p90' and 'runs', with p10 no more than p90");
  return std::nullopt;
}

const std::vector<Value>& FieldReader::list(MapReader& map, std::string_view key, bool required, std::string_view of) {
  const Value* value = required ? map.require(key) : map.find(key);
  if (value == nullptr) return no_items();
  if (!value->is_sequence() || value->items.empty()) {
    diagnostics_.error(value->position, fmt::format("'{}' must be a list of at least one {}", key, of));
  }
  return value->items;
}

std::size_t FieldReader::choice(MapReader& map, std::string_view key, const std::vector<std::string>& words) {
  const Value* value = map.require(key);
  if (value == nullptr) return 0;
  return read_choice(*value, key, words, diagnostics_).value_or(0);
}

template FlopRate FieldReader::positive(MapReader&, std::string_view);
template Bandwidth FieldReader::positive(MapReader&, std::string_view);
template Bytes FieldReader::positive(MapReader&, std::string_view);
template Duration FieldReader::positive(MapReader&, std::string_view);
template std::optional<Bytes> FieldReader::optional_positive(MapReader&, std::string_view);
template std::optional<Duration> FieldReader::optional_positive(MapReader&, std::string_view);
template void FieldReader::check_positive(const Value&, std::string_view, const Duration&);
template void FieldReader::check_positive(const Value&, std::string_view, const FlopRate&);
template void FieldReader::check_positive(const Value&, std::string_view, const Bandwidth&);

}  // namespace hdpsim
