#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
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

/// The keys of one map of a file, each declared once with the member of T that it fills in. A key that a file leaves
/// out keeps the value of a default-constructed T: there are no other defaults.
template <class T>
class KeyTable {
 public:
  using Read = std::function<void(const Value&, T&, Diagnostics&)>;

  template <class Member>
  using Stored = std::remove_cvref_t<std::invoke_result_t<Member, T&>>;

  /// `what` names the map for messages: "the mesh".
  explicit KeyTable(std::string what) : what_(std::move(what)) {}

  template <class Member>
  void flag(std::string name, Member member, std::string sentence, KeyNotes notes = {}) {
    const std::string fallback = member(example_) ? "true" : "false";
    const Read read = [member](const Value& value, T& target, Diagnostics& diagnostics) {
      if (const auto flag = hdpsim::read<bool>(value, diagnostics)) member(target) = *flag;
    };
    add({std::move(name), shape_of(KeyShape::Kind::flag), fallback, std::move(sentence), notes}, read);
  }

  /// Declares a whole number; the member may have any arithmetic type that holds the range, or an optional one.
  template <class Member>
  void count(std::string name, const Range& range, Member member, std::string sentence, KeyNotes notes = {}) {
    KeyShape shape = count_shape(range, std::string(notes.unit));
    add_range<std::int64_t>(std::move(name), range, member, std::move(shape), std::move(sentence), notes);
  }

  template <class Member>
  void number(std::string name, const Range& range, Member member, std::string sentence, KeyNotes notes = {}) {
    add_range<double>(std::move(name), range, member, number_shape(range), std::move(sentence), notes);
  }

  /// Any number that a double holds.
  template <class Member>
  void number(std::string name, Member member, std::string sentence, KeyNotes notes = {}) {
    const Read read = [member](const Value& value, T& target, Diagnostics& diagnostics) {
      if (const auto number = hdpsim::read<double>(value, diagnostics)) member(target) = *number;
    };
    add({std::move(name), shape_of(KeyShape::Kind::number), "", std::move(sentence), notes}, read);
  }

  /// A quantity with its unit: a Duration, Bytes or a Bandwidth.
  template <class Quantity, class Member>
  void quantity(std::string name, const Between<Quantity>& range, Member member, std::string sentence,
                KeyNotes notes = {}) {
    KeyShape shape = shape_of(kind_of<Quantity>());
    shape.limits = range_text(range);
    add_range<Quantity>(std::move(name), range, member, std::move(shape), std::move(sentence), notes);
  }

  /// Declares one of several words, each of which stands for a value of the member. `what` names a choice for messages.
  template <class Member>
  void word(std::string name, const std::string& what, std::vector<std::pair<std::string, Stored<Member>>> choices,
            Member member, std::string sentence, KeyNotes notes = {}) {
    std::vector<std::string> words;
    std::string fallback;
    for (const auto& [text, value] : choices) {
      words.push_back(text);
      if (member(example_) == value) fallback = text;
    }
    const Read read = [=](const Value& value, T& target, Diagnostics& diagnostics) {
      if (const auto choice = read_choice(value, what, words, diagnostics)) member(target) = choices[*choice].second;
    };
    add({std::move(name), word_shape(words), notes.required ? "" : fallback, std::move(sentence), notes}, read);
  }

  /// A map of keys of its own, all of which fill in the member.
  template <class Member>
  void map(std::string name, const KeyTable<Stored<Member>>& keys, Member member, std::string sentence,
           KeyNotes notes = {}) {
    const Read read = [member, &keys](const Value& value, T& target, Diagnostics& diagnostics) {
      (void)keys.read(value, member(target), diagnostics);
    };
    add({std::move(name), map_shape(keys.texts()), "", std::move(sentence), notes}, read);
  }

  template <class Member>
  void text(std::string name, Member member, std::string sentence, KeyNotes notes = {}) {
    const Read read = [member](const Value& value, T& target, Diagnostics& diagnostics) {
      if (const auto text = hdpsim::read<std::string>(value, diagnostics)) member(target) = *text;
    };
    add({std::move(name), shape_of(KeyShape::Kind::text), "", std::move(sentence), notes}, read);
  }

  /// A value that is read apart, since it needs other keys first: the member points at it.
  template <class Member>
  void kept(KeyText text, Member member) {
    add(std::move(text),
        [member](const Value& value, T& target, Diagnostics& /*diagnostics*/) { target.*member = &value; });
  }

  /// Whatever `read` makes of a value that looks like `text.shape`.
  void add(KeyText text, Read read) {
    texts_.push_back(std::move(text));
    reads_.push_back(std::move(read));
  }

  /// Fills in what the map says. Every problem is reported, also keys that are not declared.
  KeyReading read(const Value& value, T& target, Diagnostics& diagnostics) const {
    return read(value, target, diagnostics, what_);
  }
  /// The same for one of several maps: `what` names it for messages, "the tier 'leaf'".
  KeyReading read(const Value& value, T& target, Diagnostics& diagnostics, const std::string& what) const {
    MapReader map(value, what, diagnostics);
    KeyReading reading;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const KeyText& text = texts_[i];
      const Value* found = text.notes.required ? map.require(text.name) : map.find(text.name);
      Diagnostics problems;
      if (found != nullptr) reads_[i](*found, target, problems);
      if (!problems.empty() || (found == nullptr && text.notes.required)) reading.add_wrong(text.name);
      diagnostics.append(problems);
    }
    map.finish();
    return reading;
  }

  /// Fills in what one declared key says, for a key that is read apart from its map.
  void read_key(std::string_view name, const Value& value, T& target, Diagnostics& diagnostics) const {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i].name == name) reads_[i](value, target, diagnostics);
    }
  }

  [[nodiscard]] const std::vector<KeyText>& texts() const { return texts_; }

 private:
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
  void add_range(std::string name, const RangeOf<V>& range, Member member, KeyShape shape, std::string sentence,
                 const KeyNotes& notes) {
    const Read read = [=](const Value& value, T& target, Diagnostics& diagnostics) {
      const auto number = read_in<V>(value, fmt::format("'{}'", name), range, diagnostics);
      if (number) member(target) = static_cast<Stored<Member>>(*number);
    };
    const bool has_default = !notes.required && notes.otherwise.empty();
    const std::string fallback = has_default ? text_of(member(example_)) : "";
    add({name, std::move(shape), fallback, std::move(sentence), notes}, read);
  }

  std::string what_;
  T example_{};
  std::vector<KeyText> texts_;
  std::vector<Read> reads_;
};

}  // namespace hdpsim
