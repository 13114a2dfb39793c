#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/document/document.h"
#include "sim/profile/device_profile.h"
#include "sim/profile/impl/exact_text.h"
#include "sim/profile/impl/field_words.h"

namespace hdpsim {

/// Writes the fields of one map of a profile, as `fields()` states them. Texts that say nothing, lists without items
/// and parts that are empty are left out.
class FieldWriter {
 public:
  template <class T>
  using Of = const T;

  explicit FieldWriter(ProfileLabel label) : label_(label) {}

  void schema(const char* name) { add("schema", Value::scalar(name)); }
  void one_line() { map_.one_line = true; }
  void meaning(const char* /*sentence*/) {}
  void know(const DeviceProfile& profile) { label_ = profile.provenance.label; }
  [[nodiscard]] static bool has(std::string_view /*key*/) { return false; }

  void text(std::string_view key, const std::string& text) {
    if (text.empty()) return;
    Value value = Value::scalar(text);
    value.quoted = true;
    add(key, std::move(value));
  }
  void word(std::string_view key, const std::string& word) { add(key, Value::scalar(word)); }
  void optional_text(std::string_view key, const std::string& text) { this->text(key, text); }
  void source(const std::string& source) { text("source", source); }

  void count(std::string_view key, std::int64_t count, const Range& /*range*/ = positive_range) {
    add(key, number_value(count));
  }
  /// No count that a file may leave out can be zero.
  void count_or_default(std::string_view key, std::int64_t count) {
    if (count != 0) this->count(key, count);
  }
  void number(std::string_view key, double number, const Range& /*range*/ = not_negative) {
    add(key, number_value(number));
  }
  void numbers(std::string_view key, const std::vector<double>& numbers) {
    add_line(key, numbers, [](double number) { return number_value(number); });
  }
  void time(std::string_view key, Duration time) { quantity(key, time); }
  template <class Quantity>
  void quantity(std::string_view key, const Quantity& quantity) {
    add(key, Value::scalar(exact_text(quantity)));
  }
  template <class Quantity>
  void optional_quantity(std::string_view key, const std::optional<Quantity>& quantity) {
    if (quantity) this->quantity(key, *quantity);
  }

  template <class T>
  void choice(std::string_view key, std::string_view /*what*/, const T& value, const Words<T>& words) {
    const auto is_it = [&](const auto& word) { return word.second == value; };
    add(key, Value::scalar(std::find_if(words.begin(), words.end(), is_it)->first));
  }
  template <class T>
  void choice_or_default(std::string_view key, std::string_view what, const T& value, const Words<T>& words) {
    choice(key, what, value, words);
  }

  void tile(std::string_view key, const TileSides& sides, std::int64_t first, std::int64_t second) {
    group(key, "", [&](FieldWriter& tile) {
      tile.one_line();
      tile.count(sides.first, first);
      tile.count(sides.second, second);
    });
  }
  void optional_tile(std::string_view key, const TileSides& sides, std::int64_t first, std::int64_t second) {
    if (first > 0) tile(key, sides, first, second);
  }
  void counts_between(std::string_view key, const char* what, std::int64_t least, std::int64_t most) {
    group(key, what, [&](FieldWriter& range) {
      range.one_line();
      range.count("least", least);
      range.count("most", most);
    });
  }
  void bytes_between(std::string_view key, const char* what, Bytes least, Bytes most) {
    group(key, what, [&](FieldWriter& range) {
      range.one_line();
      range.quantity("least", least);
      range.quantity("most", most);
    });
  }

  void timing(Duration time, const std::optional<Spread>& spread) {
    quantity("time", time);
    if (!spread) return;
    quantity("p10", spread->p10);
    quantity("p90", spread->p90);
    count("runs", spread->runs);
  }
  template <class Work>
  void timing_of_work(Duration time, const std::optional<Spread>& spread, const Work& /*work*/, double /*speed*/ = 1) {
    timing(time, spread);
  }
  void documents(std::string_view key, const std::vector<PackedDocument>& documents) {
    add_line(key, documents, [](const PackedDocument& d) {
      return Value::scalar(d.queries == d.keys ? fmt::format("{}", d.queries)
                                               : fmt::format("{}x{}", d.queries, d.keys));
    });
  }

  template <class T, class... Context>
  void part(std::string_view key, const char* /*what*/, const T& part, const Context&... context) {
    add(key, written(part, label_, context...));
  }
  template <class T, class... Context>
  void optional_part(std::string_view key, const char* what, const std::optional<T>& part, const Context&... context) {
    if (part) this->part(key, what, *part, context...);
  }
  template <class T>
  void part_or_default(std::string_view key, const char* what, const T& part) {
    this->part(key, what, part);
  }
  /// A measured profile leaves out what was not measured.
  template <class T>
  void part_unless_measured(std::string_view key, const char* what, const T& part) {
    if (!may_have_samples(label_) || part != T{}) this->part(key, what, part);
  }
  template <class T>
  void part_unless_measured(std::string_view key, const char* what, const std::optional<T>& part) {
    optional_part(key, what, part);
  }
  template <class T>
  void measured_part(std::string_view key, const char* what, const T& part) {
    if (part != T{}) this->part(key, what, part);
  }
  template <class Fields>
  void group(std::string_view key, const char* /*what*/, const Fields& fields_of_group) {
    FieldWriter inner(label_);
    fields_of_group(inner);
    if (!inner.map_.entries.empty()) add(key, std::move(inner.map_));
  }

  template <class T, class... Context>
  void list(std::string_view key, const ListText& /*text*/, const std::vector<T>& items, const Context&... context) {
    if (items.empty()) return;
    Value list = Value::sequence();
    for (const T& item : items) list.items.push_back(written(item, label_, context...));
    add(key, std::move(list));
  }

  /// The map of an object.
  template <class T, class... Context>
  [[nodiscard]] static Value written(const T& object, ProfileLabel label, const Context&... context) {
    FieldWriter writer(label);
    fields(writer, object, context...);
    return std::move(writer.map_);
  }

 private:
  template <class Number>
  static Value number_value(Number number) {
    return Value::scalar(fmt::format("{}", number));
  }
  void add(std::string_view key, Value value) { map_.set(key, std::move(value)); }
  template <class T, class ToValue>
  void add_line(std::string_view key, const std::vector<T>& items, const ToValue& value_of) {
    if (items.empty()) return;
    Value list = Value::sequence();
    for (const T& item : items) list.items.push_back(value_of(item));
    list.one_line = true;
    add(key, std::move(list));
  }

  ProfileLabel label_;
  Value map_ = Value::map();
};

}  // namespace hdpsim
