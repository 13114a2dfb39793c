#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/document/key.h"
#include "sim/document/reader.h"

namespace hdpsim {

/// A member of a member ...: at(&PointSpec::mesh, &Mesh::tp).
template <class... Members>
auto at(Members... members) {
  return [=](auto& target) -> auto& {
    return (target.*....*members);
  };
}

/// The keys of a map that could not be read; what they fill in has kept its default.
class KeyReading {
 public:
  void add_wrong(std::string_view key) { wrong_.emplace_back(key); }
  [[nodiscard]] bool is_right(std::string_view key) const {
    return std::find(wrong_.begin(), wrong_.end(), key) == wrong_.end();
  }

 private:
  std::vector<std::string> wrong_;
};

/// The keys of a map that fill in a target of any type: KeyTable is what has the type. What does not depend on it is
/// compiled once.
class KeyList {
 public:
  using Read = std::function<void(const Value&, void* target, Diagnostics&)>;
  template <class T>
  using Put = std::function<void(void* target, const T&)>;  ///< Stores what was read.

  /// `what` names the map for messages: "the mesh".
  explicit KeyList(std::string what) : what_(std::move(what)) {}

  void add(KeyText text, Read read);
  /// A key that is read by read<T>(), for a bool, a double and a std::string.
  template <class T>
  void add_value(const KeyText& text, Put<T> put);
  /// A key that is read by read_in<T>().
  template <class T>
  void add_range(KeyText text, const RangeOf<T>& range, Put<T> put);
  /// A key that is one of the words of its shape; their index is stored. `what` names a choice for messages.
  void add_word(KeyText text, const std::string& what, Put<std::size_t> put);

  KeyReading read(const Value& value, void* target, Diagnostics& diagnostics, const std::string& what) const;
  KeyReading read(const Value& value, void* target, Diagnostics& diagnostics) const {
    return read(value, target, diagnostics, what_);
  }
  void read_key(std::string_view name, const Value& value, void* target, Diagnostics& diagnostics) const;
  [[nodiscard]] const std::vector<KeyText>& texts() const { return texts_; }

 private:
  std::string what_;
  std::vector<KeyText> texts_;
  std::vector<Read> reads_;
};

/// All that is said of a key.
[[nodiscard]] KeyText key_text(std::string_view name, KeyShape shape, std::string fallback, std::string_view sentence,
                               const KeyNotes& notes);

/// The keys of one map of a file, each declared once with the member of T that it fills in. A key that a file leaves
/// out keeps the value of a default-constructed T: there are no other defaults.
template <class T>
class KeyTable {
 public:
  template <class Member>
  using Stored = std::remove_cvref_t<std::invoke_result_t<Member, T&>>;

  /// `what` names the map for messages: "the mesh".
  explicit KeyTable(std::string what) : keys_(std::move(what)) {}

  template <class Member>
  void flag(std::string_view name, Member member, std::string_view sentence, KeyNotes notes = {}) {
    const char* fallback = member(example_) ? "true" : "false";
    keys_.add_value<bool>(key_text(name, shape_of(KeyShape::Kind::flag), fallback, sentence, notes), put<bool>(member));
  }

  /// Declares a whole number; the member may have any arithmetic type that holds the range, or an optional one.
  template <class Member>
  void count(std::string_view name, const Range& range, Member member, std::string_view sentence, KeyNotes notes = {}) {
    add_range<std::int64_t>(name, range, member, count_shape(range, std::string(notes.unit)), sentence, notes);
  }

  template <class Member>
  void number(std::string_view name, const Range& range, Member member, std::string_view sentence,
              KeyNotes notes = {}) {
    add_range<double>(name, range, member, number_shape(range), sentence, notes);
  }

  /// Any number that a double holds.
  template <class Member>
  void number(std::string_view name, Member member, std::string_view sentence, KeyNotes notes = {}) {
    keys_.add_value<double>(key_text(name, shape_of(KeyShape::Kind::number), "", sentence, notes), put<double>(member));
  }

  /// A quantity with its unit: a Duration, Bytes or a Bandwidth.
  template <class Quantity, class Member>
  void quantity(std::string_view name, const Between<Quantity>& range, Member member, std::string_view sentence,
                KeyNotes notes = {}) {
    KeyShape shape = shape_of(kind_of<Quantity>());
    shape.limits = range_text(range);
    add_range<Quantity>(name, range, member, std::move(shape), sentence, notes);
  }

