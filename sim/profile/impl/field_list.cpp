#include "sim/profile/impl/field_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/profile/impl/exact_text.h"

namespace hdpsim {
namespace {

template <class T>
KeyShape shape_of_value(const RangeOf<T>& range) {
  if constexpr (std::is_same_v<T, std::int64_t>) return count_shape(range);
  if constexpr (std::is_same_v<T, double>) return number_shape(range);
  if constexpr (std::is_same_v<T, Duration>) return shape_of(KeyShape::Kind::time);
  if constexpr (std::is_same_v<T, Bytes>) return shape_of(KeyShape::Kind::bytes);
  if constexpr (std::is_same_v<T, Bandwidth>) return shape_of(KeyShape::Kind::bandwidth);
  if constexpr (std::is_same_v<T, FlopRate>) return shape_of(KeyShape::Kind::flop_rate);
}

template <class T>
Value scalar_of(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return Value::scalar(fmt::format("{}", value));
  } else {
    return Value::scalar(exact_text(value));
  }
}

KeyText field_text(std::string_view key, KeyShape shape, std::string_view sentence, bool required) {
  return key_text(key, std::move(shape), {}, sentence, {.required = required});
}

// "an attention curve" and "'gemm'" as names of the schema.
std::string definition_of(std::string_view what) {
  for (const std::string_view article : {"the ", "an ", "a "}) {
    if (!what.starts_with(article)) continue;
    what.remove_prefix(article.size());
    break;
  }
  std::string name(what);
  std::erase(name, '\'');
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

// The items of a list, which must have at least one.
const std::vector<Value>& items_of(const Value& value, std::string_view key, std::string_view of,
                                   Diagnostics& diagnostics) {
  if (!value.is_sequence() || value.items.empty()) {
    diagnostics.error(value.position, fmt::format("'{}' must be a list of at least one {}", key, of));
  }
  return value.items;
}

// A list of scalars on one line; none without items.
template <class T, class ToValue>
Value line_of(const std::vector<T>& items, const ToValue& value_of) {
  if (items.empty()) return {};
  Value list = Value::sequence();
  for (const T& item : items) list.items.push_back(value_of(item));
  list.one_line = true;
  return list;
}

PackedDocument document_of(const Value& value, Diagnostics& diagnostics) {
  const auto side = [&](std::string_view text) {
    std::int64_t tokens = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), tokens);
    return error == std::errc{} && end == text.data() + text.size() ? tokens : 0;
  };
  const std::string_view text = value.text;
  const auto cross = text.find('x');
  const PackedDocument document{side(text.substr(0, cross)), side(text.substr(cross == text.npos ? 0 : cross + 1))};
  if (!value.is_scalar() || document.queries < 1 || document.keys < 1) {
    diagnostics.error(value.position, "a document is its tokens (300) or queries by keys (300x150)");
  }
  return document;
}

std::string text_of(const PackedDocument& document) {
  return document.queries == document.keys ? fmt::format("{}", document.queries)
                                           : fmt::format("{}x{}", document.queries, document.keys);
}

}  // namespace

void FieldList::read(const Value& value, const std::string& what, void* object, Diagnostics& diagnostics) const {
  (void)keys_.read(value, object, diagnostics, what);
  if (!value.is_map()) return;
  for (const Check& check : checks_) check(object, value, diagnostics);
}

Value FieldList::written(const void* object) const {
  Value map = Value::map();
  map.one_line = one_line_;
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    Value value = writes_[i](const_cast<void*>(object));  // which writes do not change
    if (!value.is_null()) map.set(keys()[i].name, std::move(value));
  }
  return map;
}

void FieldList::add(KeyText text, KeyList::Read read, Write write) {
  keys_.add(std::move(text), std::move(read));
  writes_.push_back(std::move(write));
}

void FieldList::schema(const char* name) {
  const auto read = [name](const Value& value, void*, Diagnostics& diagnostics) {
    (void)read_choice(value, "schema", {name}, diagnostics);
  };
  add(field_text("schema", word_shape({name}), {}, true), read, [name](void*) { return Value::scalar(name); });
}

