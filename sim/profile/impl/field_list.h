#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/document/key_table.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

inline constexpr Range positive_range{1, 1e12};
inline constexpr Range not_negative{0, 1e12};
inline constexpr Range above_zero{1e-9, 1e12};
inline constexpr Range tile_side{1, 65536};

/// The sides of a tile of a kernel, by name.
using TileSides = std::pair<const char*, const char*>;

/// A list in a file: what its items are called in messages, each and all of them.
struct ListText {
  const char* item;  ///< "an attention curve"
  const char* of;    ///< "curve"
  bool required = false;
};

/// The words of a choice in a file, and what each stands for.
template <class Value>
using Words = std::vector<std::pair<std::string, Value>>;

/// The words of an enumeration whose values are 0, 1, ...
template <class Value, class Name>
Words<Value> words_of(std::size_t count, Name name) {
  Words<Value> words;
  for (std::size_t i = 0; i < count; ++i) words.emplace_back(name(static_cast<Value>(i)), static_cast<Value>(i));
  return words;
}

/// Which profiles must have a part: all of them, all but those that may have samples of their own (may_have_samples()),
/// or none. A part that is `only_measured` is refused in profiles that may not have samples.
enum class Need { always, unless_measured, never, only_measured };

/// Where objects keep something: a member or a function that gives it, without its type. A std::function for each pair
/// of types would take a compiler longer than all else here.
class MemberPlace {
 public:
  /// Gets the member, the object, and an index or FieldList::make.
  using Find = void* (*)(const void* member, void* object, std::size_t number);

  template <class M>
  MemberPlace(const M& member, Find find) : find_(find) {
    static_assert(sizeof(M) <= sizeof(member_) && std::is_trivially_copyable_v<M>);
    std::memcpy(member_.data(), &member, sizeof(M));
  }
  void* operator()(void* object, std::size_t number) const { return find_(member_.data(), object, number); }

 private:
  Find find_;
  alignas(std::max_align_t) std::array<std::byte, sizeof(void*) * 2> member_{};
};

/// The fields of one map of a profile, in the order of the file: keys that are read (KeyList, whose texts make the
/// schema), and written back as they read. They belong to an object of any type: Fields is what has the type, and what
/// does not depend on it is compiled once.
class FieldList {
 public:
  /// Where an object keeps the value of a field: null where it has none, unless asked to `make` one. Of a list the item
  /// of an index, null past the end, or a new one.
  using Place = MemberPlace;
  static constexpr std::size_t make = SIZE_MAX;
  /// Completes an object, and reports what does not hold between the fields of `value`, from which it was read.
  using Check = std::function<void(void* object, const Value& value, Diagnostics&)>;

  /// `measured`: of profiles that may have samples of their own. `group`: some fields of an object that has others.
  explicit FieldList(bool measured, bool group = false) : measured_(measured), group_(group) {}

  /// Reads a map, which messages call `what`. A value that is missing or wrong is reported and left as it is.
  void read(const Value& value, const std::string& what, void* object, Diagnostics& diagnostics) const;
  /// The map of an object. Texts that say nothing, lists without items and parts that are empty are left out.
  [[nodiscard]] Value written(const void* object) const;
  [[nodiscard]] const std::vector<KeyText>& keys() const { return keys_.texts(); }
  [[nodiscard]] bool is_measured() const { return measured_; }

  void schema(const char* name);
  void one_line() { one_line_ = true; }

 protected:
  /// Null: the field is left out.
  using Write = std::function<Value(void* object)>;
  enum class TextStyle { quoted, word };  ///< How a text is written.

  void add_text(std::string_view key, std::string_view sentence, bool required, TextStyle style, Place place);
  /// A number (std::int64_t, double) or a quantity. A count outside of its range is not written.
  template <class T>
  void add_value(std::string_view key, std::string_view sentence, bool required, const RangeOf<T>& range, Place place);
  /// One of several words, each of which stands for a value of the member.
  template <class V>
  void add_word(std::string_view key, std::string_view sentence, bool required, const std::string& what,
                const Words<V>& words, Place place) {
    std::vector<std::string> names;
    for (const auto& word : words) names.push_back(word.first);
    const auto put = [place, words](void* object, const std::size_t& word) {
      *static_cast<V*>(place(object, make)) = words[word].second;
    };
    add_index(key_text(key, word_shape(std::move(names)), {}, sentence, {.required = required}), what, put,
              [place, words](void* object) {
                std::size_t word = 0;
                while (words.at(word).second != *static_cast<const V*>(place(object, 0))) ++word;
                return word;
              });
  }
  void add_index(KeyText text, const std::string& what, const KeyList::Put<std::size_t>& put,
                 const std::function<std::size_t(void*)>& get);
  void add_spread(const Place& place);
  /// A key that is never written: a check reads its value, or what reads the file has followed it.
  void add_followed(KeyText text);
  void add_rate();
  void add_sustained();
  void add_like();
  void add_numbers(std::string_view key, std::string_view sentence, Place place);
  void add_documents(std::string_view key, std::string_view sentence, Place place);
  /// The fields of a part or an item: those of a type, or of a group.
  using Inner = std::shared_ptr<const FieldList>;
  /// A map of its own, of an object or of a part of it. `is_written`: whether a part is, where it need not be.
  void add_part(std::string_view key, std::string_view sentence, const char* what, Need need, const Inner& inner,
                Place place, bool (*is_written)(const void* part) = nullptr);
  void add_list(std::string_view key, std::string_view sentence, const ListText& text, const Inner& inner, Place place);
  void add_check(Check check) { checks_.push_back(std::move(check)); }

