#include "sim/document/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity_text.h"
#include "sim/base/real_number.h"

namespace hdpsim {
namespace {

bool expect_scalar(const Value& value, std::string_view expected, Diagnostics& diagnostics) {
  if (value.is_scalar()) return true;
  if (!diagnostics.keeps(value.position)) return false;
  diagnostics.error(value.position, fmt::format("expected {}, found {}", expected, kind_name(value.kind)));
  return false;
}

template <class T>
std::optional<T> read_quantity(const Value& value, std::string_view expected, Parsed<T> (*parse)(std::string_view),
                               Diagnostics& diagnostics) {
  if (!expect_scalar(value, expected, diagnostics)) return std::nullopt;
  Parsed<T> parsed = parse(value.text);
  if (!parsed.value) diagnostics.error(value.position, parsed.error, parsed.help);
  return parsed.value;
}

// Numbers are compared as doubles, quantities as they are.
template <class T>
auto compared(const T& read) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(read);
  } else {
    return read;
  }
}

// "1e+12", "1Gi".
std::string limit_text(double limit) {
  constexpr double mega = 1024 * 1024;
  const bool is_binary = limit >= mega && limit < 9e15 && std::fmod(limit, mega) == 0;
  return is_binary ? count_text(static_cast<std::int64_t>(limit)) : fmt::format("{:g}", limit);
}

}  // namespace

std::string range_text(const Range& range) {
  return std::isinf(range.most) ? fmt::format("at least {}", limit_text(range.least))
                                : fmt::format("from {} to {}", limit_text(range.least), limit_text(range.most));
}

template <class T>
std::string range_text(const Between<T>& range) {
  return fmt::format("from {} to {}", hdpsim::limit_text(range.least), hdpsim::limit_text(range.most));
}

template std::string range_text(const Between<Duration>&);
template std::string range_text(const Between<Bytes>&);
template std::string range_text(const Between<Bandwidth>&);
template std::string range_text(const Between<FlopRate>&);

template <>
std::optional<std::int64_t> read(const Value& value, Diagnostics& diagnostics) {
  return read_quantity<std::int64_t>(value, "a whole number", parse_count, diagnostics);
}

template <>
std::optional<double> read(const Value& value, Diagnostics& diagnostics) {
  if (!expect_scalar(value, "a number", diagnostics)) return std::nullopt;
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = read_real_number(value.text.data(), end, number);
  if (error == std::errc{} && stop == end && std::isfinite(number)) return number;
  diagnostics.error(value.position, fmt::format("\"{}\" is not a number", value.text), "write a number such as 0.75");
  return std::nullopt;
}

template <>
std::optional<bool> read(const Value& value, Diagnostics& diagnostics) {
  if (!expect_scalar(value, "true or false", diagnostics)) return std::nullopt;
  if (value.text == "true") return true;
  if (value.text == "false") return false;
  diagnostics.error(value.position, fmt::format("\"{}\" is neither true nor false", value.text), "write true or false");
  return std::nullopt;
}

template <>
std::optional<std::string> read(const Value& value, Diagnostics& diagnostics) {
  if (!expect_scalar(value, "a text", diagnostics)) return std::nullopt;
  return value.text;
}

template <>
std::optional<Duration> read(const Value& value, Diagnostics& diagnostics) {
  return read_quantity<Duration>(value, "a time", parse_duration, diagnostics);
}

template <>
std::optional<Bytes> read(const Value& value, Diagnostics& diagnostics) {
  return read_quantity<Bytes>(value, "an amount of data", parse_bytes, diagnostics);
}

template <>
std::optional<Bandwidth> read(const Value& value, Diagnostics& diagnostics) {
  return read_quantity<Bandwidth>(value, "a bandwidth", parse_bandwidth, diagnostics);
}

template <>
std::optional<FlopRate> read(const Value& value, Diagnostics& diagnostics) {
  return read_quantity<FlopRate>(value, "an arithmetic speed", parse_flop_rate, diagnostics);
}

MapReader::MapReader(const Value& value, std::string what, Diagnostics& diagnostics)
    : value_(value), what_(std::move(what)), diagnostics_(diagnostics) {
  if (value.is_map() || !diagnostics_.keeps(value.position)) return;
  error(fmt::format("{} must be a map, found {}", what_, kind_name(value.kind)));
}

const Value* MapReader::find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  const Value* found = value_.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

const Value* MapReader::require(std::string_view key) {
  const Value* found = find(key);
  if (found == nullptr && value_.is_map()) error(fmt::format("{} needs '{}'", what_, key));
  return found;
}

std::string MapReader::quoted(std::string_view key) {
  return fmt::format("'{}'", key);
}

template <class T>
std::optional<T> read_in(const Value& value, std::string_view what, RangeOf<T> range, Diagnostics& diagnostics,
                         const std::string& help) {
  const std::optional<T> read = hdpsim::read<T>(value, diagnostics);
  if (!read) return std::nullopt;
  const auto number = compared(*read);
  if (number >= range.least && number <= range.most) return read;
  diagnostics.error(value.position, fmt::format("{} is {}, it must be {}", what, value.text, range_text(range)), help);
  return std::nullopt;
}

template std::optional<std::int64_t> read_in(const Value&, std::string_view, Range, Diagnostics&, const std::string&);
template std::optional<double> read_in(const Value&, std::string_view, Range, Diagnostics&, const std::string&);
template std::optional<Duration> read_in(const Value&, std::string_view, Between<Duration>, Diagnostics&,
                                         const std::string&);
template std::optional<Bytes> read_in(const Value&, std::string_view, Between<Bytes>, Diagnostics&, const std::string&);
template std::optional<Bandwidth> read_in(const Value&, std::string_view, Between<Bandwidth>, Diagnostics&,
                                          const std::string&);
template std::optional<FlopRate> read_in(const Value&, std::string_view, Between<FlopRate>, Diagnostics&,
                                         const std::string&);

void MapReader::finish() {
  for (const auto& entry : value_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    if (!diagnostics_.keeps(entry.position)) continue;
    diagnostics_.error(entry.position, fmt::format("{} has no key '{}'", what_, entry.key),
                       suggestion(entry.key, known_));
  }
}

void MapReader::error(const std::string& message, const std::string& help) {
  diagnostics_.error(value_.position, message, help);
}

std::optional<std::size_t> read_choice(const Value& value, std::string_view what, const std::vector<std::string>& words,
                                       Diagnostics& diagnostics) {
  const auto word = read<std::string>(value, diagnostics);
  if (!word) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), *word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  if (!diagnostics.keeps(value.position)) return std::nullopt;
  diagnostics.error(value.position, fmt::format("there is no {} '{}'", what, *word), suggestion(*word, words));
  return std::nullopt;
}

}  // namespace hdpsim
