#include "sim/document/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

bool expect_scalar(const Value& value, std::string_view expected, Diagnostics& diagnostics) {
  if (value.is_scalar()) return true;
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

}  // namespace

template <>
std::optional<std::int64_t> read(const Value& value, Diagnostics& diagnostics) {
  return read_quantity<std::int64_t>(value, "a whole number", parse_count, diagnostics);
}

template <>
std::optional<double> read(const Value& value, Diagnostics& diagnostics) {
  if (!expect_scalar(value, "a number", diagnostics)) return std::nullopt;
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
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
  if (!value.is_map()) error(fmt::format("{} must be a map, found {}", what_, kind_name(value.kind)));
}

const Value* MapReader::find(std::string_view key) {
  known_.emplace_back(key);
  const Value* found = value_.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

const Value* MapReader::require(std::string_view key) {
  const Value* found = find(key);
  if (found == nullptr && value_.is_map()) error(fmt::format("{} needs '{}'", what_, key));
  return found;
}

template <class T>
std::optional<T> MapReader::limited(std::string_view key, const Value& value, Range range) {
  const std::optional<T> number = read<T>(value, diagnostics_);
  if (!number) return std::nullopt;
  const auto compared = static_cast<double>(*number);
  if (compared >= range.least && compared <= range.most) return number;
  const std::string limits = std::isinf(range.most) ? fmt::format("at least {:g}", range.least)
                                                    : fmt::format("from {:g} to {:g}", range.least, range.most);
  diagnostics_.error(value.position, fmt::format("'{}' is {}, it must be {}", key, value.text, limits));
  return std::nullopt;
}

template std::optional<std::int64_t> MapReader::limited(std::string_view, const Value&, Range);
template std::optional<double> MapReader::limited(std::string_view, const Value&, Range);

void MapReader::finish() {
  for (const auto& entry : value_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
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
  diagnostics.error(value.position, fmt::format("there is no {} '{}'", what, *word), suggestion(*word, words));
  return std::nullopt;
}

}  // namespace hdpsim
