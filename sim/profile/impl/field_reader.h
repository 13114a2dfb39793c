#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/reader.h"
#include "sim/profile/device_profile.h"
#include "sim/profile/impl/field_words.h"
#include "sim/profile/impl/profile_checks.h"

namespace hdpsim {

/// Reads the fields of one map of a profile, as `fields()` states them. A value that is missing or wrong is reported
/// and left as it is; the caller discards the profile if anything was reported.
class FieldReader {
 public:
  template <class T>
  using Of = T;

  FieldReader(MapReader& map, KnownProfile& known) : map_(map), known_(known) {}

  void schema(const char* name);
  void one_line() {}                         ///< How a map is written does not matter here ...
  void meaning(const char* /*sentence*/) {}  ///< ... nor does what people are told of the next field.
  void know(const DeviceProfile& profile) { known_ = {profile.provenance.label, profile.datasheet.peak}; }
  [[nodiscard]] bool has(std::string_view key) const { return map_.value().find(key) != nullptr; }

  /// A text that says something; a word is one that is written without quotes.
  void text(std::string_view key, std::string& text);
  void word(std::string_view key, std::string& word) { text(key, word); }
  void optional_text(std::string_view key, std::string& text) { text = map_.optional<std::string>(key, ""); }
  /// The source of figures. Our own measurements have one source, the provenance; every published figure names its own.
  void source(std::string& source);

  void count(std::string_view key, std::int64_t& count, const Range& range = positive_range) {
    count = map_.required_in<std::int64_t>(key, range).value_or(count);
  }
  void count_or_default(std::string_view key, std::int64_t& count) {
    count = map_.optional_in<std::int64_t>(key, positive_range).value_or(count);
  }
  void number(std::string_view key, double& number, const Range& range = not_negative) {
    number = map_.required_in<double>(key, range).value_or(number);
  }
  void numbers(std::string_view key, std::vector<double>& numbers);

  /// A time that may be zero.
  void time(std::string_view key, Duration& time) {
    time = map_.required_in<Duration>(key, limits::time).value_or(time);
  }
  /// An amount, a rate or a time above zero.
  template <class Quantity>
  void quantity(std::string_view key, Quantity& quantity) {
    if (const Value* value = map_.require(key)) read_quantity(key, *value, quantity);
  }
  template <class Quantity>
  void optional_quantity(std::string_view key, std::optional<Quantity>& quantity) {
    if (const Value* value = map_.find(key)) read_quantity(key, *value, quantity.emplace());
  }

  template <class T>
  void choice(std::string_view key, std::string_view what, T& value, const Words<T>& words) {
    if (const Value* stated = map_.require(key)) read_word(*stated, what, value, words);
  }
  template <class T>
  void choice_or_default(std::string_view key, std::string_view what, T& value, const Words<T>& words) {
    if (const Value* stated = map_.find(key)) read_word(*stated, what, value, words);
  }

  /// The tile of a kernel. A side is at most 65,536, which no tile is near, because code loops over tiles one by one.
  void tile(std::string_view key, const TileSides& sides, std::int64_t& first, std::int64_t& second);
  void optional_tile(std::string_view key, const TileSides& sides, std::int64_t& first, std::int64_t& second) {
    if (has(key)) tile(key, sides, first, second);
  }
  void counts_between(std::string_view key, const char* what, std::int64_t& least, std::int64_t& most);
  void bytes_between(std::string_view key, const char* what, Bytes& least, Bytes& most);

  /// The time of a sample, and its spread where it is known.
  void timing(Duration& time, std::optional<Spread>& spread) {
    quantity("time", time);
    this->spread(spread);
  }
  /// The same for a sample of `work`, which may state its rate instead. More than `speed` times as fast as
  /// the data sheet is wrong.
  template <class Work>
  void timing_of_work(Duration& time, std::optional<Spread>& spread, const Work& work, double speed = 1) {
    time = time_of_work(work(), speed);
    this->spread(spread);
  }
  void documents(std::string_view key, std::vector<PackedDocument>& documents);

