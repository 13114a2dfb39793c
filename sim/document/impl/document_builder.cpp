#include "sim/document/impl/document_builder.h"

#include <fmt/format.h>

#include <utility>

#include "sim/document/limits.h"

namespace hdpsim {
namespace {

// Memory of a text in values: a long text takes the room of many.
std::size_t room_of(const std::string& text) {
  constexpr std::size_t bytes_a_value = 128;
  return 1 + text.size() / bytes_a_value;
}

}  // namespace

void DocumentBuilder::OnDocumentStart(const YAML::Mark& mark) {
  // The parser stands still at a character that no value can begin with, and finds empty documents there for ever.
  if (documents_ > 0 && mark.pos == document_start_) {
    diagnostics_.error(position_of(mark), "nothing can begin here", "is a comma too many?");
    throw GivenUp();
  }
  document_start_ = mark.pos;
  ++documents_;
  anchored_.clear();
}

void DocumentBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  OnScalar(mark, "", anchor, "");
}

void DocumentBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                               const std::string& text) {
  Value value;
  value.position = position_of(mark);
  count(value.position, room_of(text));
  if (!tag.empty() && task_ != Task::count) {
    value.kind = Value::Kind::scalar;
    value.text = text;
    value.quoted = tag == "!";
  }
  if (anchor != 0) keep(anchor, value, room_of(text));
  place(std::move(value));
}

void DocumentBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const auto found = anchored_.find(anchor);
  if (found == anchored_.end()) {
    diagnostics_.error(position_of(mark), "this alias stands for something that it is a part of");
    throw GivenUp();
  }
  count(position_of(mark), found->second.room);
  place(found->second.value);
}

void DocumentBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                                      YAML::EmitterStyle::value) {
  open(Value::Kind::sequence, mark, anchor);
}

void DocumentBuilder::OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                                 YAML::EmitterStyle::value) {
  open(Value::Kind::map, mark, anchor);
}

void DocumentBuilder::count(const Position& position, std::size_t room) {
  room_ += room;
  const bool too_deep = open_.size() > static_cast<std::size_t>(deepest_level);
  if (!too_deep && room_ + kept_room_ <= static_cast<std::size_t>(most_values)) return;
  report_limit(position, too_deep, diagnostics_);
  throw GivenUp();
}

void DocumentBuilder::keep(YAML::anchor_t anchor, const Value& value, std::size_t room) {
  kept_room_ += room;
  count(value.position, 0);
  anchored_[anchor] = {value, room};
}

void DocumentBuilder::open(Value::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
  Open opened;
  opened.value.kind = kind;
  opened.value.position = position_of(mark);
  opened.anchor = anchor;
  opened.room_before = room_;
  count(opened.value.position, 1);
  open_.push_back(std::move(opened));
}

void DocumentBuilder::close() {
  Open closed = std::move(open_.back());
  open_.pop_back();
  if (closed.anchor != 0) keep(closed.anchor, closed.value, room_ - closed.room_before);
  place(std::move(closed.value));
}

void DocumentBuilder::place(Value value) {
  if (task_ == Task::count) return;
  if (open_.empty()) {
    if (documents_ <= 1) {
      root_ = std::move(value);
    } else if (!value.is_null() && !told_second_) {
      told_second_ = true;
      diagnostics_.error(value.position, "a second document starts here",
                         "one file holds one document: a single map or list");
    }
    return;
  }
  Open& parent = open_.back();
  if (parent.value.is_sequence()) {
    parent.value.items.push_back(std::move(value));
  } else if (!parent.has_key) {
    take_key(parent, std::move(value));
  } else {
    parent.has_key = false;
    if (!parent.key_counts) return;
    parent.value.entries.push_back({std::move(parent.key), std::move(parent.key_position), std::move(value)});
  }
}

void DocumentBuilder::take_key(Open& map, Value key) {
  if (map.keys.size() == most_keys) {
    diagnostics_.error(key.position, fmt::format("more than {} keys in one map", most_keys), "is it the right file?");
    throw GivenUp();
  }
  map.has_key = true;
  map.key_counts = false;
  if (!key.is_scalar()) {
    diagnostics_.error(key.position, "a key must be a plain word");
  } else if (!map.keys.insert(key.text).second && task_ != Task::build_repeated) {
    if (!diagnostics_.keeps(key.position)) return;
    diagnostics_.error(key.position, fmt::format("the key '{}' is stated a second time here", key.text),
                       "remove one of them");
  } else {
    map.key_counts = true;
    map.key = std::move(key.text);
    map.key_position = std::move(key.position);
  }
}

}  // namespace hdpsim