void FieldList::add_text(std::string_view key, std::string_view sentence, bool required, TextStyle style, Place place) {
  const auto read = [place, required, key = std::string(key)](const Value& value, void* object,
                                                              Diagnostics& diagnostics) {
    const auto text = hdpsim::read<std::string>(value, diagnostics);
    if (required && text && text->empty()) diagnostics.error(value.position, fmt::format("'{}' says nothing", key));
    *static_cast<std::string*>(place(object, make)) = text.value_or("");
  };
  const auto write = [place, style](void* object) {
    const auto& text = *static_cast<const std::string*>(place(object, 0));
    if (text.empty() && style == TextStyle::quoted) return Value();
    Value value = Value::scalar(text);
    value.quoted = style == TextStyle::quoted;
    return value;
  };
  add(field_text(key, shape_of(KeyShape::Kind::text), sentence, required), read, write);
}

template <class T>
void FieldList::add_value(std::string_view key, std::string_view sentence, bool required, const RangeOf<T>& range,
                          Place place) {
  const auto put = [place](void* object, const T& value) { *static_cast<T*>(place(object, make)) = value; };
  keys_.add_range<T>(field_text(key, shape_of_value<T>(range), sentence, required), range, put);
  writes_.push_back([place, range](void* object) {
    const auto* value = static_cast<const T*>(place(object, 0));
    if (value == nullptr) return Value();
    if constexpr (std::is_same_v<T, std::int64_t>) {
      const auto count = static_cast<double>(*value);
      if (count < range.least || count > range.most) return Value();
    }
    return scalar_of(*value);
  });
}
template void FieldList::add_value<std::int64_t>(std::string_view, std::string_view, bool, const Range&, Place);
template void FieldList::add_value<double>(std::string_view, std::string_view, bool, const Range&, Place);
template void FieldList::add_value<Duration>(std::string_view, std::string_view, bool, const Between<Duration>&, Place);
template void FieldList::add_value<Bytes>(std::string_view, std::string_view, bool, const Between<Bytes>&, Place);
template void FieldList::add_value<Bandwidth>(std::string_view, std::string_view, bool, const Between<Bandwidth>&,
                                              Place);
template void FieldList::add_value<FlopRate>(std::string_view, std::string_view, bool, const Between<FlopRate>&, Place);

void FieldList::add_index(KeyText text, const std::string& what, const KeyList::Put<std::size_t>& put,
                          const std::function<std::size_t(void*)>& get) {
  writes_.push_back([get, words = text.shape.words](void* object) { return Value::scalar(words.at(get(object))); });
  keys_.add_word(std::move(text), what, put);
}

void FieldList::add_spread(const Place& place) {
  const auto add_time = [&](std::string_view key, Duration Spread::*time) {
    const auto read = [place, time](const Value& value, void* object, Diagnostics& diagnostics) {
      if (const auto stated = hdpsim::read<Duration>(value, diagnostics)) {
        static_cast<Spread*>(place(object, make))->*time = *stated;
      }
    };
    add(field_text(key, shape_of(KeyShape::Kind::time), {}, false), read, [place, time](void* object) {
      const auto* spread = static_cast<const Spread*>(place(object, 0));
      return spread == nullptr ? Value() : scalar_of(spread->*time);
    });
  };
  add_time("p10", &Spread::p10);
  add_time("p90", &Spread::p90);
  add(
      field_text("runs", count_shape(positive_range), {}, false),
      [place](const Value& value, void* object, Diagnostics& diagnostics) {
        if (const auto stated = read_in<std::int64_t>(value, "'runs'", positive_range, diagnostics)) {
          static_cast<Spread*>(place(object, make))->runs = *stated;
        }
      },
      [place](void* object) {
        const auto* spread = static_cast<const Spread*>(place(object, 0));
        return spread == nullptr ? Value() : scalar_of(spread->runs);
      });
  add_check([place](void* object, const Value& value, Diagnostics& diagnostics) {
    const auto* spread = static_cast<const Spread*>(place(object, 0));
    if (spread == nullptr) return;
    if (spread->p10 > Duration{} && spread->p10 <= spread->p90 && spread->runs > 0) return;
    diagnostics.error(value.position, "a spread needs 'p10', 'p90' and 'runs', with p10 no more than p90");
  });
}

void FieldList::add_followed(KeyText text) {
  add(
      std::move(text), [](const Value&, void*, Diagnostics&) {}, [](void*) { return Value(); });
}

void FieldList::add_rate() {
  add_followed(field_text("rate", shape_of(KeyShape::Kind::flop_rate), "in place of the time", false));
}

