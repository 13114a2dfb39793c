#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/document/reader.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// What the readers of all sections of a profile need. A value that is missing or wrong is reported and left at zero;
/// whoever calls throws the profile away if anything was reported.
class FieldReader {
 public:
  explicit FieldReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

 protected:
  static constexpr Range positive_range{1, 1e12};
  static constexpr Range not_negative{0, 1e12};

  std::string text(MapReader& map, std::string_view key);
  std::int64_t count(MapReader& map, std::string_view key);
  /// One side of a kernel's tile: none is near 65,536, and what computes on tiles goes through them one by one.
  std::int64_t tile_side(MapReader& map, std::string_view key);
  /// A number from zero on.
  double number(MapReader& map, std::string_view key);
  Duration time(MapReader& map, std::string_view key);
  template <class T>
  T positive(MapReader& map, std::string_view key);
  template <class T>
  std::optional<T> optional_positive(MapReader& map, std::string_view key);
  template <class T>
  void check_positive(const Value& value, std::string_view key, const T& quantity);
  std::optional<Spread> spread(MapReader& map);
  /// The items of a list of at least one; none if the key is absent, which is reported where it is required.
  const std::vector<Value>& list(MapReader& map, std::string_view key, bool required, std::string_view of);
  /// The index of a word that stands for a choice; 0 with a report if it is none of them.
  std::size_t choice(MapReader& map, std::string_view key, const std::vector<std::string>& words);

  Diagnostics& diagnostics_;
};

}  // namespace hdpsim
