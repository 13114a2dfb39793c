#include "sim/document/document.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/check.h"
#include "sim/base/input_files.h"
#include "sim/document/impl/document_builder.h"
#include "sim/document/impl/flow_scan.h"
#include "sim/document/input_file.h"
#include "sim/document/limits.h"
#include "sim/document/repeated_keys.h"

namespace hdpsim {
namespace {

std::optional<std::size_t> list_index(std::string_view text) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return index;
}

// yaml-cpp writes these without quotes and then reads them back as something else.
bool must_be_quoted(std::string_view text) {
  return text.find('\r') != std::string_view::npos || text.starts_with("...") || text.starts_with("---");
}

void emit_text(YAML::Emitter& out, const std::string& text, bool quoted) {
  if (quoted || must_be_quoted(text)) out << YAML::DoubleQuoted;
  out << text;
}

void emit(YAML::Emitter& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      out << YAML::Null;
      break;
    case Value::Kind::scalar:
      emit_text(out, value.text, value.quoted);
      break;
    case Value::Kind::sequence:
      if (value.one_line) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const Value& item : value.items) emit(out, item);
      out << YAML::EndSeq;
      break;
    case Value::Kind::map:
      if (value.one_line) out << YAML::Flow;
      out << YAML::BeginMap;
      for (const auto& entry : value.entries) {
        out << YAML::Key;
        emit_text(out, entry.key, false);
        out << YAML::Value;
        emit(out, entry.value);
      }
      out << YAML::EndMap;
      break;
  }
}

// The child of a map or list that one step of a dotted path names; a new one is created in a map or appended to a list.
Value* child_at(Value& parent, std::string_view step, const Position& position) {
  if (parent.is_null()) parent = Value::map(position);
  if (parent.is_map()) {
    if (Value* found = parent.find(step)) return found;
    Value nothing;
    nothing.position = position;
    return &parent.set(step, std::move(nothing));
  }
  const auto index = list_index(step);
  if (!parent.is_sequence() || !index || *index > parent.items.size()) return nullptr;
  if (*index == parent.items.size()) parent.items.emplace_back();
  return &parent.items[*index];
}

constexpr std::size_t chunk = 1 << 16;

void parse_events(const std::string& text, DocumentBuilder& builder) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  while (parser.HandleNextDocument(builder)) continue;
}

// Whether the beginning of a text shows that all of it asks for too much, which is then reported.
bool begins_beyond_limits(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  const std::size_t bytes = bytes_to_parse(text);
  if (bytes == text.size()) return false;
  Diagnostics found;
  DocumentBuilder counter(file, found, DocumentBuilder::Task::count);
  try {
    parse_events(text.substr(0, bytes), counter);
  } catch (const DocumentBuilder::GivenUp&) {
    diagnostics.append(found);
    return true;
  } catch (const YAML::Exception&) {  // the text goes on in another way than it was taken for
  }
  return false;
}

// Appends a part of the file to `text` and returns that part.
std::string_view append_chunk(std::ifstream& file, std::string& text) {
  const std::size_t size = text.size();
  text.resize(size + chunk);
  file.read(text.data() + size, chunk);
  text.resize(size + static_cast<std::size_t>(file.gcount()));
  return std::string_view(text).substr(size);
}

}  // namespace

std::string limits_text() {
  return fmt::format("at most {} levels and {} values", deepest_level, most_values);
}

void report_limit(const Position& position, bool too_deep, Diagnostics& diagnostics) {
  diagnostics.error(position, too_deep ? "nested too deeply" : "too many values in one document", limits_text());
}

void report_size(const std::string& file, std::size_t most, Diagnostics& diagnostics) {
  diagnostics.error({file, 0, 0}, fmt::format("too large: more than {} MB", most / 1'000'000), "is it the right file?");
}

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

namespace {

Value parsed(const std::string& file, const std::string& text, DocumentBuilder::Task task, Diagnostics& diagnostics) {
  if (text.size() > largest_yaml_bytes) {
    report_size(file, largest_yaml_bytes, diagnostics);
    return {};
  }
  diagnostics.add_source(file, text);
  if (begins_beyond_limits(file, text, diagnostics)) return {};
  DocumentBuilder builder(file, diagnostics, task);
  try {
    parse_events(text, builder);
  } catch (const DocumentBuilder::GivenUp&) {
    return {};
  } catch (const YAML::Exception& error) {
    // yaml-cpp reports "bad file" for one nested beyond its own limit, which lies above ours.
    const bool too_deep = error.msg == YAML::ErrorMsg::BAD_FILE;
    diagnostics.error({file, error.mark.line + 1, error.mark.column + 1}, too_deep ? "nested too deeply" : error.msg,
                      too_deep ? limits_text() : "");
    return {};
  }
  Value document = builder.take();
  if (document.position.file.empty()) document.position = {file, 0, 0};  // an empty file
  return document;
}

}  // namespace