  /// Declares one of several words, each of which stands for a value of the member. `what` names a choice for messages.
  template <class Member>
  void word(std::string_view name, const std::string& what,
            const std::vector<std::pair<std::string, Stored<Member>>>& choices, Member member,
            std::string_view sentence, KeyNotes notes = {}) {
    std::vector<std::string> words;
    std::vector<Stored<Member>> values;
    std::string fallback;
    for (const auto& [text, value] : choices) {
      words.push_back(text);
      values.push_back(value);
      if (member(example_) == value) fallback = text;
    }
    KeyText text = key_text(name, word_shape(std::move(words)), notes.required ? "" : fallback, sentence, notes);
    keys_.add_word(std::move(text), what, [member, values = std::move(values)](void* target, const std::size_t& word) {
      member(target_at(target)) = values[word];
    });
  }

  /// A map of keys of its own, all of which fill in the member.
  template <class Member>
  void map(std::string_view name, const KeyTable<Stored<Member>>& keys, Member member, std::string_view sentence,
           KeyNotes notes = {}) {
    add(key_text(name, map_shape(keys.texts()), "", sentence, notes),
        [member, &keys](const Value& value, T& target, Diagnostics& diagnostics) {
          (void)keys.read(value, member(target), diagnostics);
        });
  }

  template <class Member>
  void text(std::string_view name, Member member, std::string_view sentence, KeyNotes notes = {}) {
    keys_.add_value<std::string>(key_text(name, shape_of(KeyShape::Kind::text), "", sentence, notes),
                                 put<std::string>(member));
  }

  /// A value that is read apart, since it needs other keys first: the member points at it.
  template <class Member>
  void kept(const KeyText& text, Member member) {
    add(text, [member](const Value& value, T& target, Diagnostics& /*diagnostics*/) { target.*member = &value; });
  }

  /// Whatever `reader` makes of a value that looks like `text.shape`: reader(const Value&, T&, Diagnostics&).
  template <class Reader>
  void add(const KeyText& text, Reader reader) {
    keys_.add(text, [reader](const Value& value, void* target, Diagnostics& diagnostics) {
      reader(value, target_at(target), diagnostics);
    });
  }

  /// Fills in what the map says. Every problem is reported, also keys that are not declared.
  KeyReading read(const Value& value, T& target, Diagnostics& diagnostics) const {
    return keys_.read(value, &target, diagnostics);
  }
  /// The same for one of several maps: `what` names it for messages, "the tier 'leaf'".
  KeyReading read(const Value& value, T& target, Diagnostics& diagnostics, const std::string& what) const {
    return keys_.read(value, &target, diagnostics, what);
  }

  /// Fills in what one declared key says, for a key that is read apart from its map.
  void read_key(std::string_view name, const Value& value, T& target, Diagnostics& diagnostics) const {
    keys_.read_key(name, value, &target, diagnostics);
  }

  [[nodiscard]] const std::vector<KeyText>& texts() const { return keys_.texts(); }

 private:
  static T& target_at(void* target) { return *static_cast<T*>(target); }

  template <class V, class Member>
  static KeyList::Put<V> put(Member member) {
    return [member](void* target, const V& value) { member(target_at(target)) = static_cast<Stored<Member>>(value); };
  }

  template <class Quantity>
  static constexpr KeyShape::Kind kind_of() {
    if constexpr (std::is_same_v<Quantity, Duration>) return KeyShape::Kind::time;
    if constexpr (std::is_same_v<Quantity, Bytes>) return KeyShape::Kind::bytes;
    return KeyShape::Kind::bandwidth;
  }

  template <class V>
  static std::string text_of(const V& value) {
    if constexpr (std::is_floating_point_v<V>) return fmt::format("{}", value);
    if constexpr (std::is_integral_v<V>) return count_text(static_cast<std::int64_t>(value));
    if constexpr (std::is_class_v<V>) return limit_text(value);
  }
  template <class V>
  static std::string text_of(const std::optional<V>& value) {
    return value ? text_of(*value) : "";
  }

  template <class V, class Member>
  void add_range(std::string_view name, const RangeOf<V>& range, Member member, KeyShape shape,
                 std::string_view sentence, const KeyNotes& notes) {
    const bool has_default = !notes.required && notes.otherwise.empty();
    std::string fallback = has_default ? text_of(member(example_)) : "";
    keys_.add_range<V>(key_text(name, std::move(shape), std::move(fallback), sentence, notes), range, put<V>(member));
  }

  KeyList keys_;
  T example_{};
};

}  // namespace hdpsim
