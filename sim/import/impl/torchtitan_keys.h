#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/document/document.h"
#include "sim/document/reader.h"
#include "sim/import/import_note.h"

namespace hdpsim {

/// A flavor of torchtitan (torchtitan/models/*/__init__.py), and the preset of the same shape.
struct Flavor {
  std::string_view model;
  std::string_view flavor;
  std::string_view preset;
  std::int64_t layers;
  bool has_experts = false;
  std::string_view unlike = {};     ///< What of the preset is not of the flavor.
  LikelyEffect unlike_effect = {};  ///< What follows from that.
};

/// All flavors whose shape a preset has.
[[nodiscard]] std::span<const Flavor> flavors();
/// The flavor of a model, by names in which letters and digits count; null if no preset has its shape.
[[nodiscard]] const Flavor* flavor_named(std::string_view model, std::string_view flavor);

/// What a study calls a schedule of PyTorch's pipelines, by its name in any case; empty if it has none like it.
[[nodiscard]] std::string_view schedule_named(std::string name);

/// What is known of a key. This table is where each known key is declared.
struct TomlRule {
  enum class Role : std::uint8_t {
    stated,      ///< The study states it, or the reader reports why not.
    unmodelled,  ///< It changes the time of a step or its memory, and a study has no key for it.
    idle,        ///< It changes neither.
  };
  std::string_view table;
  std::string_view key;  ///< Empty: all keys of the table that have no rule of their own.
  Role role = Role::idle;
  std::string_view follows = {};  ///< For what is not modelled: what the study has instead.
  LikelyEffect effect = {};       ///< For what is not modelled: how the run differs.
  std::string_view usual = {};    ///< For what is not modelled: the value that needs no note.
};

/// The rule of a key, or of its table as a whole; null if there is none. Keys of `parallelism` may be in the tables
/// of older releases, too.
[[nodiscard]] const TomlRule* toml_rule(std::string_view table, std::string_view key);
[[nodiscard]] std::span<const TomlRule> toml_rules();

/// The tables that have keys of `parallelism`, that of the latest release first.
[[nodiscard]] std::span<const std::string_view> homes_of_degrees();

/// The keys of a file of torchtitan, and the notes about them.
class TorchtitanKeys {
 public:
  TorchtitanKeys(const Value& root, std::string file, Diagnostics& diagnostics)
      : root_(root), file_(std::move(file)), diagnostics_(diagnostics) {}

  [[nodiscard]] const Value& root() const { return root_; }
  /// Null if the file does not state the key.
  [[nodiscard]] const Value* find(std::string_view table, std::string_view key) const;
  /// The same for a key of `parallelism`, which older releases had elsewhere.
  [[nodiscard]] const Value* find_degree(std::string_view key) const;

  /// What a key says; `otherwise` if it is null, or wrong, which is reported.
  [[nodiscard]] std::int64_t number(const Value* value, std::string_view name, Range range,
                                    std::int64_t otherwise) const;
  [[nodiscard]] std::int64_t degree_of(std::string_view key) const;
  [[nodiscard]] std::string word(const Value* value, std::string_view otherwise) const;
  [[nodiscard]] bool truth(const Value* value) const;
  /// The position of a key; the file, if it is null.
  [[nodiscard]] Position position(const Value* value) const;

  /// Notes what a study has instead of something, and how the run differs.
  void unmodelled(std::string_view name, const Value* value, std::string_view follows, const LikelyEffect& effect);
  void assume(std::string text, const Value* value = nullptr);
  /// Notes all keys that the study does not state: by their rules, or as unknown.
  void note_rest();
  [[nodiscard]] ImportNotes take_notes() { return std::move(notes_); }

 private:
  void note_table(const std::string& path, const std::string& table, const Value& map);
  void note_key(const std::string& name, const std::string& table, const Value::Entry& entry);
  void note_unknown(const std::string& name, const Value::Entry& entry);

  const Value& root_;
  std::string file_;
  Diagnostics& diagnostics_;
  ImportNotes notes_;
};

/// Parses TOML: tables become maps, arrays lists, and all else scalars with their places. Reported are syntax errors,
/// and texts beyond the limits of sim/document. `file` is the name that positions carry.
[[nodiscard]] Value parse_toml(const std::string& file, const std::string& text, Diagnostics& diagnostics);

}  // namespace hdpsim
