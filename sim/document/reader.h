#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/document/document.h"

namespace hdpsim {

/// The value as T, or a reported problem and nothing. Defined for std::int64_t (`256Ki`), double, bool (true, false),
/// std::string, Duration, Bytes, Bandwidth and FlopRate (each with its unit).
template <class T>
[[nodiscard]] std::optional<T> read(const Value& value, Diagnostics& diagnostics);

/// Inclusive limits of a number.
struct Range {
  double least;
  double most;
};

/// Reads one map of a document. Every key that the format knows is asked for exactly once, present or not; finish()
/// then reports the keys that nobody asked for, with a suggestion.
class MapReader {
 public:
  /// `what` names the thing for messages: "a node", "the study". A value that is no map is reported; all keys are then
  /// absent and required ones are not reported again.
  MapReader(const Value& value, std::string what, Diagnostics& diagnostics);

  /// The value of an optional key; nullptr when absent or null.
  const Value* find(std::string_view key);
  /// The value of a required key; absent is reported.
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
  /// Numbers (std::int64_t or double) that must lie in a range; outside is reported and nothing returned.
  template <class T>
  std::optional<T> optional_in(std::string_view key, Range range) {
    const Value* value = find(key);
    return value == nullptr ? std::nullopt : limited<T>(key, *value, range);
  }
  template <class T>
  std::optional<T> required_in(std::string_view key, Range range) {
    const Value* value = require(key);
    return value == nullptr ? std::nullopt : limited<T>(key, *value, range);
  }

  /// Reports every key that was never asked for.
  void finish();
  /// Reports a problem at the map itself.
  void error(const std::string& message, const std::string& help = {});
  [[nodiscard]] const Value& value() const { return value_; }
  [[nodiscard]] Diagnostics& diagnostics() { return diagnostics_; }

 private:
  template <class T>
  std::optional<T> limited(std::string_view key, const Value& value, Range range);

  const Value& value_;
  std::string what_;
  Diagnostics& diagnostics_;
  std::vector<std::string> known_;
};

/// One of a fixed set of words; anything else is reported with a suggestion. `words[i]` stands for the i-th choice.
[[nodiscard]] std::optional<std::size_t> read_choice(const Value& value, std::string_view what,
                                                     const std::vector<std::string>& words, Diagnostics& diagnostics);

}  // namespace hdpsim
