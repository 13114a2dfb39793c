#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/document/key.h"
#include "sim/profile/device_profile.h"
#include "sim/profile/impl/field_words.h"

namespace hdpsim {

/// Declares the fields of one map of a profile, as `fields()` states them, for its schema: in the order and with the
/// ranges of FieldReader. A field that only some profiles must have is not required.
class FieldKeys {
 public:
  template <class T>
  using Of = T;

  void schema(const char* name) { add("schema", word_shape({name})); }
  void one_line() {}
  void know(const DeviceProfile& /*profile*/) {}
  /// A list that is required only without such a key is then not.
  [[nodiscard]] static bool has(std::string_view /*key*/) { return true; }
  void meaning(const char* sentence) { sentence_ = sentence; }

  void text(std::string_view key, const std::string& /*text*/) { add(key, shape_of(KeyShape::Kind::text)); }
  void word(std::string_view key, const std::string& word) { text(key, word); }
  void optional_text(std::string_view key, const std::string& /*text*/) {
    add(key, shape_of(KeyShape::Kind::text), false);
  }
  void source(const std::string& source) {
    meaning("where the figures stand; what was measured has its provenance instead");
    optional_text("source", source);
  }

  void count(std::string_view key, std::int64_t /*count*/, const Range& range = positive_range) {
    add(key, count_shape(range));
  }
  void count_or_default(std::string_view key, std::int64_t /*count*/) { add(key, count_shape(positive_range), false); }
  void number(std::string_view key, double /*number*/, const Range& range = not_negative) {
    add(key, number_shape(range));
  }
  void numbers(std::string_view key, const std::vector<double>& /*numbers*/) {
    add(key, list_shape(shape_of(KeyShape::Kind::number)), false);
  }
  void time(std::string_view key, Duration time) { quantity(key, time); }
  template <class Quantity>
  void quantity(std::string_view key, const Quantity& /*quantity*/) {
    add(key, shape_of(kind_of<Quantity>()));
  }
  template <class Quantity>
  void optional_quantity(std::string_view key, const std::optional<Quantity>& /*quantity*/) {
    add(key, shape_of(kind_of<Quantity>()), false);
  }

  template <class T>
  void choice(std::string_view key, std::string_view /*what*/, const T& /*value*/, const Words<T>& words) {
    add(key, word_shape(names_of(words)));
  }
  template <class T>
  void choice_or_default(std::string_view key, std::string_view /*what*/, const T& /*value*/, const Words<T>& words) {
    add(key, word_shape(names_of(words)), false);
  }

  void tile(std::string_view key, const TileSides& sides, std::int64_t /*first*/, std::int64_t /*second*/) {
    add(key, tile_shape(sides));
  }
  void optional_tile(std::string_view key, const TileSides& sides, std::int64_t /*first*/, std::int64_t /*second*/) {
    add(key, tile_shape(sides), false);
  }
  void counts_between(std::string_view key, const char* /*what*/, std::int64_t /*least*/, std::int64_t /*most*/) {
    add(key, range_of(count_shape(positive_range)));
  }
  void bytes_between(std::string_view key, const char* /*what*/, Bytes /*least*/, Bytes /*most*/) {
    add(key, range_of(shape_of(KeyShape::Kind::bytes)));
  }

  void timing(Duration time, const std::optional<Spread>& /*spread*/) {
    quantity("time", time);
    spread();
  }
  template <class Work>
  void timing_of_work(Duration /*time*/, const std::optional<Spread>& /*spread*/, const Work& /*work*/,
                      double /*speed*/ = 1) {
    add("time", shape_of(KeyShape::Kind::time), false);
    meaning("in place of the time");
    add("rate", shape_of(KeyShape::Kind::flop_rate), false);
    spread();
  }
  void documents(std::string_view key, const std::vector<PackedDocument>& /*documents*/) {
    meaning("each in tokens (300) or queries by keys (300x150)");
    add(key, list_shape(either_shape({count_shape(positive_range), shape_of(KeyShape::Kind::text)})));
  }

  template <class T, class... Context>
  void part(std::string_view key, const char* what, T& part, const Context&... context) {
    add(key, shape_with_fields(what, part, context...));
  }
  /// The part is then there, so that what is required only without it is not.
  template <class T, class... Context>
  void optional_part(std::string_view key, const char* what, std::optional<T>& part, const Context&... context) {
    add(key, shape_with_fields(what, part.emplace(), context...), false);
  }
  template <class T>
  void part_or_default(std::string_view key, const char* what, T& part) {
    add(key, shape_with_fields(what, part), false);
  }
  template <class T>
  void part_unless_measured(std::string_view key, const char* what, T& part) {
    add(key, shape_with_fields(what, part), false);
  }
  template <class T>
  void part_unless_measured(std::string_view key, const char* what, std::optional<T>& part) {
    optional_part(key, what, part);
  }
  template <class T>
  void measured_part(std::string_view key, const char* what, T& part) {
    meaning("only of a profile with the label `measured`");
    add(key, shape_with_fields(what, part), false);
  }
  template <class Fields>
  void group(std::string_view key, const char* /*what*/, const Fields& fields_of_group) {
    FieldKeys inner;
    fields_of_group(inner);
    add(key, map_shape(inner.take()), false);
  }
  template <class T, class... Context>
  void list(std::string_view key, const ListText& text, std::vector<T>& /*items*/, const Context&... context) {
    T item{};
    add(key, list_shape(shape_with_fields(text.item, item, context...)), text.required);
  }

  [[nodiscard]] std::vector<KeyText> take() { return std::move(keys_); }

 private:
  template <class Quantity>
  static constexpr KeyShape::Kind kind_of() {
    if constexpr (std::same_as<Quantity, Duration>) {
      return KeyShape::Kind::time;
    } else if constexpr (std::same_as<Quantity, Bytes>) {
      return KeyShape::Kind::bytes;
    } else if constexpr (std::same_as<Quantity, Bandwidth>) {
      return KeyShape::Kind::bandwidth;
    } else {
      static_assert(std::same_as<Quantity, FlopRate>);
      return KeyShape::Kind::flop_rate;
    }
  }
  template <class T>
  static std::vector<std::string> names_of(const Words<T>& words) {
    std::vector<std::string> names;
    for (const auto& word : words) names.push_back(word.first);
    return names;
  }
  template <class T, class... Context>
  static KeyShape shape_with_fields(std::string_view what, T& object, const Context&... context) {
    FieldKeys inner;
    fields(inner, object, context...);
    return defined(definition_of(what), map_shape(inner.take()));
  }

  void add(std::string_view key, KeyShape shape, bool required = true);
  void spread();
  static KeyShape tile_shape(const TileSides& sides);
  static KeyShape range_of(const KeyShape& bound);
  static std::string definition_of(std::string_view what);

  std::vector<KeyText> keys_;
  std::string sentence_;  ///< That of the next field.
};

}  // namespace hdpsim
