#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/base/quantity_limits.h"
#include "sim/base/units.h"
#include "sim/document/document.h"

namespace hdpsim {

/// The value as T; empty, with a problem reported, if it is none. Defined for std::int64_t (`256Ki`), double, bool
/// (true, false), std::string, Duration, Bytes, Bandwidth and FlopRate (each with its unit).
template <class T>
[[nodiscard]] std::optional<T> read(const Value& value, Diagnostics& diagnostics);

/// Inclusive limits of a number.
struct Range {
  double least;
  double most;
};

template <class T>
using RangeOf = std::conditional_t<std::is_arithmetic_v<T>, Range, Between<T>>;

/// "from 1 to 1Gi", "at least 1", "from 0 s to 3600 s": for messages.
[[nodiscard]] std::string range_text(const Range& range);
template <class T>
[[nodiscard]] std::string range_text(const Between<T>& range);

/// The same for a number (std::int64_t, double) or a quantity that must lie in a range. A value outside is reported as
/// "`what` is 2 s, it must be from 0 s to 1 s", with the value as the file writes it.
template <class T>
[[nodiscard]] std::optional<T> read_in(const Value& value, std::string_view what, RangeOf<T> range,
                                       Diagnostics& diagnostics, const std::string& help = {});

/// Reads one map of a document. Every key that the format knows is asked for exactly once, present or not; finish()
/// then reports the keys that nobody asked for, with a suggestion.
class MapReader {
 public:
  /// `what` names the map for messages: "a node", "the study". A value that is not a map is reported; all keys then
  /// count as absent, and required ones are not reported again.
  MapReader(const Value& value, std::string what, Diagnostics& diagnostics);

  /// The value of an optional key; nullptr if it is absent or null.
  const Value* find(std::string_view key);
  /// The value of a required key; a missing one is reported.
  const Value* require(std::string_view key);

  template <class T>
  std::optional<T> optional(std::string_view key) {
    const Value* value = find(key);
    return value == nullptr ? std::nullopt : read<T>(*value, diagnostics_);
  }
  template <class T>
  T optional(std::string_view key, T fallback) {
    return optional<T>(key).value_or(std::move(fallback));
  }
  template <class T>
  std::optional<T> required(std::string_view key) {
    const Value* value = require(key);
    return value == nullptr ? std::nullopt : read<T>(*value, diagnostics_);
  }
  /// The value of a key whose value must lie in a range, as for read_in().
  template <class T>
  std::optional<T> optional_in(std::string_view key, RangeOf<T> range) {
    const Value* value = find(key);
    return value == nullptr ? std::nullopt : in_range<T>(key, *value, range);
  }
  template <class T>
  std::optional<T> required_in(std::string_view key, RangeOf<T> range) {
    const Value* value = require(key);
    return value == nullptr ? std::nullopt : in_range<T>(key, *value, range);
  }

  /// Reports every key that was never asked for.
  void finish();
  /// Reports a problem at the map itself.
  void error(const std::string& message, const std::string& help = {});
  [[nodiscard]] const Value& value() const { return value_; }
  [[nodiscard]] Diagnostics& diagnostics() { return diagnostics_; }

 private:
  template <class T>
  std::optional<T> in_range(std::string_view key, const Value& value, RangeOf<T> range) {
    return read_in<T>(value, quoted(key), range, diagnostics_);
  }
  static std::string quoted(std::string_view key);

  const Value& value_;
  std::string what_;
  Diagnostics& diagnostics_;
  std::vector<std::string> known_;
};

/// Reads one of a fixed set of words and returns its index in `words`; anything else is reported with a suggestion.
[[nodiscard]] std::optional<std::size_t> read_choice(const Value& value, std::string_view what,
                                                     const std::vector<std::string>& words, Diagnostics& diagnostics);

}  // namespace hdpsim
