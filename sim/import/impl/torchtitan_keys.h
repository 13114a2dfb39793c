#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sim/document/reader.h"
#include "sim/import/impl/likely_effect.h"
#include "sim/import/import_note.h"

namespace hdpsim {

/// The keys of a file of torchtitan, and what is told of them.
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
  /// Where a key stands; the file, if it is null.
  [[nodiscard]] Position position(const Value* value) const;

  /// Tells what a study has instead of something, and how the run differs.
  void unsaid(std::string_view name, const Value* value, std::string_view follows, const LikelyEffect& effect);
  void assume(std::string text, const Value* value = nullptr);
  /// Tells all keys that the study does not say: by their rules, or as unknown.
  void tell_rest();
  [[nodiscard]] ImportNotes take_notes() { return std::move(notes_); }

 private:
  void tell_table(const std::string& path, const std::string& table, const Value& map);
  void tell(const std::string& name, const std::string& table, const Value::Entry& entry);
  void tell_unknown(const std::string& name, const Value::Entry& entry);

  const Value& root_;
  std::string file_;
  Diagnostics& diagnostics_;
  ImportNotes notes_;
};

}  // namespace hdpsim