Value parse_document(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  return parsed(file, text, DocumentBuilder::Task::build, diagnostics);
}

Value parse_repeating_document(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  return parsed(file, text, DocumentBuilder::Task::build_repeated, diagnostics);
}

bool is_there(const std::filesystem::path& path) {
  std::error_code no_such_name;
  const std::filesystem::file_status status = std::filesystem::status(path, no_such_name);
  return std::filesystem::exists(status) && !std::filesystem::is_directory(status);
}

std::optional<std::string> read_text_file(const std::string& path, std::size_t most_bytes, Diagnostics& diagnostics) {
  std::error_code failure;
  if (!std::filesystem::exists(path, failure) && !failure) {
    diagnostics.error({path, 0, 0}, "there is no such file");
    return std::nullopt;
  }
  if (std::filesystem::is_directory(path, failure)) {
    diagnostics.error({path, 0, 0}, "this is a folder, not a file", "name a file in it");
    return std::nullopt;
  }
  InputFiles::record(path);
  std::string text;
  std::error_code endless;  // a pipe or a device does not say how long it is
  const std::uintmax_t size = std::filesystem::file_size(path, endless);
  if (endless) most_bytes = std::min(most_bytes, largest_stream_bytes);
  if (!endless) text.reserve(std::min<std::uintmax_t>(size, most_bytes) + chunk);
  std::ifstream file(path, std::ios::binary);
  while (file && text.size() <= most_bytes) {
    if (append_chunk(file, text).find('\0') == std::string_view::npos) continue;
    diagnostics.error({path, 0, 0}, "there is a byte 0 in it: this is no text", "is it the right file?");
    return std::nullopt;
  }
  if (failure || !file.is_open() || file.bad()) throw MachineError(fmt::format("cannot read {}", path));
  if (text.size() <= most_bytes) {
    text.erase(0, mark_bytes(text));
    return text;
  }
  report_size(path, most_bytes, diagnostics);
  return std::nullopt;
}

std::optional<std::string> read_text_file(const std::string& path, Diagnostics& diagnostics) {
  return read_text_file(path, largest_text_bytes, diagnostics);
}

Value load_document(const std::string& path, Diagnostics& diagnostics) {
  const auto text = read_text_file(path, largest_yaml_bytes, diagnostics);
  if (!text) return {};
  return parse_document(path, *text, diagnostics);
}

bool set_path(Value& root, std::string_view dotted_path, const Value& value, Diagnostics& diagnostics) {
  if (std::count(dotted_path.begin(), dotted_path.end(), '.') >= deepest_level) {
    report_limit(value.position, true, diagnostics);
    return false;
  }
  Value* at = &root;
  std::string_view rest = dotted_path;
  while (!rest.empty()) {
    const auto dot = rest.find('.');
    const std::string_view step = rest.substr(0, dot);
    at = child_at(*at, step, value.position);
    if (at == nullptr) {
      const auto length = static_cast<std::size_t>(step.data() - dotted_path.data());
      const std::string_view parent = dotted_path.substr(0, length == 0 ? 0 : length - 1);
      diagnostics.error(value.position,
                        fmt::format("'{}' does not lead anywhere: {} has no entry '{}'", dotted_path,
                                    parent.empty() ? "the document" : fmt::format("'{}'", parent), step));
      return false;
    }
    rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
  }
  *at = value;
  return true;
}

void fill_in(Value& value, const Value& defaults) {
  if (value.is_null()) value = defaults;
  if (!value.is_map() || !defaults.is_map()) return;
  for (const Value::Entry& entry : defaults.entries) {
    if (Value* stated = value.find(entry.key)) {
      fill_in(*stated, entry.value);
    } else {
      value.entries.push_back(entry);
    }
  }
}

std::vector<std::string> names_in(const std::filesystem::path& folder, std::string_view ending) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    if (entry.path().extension() == ending) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string to_yaml(const Value& value) {
  YAML::Emitter out;
  out.SetIndent(2);
  emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace hdpsim
