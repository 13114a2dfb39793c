#include "sim/document/document.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr int deepest_level = 64;
constexpr int most_values = 1'000'000;

class Converter {
 public:
  Converter(std::string file, Diagnostics& diagnostics) : file_(std::move(file)), diagnostics_(diagnostics) {}

  Value convert(const YAML::Node& node, int level = 0) {
    Value value;
    value.position = position_of(node);
    if (!within_limits(value.position, level)) return value;
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        break;
      case YAML::NodeType::Scalar:
        value.kind = Value::Kind::scalar;
        value.text = node.Scalar();
        value.quoted = node.Tag() == "!";
        break;
      case YAML::NodeType::Sequence:
        value.kind = Value::Kind::sequence;
        for (const auto& item : node) value.items.push_back(convert(item, level + 1));
        break;
      case YAML::NodeType::Map:
        value.kind = Value::Kind::map;
        convert_entries(node, level, value);
        break;
    }
    return value;
  }

 private:
  Position position_of(const YAML::Node& node) const {
    const YAML::Mark mark = node.Mark();
    return {file_, mark.line + 1, mark.column + 1};
  }

  bool within_limits(const Position& position, int level) {
    if (level <= deepest_level && ++values_ <= most_values) return true;
    if (!refused_) {
      refused_ = true;
      diagnostics_.error(position, level > deepest_level ? "nested too deeply" : "too many values in one document",
                         fmt::format("at most {} levels and {} values", deepest_level, most_values));
    }
    return false;
  }

  void convert_entries(const YAML::Node& node, int level, Value& map) {
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const Position position = position_of(entry.first);
      if (!entry.first.IsScalar()) {
        diagnostics_.error(position, "a key must be a plain word");
        continue;
      }
      const std::string& key = entry.first.Scalar();
      if (!seen.insert(key).second) {
        diagnostics_.error(position, fmt::format("the key '{}' stands here a second time", key), "remove one of them");
        continue;
      }
      map.entries.push_back({key, position, convert(entry.second, level + 1)});
    }
  }

  std::string file_;
  Diagnostics& diagnostics_;
  int values_ = 0;
  bool refused_ = false;
};

std::optional<std::size_t> list_index(std::string_view text) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return index;
}

void emit(YAML::Emitter& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      out << YAML::Null;
      break;
    case Value::Kind::scalar:
      if (value.quoted) out << YAML::DoubleQuoted;
      out << value.text;
      break;
    case Value::Kind::sequence:
      out << YAML::BeginSeq;
      for (const Value& item : value.items) emit(out, item);
      out << YAML::EndSeq;
      break;
    case Value::Kind::map:
      out << YAML::BeginMap;
      for (const auto& entry : value.entries) {
        out << YAML::Key << entry.key << YAML::Value;
        emit(out, entry.value);
      }
      out << YAML::EndMap;
      break;
  }
}

// The child of a map or list that one step of a dotted path names; created in a map, appended at the end of a list.
Value* child_at(Value& parent, std::string_view step) {
  if (parent.is_null()) parent.kind = Value::Kind::map;
  if (parent.is_map()) {
    Value* found = parent.find(step);
    return found != nullptr ? found : &parent.set(step, Value{});
  }
  const auto index = list_index(step);
  if (!parent.is_sequence() || !index || *index > parent.items.size()) return nullptr;
  if (*index == parent.items.size()) parent.items.emplace_back();
  return &parent.items[*index];
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

Value* Value::find(std::string_view key) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

Value Value::scalar(std::string text, Position position) {
  Value value;
  value.kind = Kind::scalar;
  value.text = std::move(text);
  value.position = std::move(position);
  return value;
}

Value Value::map(Position position) {
  Value value;
  value.kind = Kind::map;
  value.position = std::move(position);
  return value;
}

Value Value::sequence(Position position) {
  Value value;
  value.kind = Kind::sequence;
  value.position = std::move(position);
  return value;
}

Value& Value::set(std::string_view key, Value value) {
  if (Value* existing = find(key)) {
    *existing = std::move(value);
    return *existing;
  }
  Position where = value.position;
  entries.push_back({std::string(key), std::move(where), std::move(value)});
  return entries.back().value;
}

std::string_view kind_name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::null:
      return "nothing";
    case Value::Kind::scalar:
      return "a value";
    case Value::Kind::sequence:
      return "a list";
    case Value::Kind::map:
      return "a map";
  }
  return "";
}

Value parse_document(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  diagnostics.add_source(file, text);
  try {
    return Converter(file, diagnostics).convert(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    diagnostics.error({file, error.mark.line + 1, error.mark.column + 1}, error.msg);
    return {};
  }
}

std::optional<std::string> read_text_file(const std::string& path, Diagnostics& diagnostics) {
  if (!std::filesystem::exists(path)) {
    diagnostics.error({path, 0, 0}, "there is no such file");
    return std::nullopt;
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (std::filesystem::is_directory(path) || !(text << file.rdbuf())) {
    if (file.good() && !std::filesystem::is_directory(path) && std::filesystem::file_size(path) == 0) return "";
    throw MachineError(fmt::format("cannot read {}", path));
  }
  return text.str();
}

Value load_document(const std::string& path, Diagnostics& diagnostics) {
  const auto text = read_text_file(path, diagnostics);
  if (!text) return {};
  return parse_document(path, *text, diagnostics);
}

bool set_path(Value& root, std::string_view dotted_path, Value value, const Position& position,
              Diagnostics& diagnostics) {
  Value* at = &root;
  std::string_view rest = dotted_path;
  while (!rest.empty()) {
    const auto dot = rest.find('.');
    const std::string_view step = rest.substr(0, dot);
    at = child_at(*at, step);
    if (at == nullptr) {
      diagnostics.error(position,
                        fmt::format("'{}' does not lead anywhere: '{}' has no such entry", dotted_path, step));
      return false;
    }
    rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
  }
  *at = std::move(value);
  return true;
}

std::string to_yaml(const Value& value) {
  YAML::Emitter out;
  out.SetIndent(2);
  emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace hdpsim