 private:
  void add(KeyText text, KeyList::Read read, Write write);
  [[nodiscard]] KeyShape shape(const char* what) const;

  bool measured_;
  bool group_;
  bool one_line_ = false;
  KeyList keys_{""};
  std::vector<Write> writes_;
  std::vector<Check> checks_;
};

template <class T>
class Fields;
/// The fields of a type, as its overload of declare(Fields<T>&) states them.
template <class T>
const std::shared_ptr<const Fields<T>>& fields_of(bool measured);

/// The fields of one map of a profile that is a T, each declared once with its member.
template <class T>
class Fields : public FieldList {
 public:
  using FieldList::FieldList;
  using Text = std::string T::*;
  using Count = std::int64_t T::*;

  /// A text that says something; a word is one that is written without quotes.
  void text(std::string_view key, Text member, std::string_view sentence = {}) {
    add_text(key, sentence, true, TextStyle::quoted, place(member));
  }
  void word(std::string_view key, Text member) { add_text(key, {}, true, TextStyle::word, place(member)); }
  void optional_text(std::string_view key, Text member, std::string_view sentence = {}) {
    add_text(key, sentence, false, TextStyle::quoted, place(member));
  }
  /// The source of figures. Our own measurements have one source, the provenance; every published figure names its own.
  void source(Text member) {
    add_text("source", "where the figures stand; what was measured has its provenance instead", !is_measured(),
             TextStyle::quoted, place(member));
  }

  void count(std::string_view key, Count member, std::string_view sentence = {}, const Range& range = positive_range) {
    add_value<std::int64_t>(key, sentence, true, range, place(member));
  }
  void optional_count(std::string_view key, Count member, std::string_view sentence = {}) {
    add_value<std::int64_t>(key, sentence, false, positive_range, place(member));
  }
  void number(std::string_view key, double T::*member, std::string_view sentence = {},
              const Range& range = not_negative) {
    add_value<double>(key, sentence, true, range, place(member));
  }
  void numbers(std::string_view key, std::vector<double> T::*member, std::string_view sentence = {}) {
    add_numbers(key, sentence, place(member));
  }
  /// A time that may be zero.
  void time(std::string_view key, Duration T::*member) {
    add_value<Duration>(key, {}, true, limits::time, place(member));
  }
  /// An amount, a rate or a time above zero.
  template <class Quantity>
  void quantity(std::string_view key, Quantity T::*member, std::string_view sentence = {}) {
    add_value<Quantity>(key, sentence, true, limits_of(Quantity{}), place(member));
  }
  template <class Quantity>
  void optional_quantity(std::string_view key, std::optional<Quantity> T::*member) {
    add_value<Quantity>(key, {}, false, limits_of(Quantity{}), place(member));
  }

  /// `what` names a choice for messages.
  template <class V>
  void choice(std::string_view key, const std::string& what, V T::*member, const Words<V>& words,
              std::string_view sentence = {}, bool required = true) {
    add_word(key, sentence, required, what, words, place(member));
  }

  /// The tile of a kernel. A side is at most 65,536, which no tile is near, because code loops over tiles one by one.
  void tile(std::string_view key, const TileSides& sides, Count first, Count second, Need need = Need::always) {
    group(key, "a tile", need, [&](Fields& tile) {
      tile.one_line();
      tile.count(sides.first, first, {}, tile_side);
      tile.count(sides.second, second, {}, tile_side);
    });
  }
  template <class V>
  void range(std::string_view key, const char* what, V T::*least, V T::*most) {
    group(key, what, Need::always, [&](Fields& range) {
      range.one_line();
      for (const auto& [name, member] : {std::pair("least", least), std::pair("most", most)}) {
        if constexpr (std::is_same_v<V, std::int64_t>) {
          range.count(name, member);
        } else {
          range.quantity(name, member);
        }
      }
      range.check([=](T& object, const Value& value, Diagnostics& diagnostics) {
        if (object.*least > object.*most) diagnostics.error(value.position, "'least' is more than 'most'");
      });
    });
  }
  /// A map of its own for some fields of the same object.
  template <class Declare>
  void group(std::string_view key, const char* what, Need need, const Declare& declare_fields,
             std::string_view sentence = {}) {
    const auto inner = std::make_shared<Fields>(is_measured(), true);
    declare_fields(*inner);
    add_part(key, sentence, what, need, inner, Place(0, [](const void*, void* object, std::size_t) { return object; }));
  }