  template <class T, class... Context>
  void part(std::string_view key, const char* what, T& part, const Context&... context) {
    if (const Value* value = map_.require(key)) read_map(*value, what, part, context...);
  }
  template <class T, class... Context>
  void optional_part(std::string_view key, const char* what, std::optional<T>& part, const Context&... context) {
    if (const Value* value = map_.find(key)) read_map(*value, what, part.emplace(), context...);
  }
  template <class T>
  void part_or_default(std::string_view key, const char* what, T& part) {
    if (const Value* value = map_.find(key)) read_map(*value, what, part);
  }
  /// A part that only a measured profile may leave out.
  template <class T>
  void part_unless_measured(std::string_view key, const char* what, T& part) {
    if (const Value* value = unless_measured(key)) read_map(*value, what, part);
  }
  template <class T>
  void part_unless_measured(std::string_view key, const char* what, std::optional<T>& part) {
    if (const Value* value = unless_measured(key)) read_map(*value, what, part.emplace());
  }
  /// A part that only a measured profile may have.
  template <class T>
  void measured_part(std::string_view key, const char* what, T& part) {
    const Value* value = map_.find(key);
    if (value != nullptr && !may_have_samples(known_.label)) {
      diagnostics().error(value->position,
                          "only a profile with the label 'measured' has these, or one of traces, or a fit to steps "
                          "that started from one");
    } else if (value != nullptr) {
      read_map(*value, what, part);
    }
  }
  /// A map of its own for some fields of the same object.
  template <class Fields>
  void group(std::string_view key, const char* what, const Fields& fields_of_group) {
    if (const Value* value = map_.find(key)) read_inner(*value, what, fields_of_group);
  }

  template <class T, class... Context>
  void list(std::string_view key, const ListText& text, std::vector<T>& items, const Context&... context) {
    for (const Value& value : values(key, text)) {
      T item{};
      read_map(value, text.item, item, context...);
      check_item(item, items, value, diagnostics());
      items.push_back(std::move(item));
    }
  }

  /// Reads a map into an object, and checks it as a whole.
  template <class T, class... Context>
  static void read(const Value& value, const char* what, T& object, KnownProfile& known, Diagnostics& diagnostics,
                   const Context&... context) {
    MapReader map(value, what, diagnostics);
    FieldReader reader(map, known);
    fields(reader, object, context...);
    map.finish();
    check_whole(map, known, object, context...);
  }

 private:
  [[nodiscard]] Diagnostics& diagnostics() { return map_.diagnostics(); }
  const Value* unless_measured(std::string_view key) {
    return may_have_samples(known_.label) ? map_.find(key) : map_.require(key);
  }
  template <class T, class... Context>
  void read_map(const Value& value, const char* what, T& object, const Context&... context) {
    read(value, what, object, known_, diagnostics(), context...);
  }
  template <class Fields>
  void read_inner(const Value& value, const char* what, const Fields& fields_of_map) {
    MapReader map(value, what, diagnostics());
    FieldReader reader(map, known_);
    fields_of_map(reader);
    map.finish();
  }
  template <class T>
  void read_word(const Value& stated, std::string_view what, T& value, const Words<T>& words) {
    std::vector<std::string> names;
    for (const auto& word : words) names.push_back(word.first);
    if (const auto index = read_choice(stated, what, names, diagnostics())) value = words[*index].second;
  }
  template <class Quantity>
  void read_quantity(std::string_view key, const Value& value, Quantity& quantity);
  void spread(std::optional<Spread>& spread);
  [[nodiscard]] Duration time_of_work(Flops work, double speed);
  const std::vector<Value>& values(std::string_view key, const ListText& text);

  MapReader& map_;
  KnownProfile& known_;
};

}  // namespace hdpsim
