#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/document/reader.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// Helpers for the readers of all sections of a profile. A value that is missing or wrong is reported and left at zero;
/// the caller discards the profile if anything was reported.
class FieldReader {
 public:
  explicit FieldReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

 protected:
  static constexpr Range positive_range{1, 1e12};
  static constexpr Range not_negative{0, 1e12};

  std::string text(MapReader& map, std::string_view key);
  std::int64_t count(MapReader& map, std::string_view key);
  /// One side of a kernel's tile. The limit is 65,536, which no tile is near, because code loops over tiles one by one.
  std::int64_t tile_side(MapReader& map, std::string_view key);
  /// A number >= 0.
  double number(MapReader& map, std::string_view key);
  Duration time(MapReader& map, std::string_view key);
  template <class T>
  T positive(MapReader& map, std::string_view key);
  template <class T>
  std::optional<T> optional_positive(MapReader& map, std::string_view key);
  template <class T>
  void check_positive(const Value& value, std::string_view key, const T& quantity);
  std::optional<Spread> spread(MapReader& map);
  /// The items of a list of at least one; empty if the key is absent, which is reported if it is required.
  const std::vector<Value>& list(MapReader& map, std::string_view key, bool required, std::string_view of);
  /// The index of a word in `words`; 0, with a problem reported, if it is none of them.
  std::size_t choice(MapReader& map, std::string_view key, const std::vector<std::string>& words);

  Diagnostics& diagnostics_;
};

}  // namespace hdpsim