  /// The time of a sample, and its spread where it is known.
  void timing() {
    quantity("time", &T::time);
    add_spread(place(&T::spread));
  }
  /// The same for a sample that may state its rate instead, which becomes the time in a check of the map around it.
  void timing_or_rate() {
    add_value<Duration>("time", {}, false, limits_of(Duration{}), place(&T::time));
    add_rate();
    add_spread(place(&T::spread));
  }
  /// The rate that a device keeps once its power limit lowers the clock, which samples of short benchmarks become in a
  /// check of the map around them.
  void sustained() { add_sustained(); }
  /// The profile that has what this one does not state.
  void like() { add_like(); }
  void documents(std::string_view key, std::vector<PackedDocument> T::*member) {
    add_documents(key, "each in tokens (300) or queries by keys (300x150)", place(member));
  }

  /// A part with fields of its own, and a name for messages. The member may be any function that gives it.
  template <class Member>
  void part(std::string_view key, const char* what, Member member, std::string_view sentence = {},
            Need need = Need::always) {
    using Part = std::remove_cvref_t<std::invoke_result_t<Member, T&>>;
    bool (*is_written)(const void*) = nullptr;
    if (need == Need::only_measured || (need == Need::unless_measured && is_measured())) {
      is_written = [](const void* part) { return *static_cast<const Part*>(part) != Part{}; };
    }
    add_part(key, sentence, what, need, fields_of<Part>(is_measured()), place(member), is_written);
  }
  template <class Member>
  void optional_part(std::string_view key, const char* what, Member member, std::string_view sentence = {},
                     Need need = Need::never) {
    using Part = typename std::remove_cvref_t<std::invoke_result_t<Member, T&>>::value_type;
    add_part(key, sentence, what, need, fields_of<Part>(is_measured()), place(member));
  }
  template <class Member>
  void list(std::string_view key, const ListText& text, Member member, std::string_view sentence = {}) {
    using Item = typename std::remove_cvref_t<std::invoke_result_t<Member, T&>>::value_type;
    const auto item = [](const void* which, void* object, std::size_t index) -> void* {
      auto& items = std::invoke(*static_cast<const Member*>(which), object_at(object));
      if (index == make) return &items.emplace_back();
      return index < items.size() ? &items[index] : nullptr;
    };
    add_list(key, sentence, text, fields_of<Item>(is_measured()), Place(member, item));
  }

  /// What must hold between the fields, once they are read; it may complete the object.
  template <class Holds>
  void check(Holds holds) {
    add_check([holds](void* object, const Value& value, Diagnostics& diagnostics) {
      holds(object_at(object), value, diagnostics);
    });
  }

 private:
  static T& object_at(void* object) { return *static_cast<T*>(object); }

  template <class Member>
  static Place place(Member member) {
    return Place(member, [](const void* which, void* object, std::size_t number) -> void* {
      auto& value = std::invoke(*static_cast<const Member*>(which), object_at(object));
      if constexpr (requires {
                      value.emplace();
                      value.has_value();
                    }) {
        if (number == make && !value) value.emplace();
        return value ? &*value : nullptr;
      } else {
        (void)number;
        return &value;
      }
    });
  }

  static constexpr Between<FlopRate> limits_of(FlopRate) { return limits::flop_rate; }
  static constexpr Between<Bandwidth> limits_of(Bandwidth) { return limits::bandwidth; }
  static constexpr Between<Bytes> limits_of(Bytes) { return limits::message; }
  static constexpr Between<Duration> limits_of(Duration) { return {1_ps, limits::time.most}; }
};

template <class T>
const std::shared_ptr<const Fields<T>>& fields_of(bool measured) {
  const auto declared = [](bool of_measured) {
    const auto fields = std::make_shared<Fields<T>>(of_measured);
    declare(*fields);
    return std::shared_ptr<const Fields<T>>(fields);
  };
  static const std::array all = {declared(false), declared(true)};
  return all[measured ? 1 : 0];
}

}  // namespace hdpsim
