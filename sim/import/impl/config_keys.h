#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/document/document.h"
#include "sim/document/reader.h"
#include "sim/import/impl/key_rules.h"
#include "sim/import/import_note.h"

namespace hdpsim {

/// The rule of the key at a path; null if the format does not know it.
using RuleOfPath = const KeyRule* (*)(std::string_view path);

/// The keys of a configuration file, and the notes about them. A key without a value (null, None) counts as absent.
class ConfigKeys {
 public:
  ConfigKeys(const Value& root, std::string file, RuleOfPath rule_of, Diagnostics& diagnostics)
      : root_(root), file_(std::move(file)), rule_of_(rule_of), diagnostics_(diagnostics) {}

  [[nodiscard]] const Value& root() const { return root_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] Diagnostics& diagnostics() const { return diagnostics_; }

  /// The value at a path (`fsdp_config.fsdp_version`), or of the first of several that is there; null if the file
  /// states none of them.
  [[nodiscard]] const Value* at(std::string_view path) const;
  [[nodiscard]] const Value* at(std::initializer_list<std::string_view> paths) const;

  /// The whole number that a value states, also as `500_000`; empty if it is none, which is reported.
  [[nodiscard]] std::optional<std::int64_t> count(const Value& value, std::string_view name, Range range) const;
  /// What a key says; `otherwise` if it is null, or wrong, which is reported.
  [[nodiscard]] std::int64_t number(const Value* value, std::string_view name, Range range,
                                    std::int64_t otherwise) const;
  [[nodiscard]] std::string word(const Value* value, std::string_view otherwise) const;
  [[nodiscard]] bool truth(const Value* value, bool otherwise = false) const;
  /// The position of a key; the file, if it is null.
  [[nodiscard]] Position position(const Value* value) const;

  /// Notes what a study has instead of something, and how the run differs.
  void unmodelled(std::string_view name, const Value* value, std::string_view follows, const LikelyEffect& effect);
  void assume(std::string text, const Value* value = nullptr);
  /// Notes all keys that the study does not state: by their rules, or as unknown.
  void note_rest();
  [[nodiscard]] ImportNotes take_notes() { return std::move(notes_); }

 private:
  void note_map(const std::string& path, const Value& map);
  void note_key(const std::string& path, const Value::Entry& entry);
  void note_unknown(const std::string& path, const Value::Entry& entry);

  const Value& root_;
  std::string file_;
  RuleOfPath rule_of_;
  Diagnostics& diagnostics_;
  ImportNotes notes_;
};

}  // namespace hdpsim
