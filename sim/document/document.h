#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// One value of a YAML or JSON document with its place in the file.
struct Value {
  enum class Kind { null, scalar, sequence, map };
  struct Entry;

  Kind kind = Kind::null;
  Position position;
  std::string text;            ///< The scalar as written, without quotes.
  bool quoted = false;         ///< A quoted scalar is a string whatever it looks like.
  bool one_line = false;       ///< Written on one line, as [a, b] or {a: b}; parsing leaves it false.
  std::vector<Value> items;    ///< Items of a sequence.
  std::vector<Entry> entries;  ///< Entries of a map, in the order of the file.

  [[nodiscard]] bool is_map() const { return kind == Kind::map; }
  [[nodiscard]] bool is_sequence() const { return kind == Kind::sequence; }
  [[nodiscard]] bool is_scalar() const { return kind == Kind::scalar; }
  [[nodiscard]] bool is_null() const { return kind == Kind::null; }
  /// The value of a key of a map; nullptr if the key is absent or this is not a map.
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] Value* find(std::string_view key);

  [[nodiscard]] static Value scalar(std::string text, Position position = {});
  [[nodiscard]] static Value map(Position position = {});
  [[nodiscard]] static Value sequence(Position position = {});
  /// Adds or replaces an entry of a map.
  Value& set(std::string_view key, Value value);
};

struct Value::Entry {
  std::string key;
  Position position;
  Value value;
};

/// "a map", "a list", "a value" or "nothing", for messages.
[[nodiscard]] std::string_view kind_name(Value::Kind kind);

/// Parses YAML, of which JSON is a subset. Reported are syntax errors, duplicate keys, keys other than strings, more
/// than 2 MB, 64 levels, 50,000 keys of a map or 400,000 values (alias bombs); the result is then whatever could be
/// read. The diagnostics keep the text for caret lines. `file` is the name that positions carry.
[[nodiscard]] Value parse_document(const std::string& file, const std::string& text, Diagnostics& diagnostics);

/// The same for a file on disk. A missing file is reported; one that exists but cannot be read throws a MachineError.
[[nodiscard]] Value load_document(const std::string& path, Diagnostics& diagnostics);

/// Fills in what `value` lacks from `defaults`: entries of maps, at any depth. What it states stays, with its order.
void fill_in(Value& value, const Value& defaults);

/// The names of a folder's files with this ending (`.yaml`), without it and sorted. None if there is no such folder.
[[nodiscard]] std::vector<std::string> names_in(const std::filesystem::path& folder, std::string_view ending);

/// Whether a file of that name exists. False for a folder, and for a name that no file can have.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

/// The whole text of a file, without a byte order mark. Empty, with a problem reported, if the file is missing or above
/// 1 GB; throws a MachineError if it cannot be read.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& path, Diagnostics& diagnostics);

/// Sets the value at a dotted path (`data.context`, `plans.0`), creating maps on the way, all at the position of the
/// value: a path with a typing error is then reported as an unknown key where it was written. Returns false, with a
/// problem reported there, if the path runs through a scalar, past the end of a list or too deep.
bool set_path(Value& root, std::string_view dotted_path, const Value& value, Diagnostics& diagnostics);

/// Block-style YAML text of a value; reading it back gives the same value.
[[nodiscard]] std::string to_yaml(const Value& value);

}  // namespace hdpsim