void FieldList::add_sustained() {
  const KeyShape shape =
      map_shape({field_text("rate", shape_of(KeyShape::Kind::flop_rate), "what the device keeps", true),
                 field_text("from", shape_of(KeyShape::Kind::time), "the shortest sample that was taken at it", true)});
  add_followed(
      field_text("sustained", shape,
                 "where a power limit lowers the clock of a device that computes without pause: faster samples "
                 "that are shorter than `from`, whose benchmark ended before, are taken at this rate",
                 false));
}

void FieldList::add_like() {
  add_followed(field_text("like", shape_of(KeyShape::Kind::text),
                          "a profile beside this one, or the path of one, that has what this one does not state; a map "
                          "with a source of its own replaces the whole of that one's",
                          false));
  add_followed(field_text("without", list_shape(shape_of(KeyShape::Kind::text)),
                          "parts of the profile that this one is like, which it does not have: `gemm_fp8_blocks`",
                          false));
}

void FieldList::add_numbers(std::string_view key, std::string_view sentence, Place place) {
  using Numbers = std::vector<double>;
  const auto read = [place, key = std::string(key)](const Value& value, void* object, Diagnostics& diagnostics) {
    for (const Value& item : items_of(value, key, "number", diagnostics)) {
      static_cast<Numbers*>(place(object, make))->push_back(hdpsim::read<double>(item, diagnostics).value_or(0));
    }
  };
  add(field_text(key, list_shape(shape_of(KeyShape::Kind::number)), sentence, false), read,
      [place](void* object) { return line_of(*static_cast<const Numbers*>(place(object, 0)), scalar_of<double>); });
}

void FieldList::add_documents(std::string_view key, std::string_view sentence, Place place) {
  using Documents = std::vector<PackedDocument>;
  const auto read = [place, key = std::string(key)](const Value& value, void* object, Diagnostics& diagnostics) {
    for (const Value& item : items_of(value, key, "document", diagnostics)) {
      static_cast<Documents*>(place(object, make))->push_back(document_of(item, diagnostics));
    }
  };
  const auto write = [place](void* object) {
    return line_of(*static_cast<const Documents*>(place(object, 0)),
                   [](const PackedDocument& document) { return Value::scalar(text_of(document)); });
  };
  const KeyShape item = either_shape({count_shape(positive_range), shape_of(KeyShape::Kind::text)});
  add(field_text(key, list_shape(item), sentence, true), read, write);
}

void FieldList::add_part(std::string_view key, std::string_view sentence, const char* what, Need need,
                         const Inner& inner, Place place, bool (*is_written)(const void* part)) {
  const bool is_refused = need == Need::only_measured && !measured_;
  const auto read = [=](const Value& value, void* object, Diagnostics& diagnostics) {
    if (is_refused) {
      diagnostics.error(value.position,
                        "only a profile with the label 'measured' has these, or one of traces, or a fit to steps that "
                        "started from one");
    } else {
      inner->read(value, what, place(object, make), diagnostics);
    }
  };
  const auto write = [=](void* object) {
    const void* part = place(object, 0);
    if (part == nullptr || (is_written != nullptr && !is_written(part))) return Value();
    Value map = inner->written(part);
    return inner->group_ && map.entries.empty() ? Value() : map;
  };
  const bool required = need == Need::always || (need == Need::unless_measured && !measured_);
  add(field_text(key, inner->shape(what), sentence, required), read, write);
}

void FieldList::add_list(std::string_view key, std::string_view sentence, const ListText& text, const Inner& inner,
                         Place place) {
  const auto read = [=, key = std::string(key)](const Value& value, void* object, Diagnostics& diagnostics) {
    for (const Value& item : items_of(value, key, text.of, diagnostics)) {
      inner->read(item, text.item, place(object, make), diagnostics);
    }
  };
  const auto write = [=](void* object) {
    Value list = Value::sequence();
    for (const void* item = place(object, 0); item != nullptr; item = place(object, list.items.size())) {
      list.items.push_back(inner->written(item));
    }
    return list.items.empty() ? Value() : list;
  };
  add(field_text(key, list_shape(inner->shape(text.item)), sentence, text.required), read, write);
}

KeyShape FieldList::shape(const char* what) const {
  return group_ ? map_shape(keys()) : defined(definition_of(what), map_shape(keys()));
}

}  // namespace hdpsim
