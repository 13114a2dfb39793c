#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/reader.h"
#include "sim/import/argument.h"
#include "sim/import/impl/megatron_rules.h"

namespace hdpsim {

/// The arguments of a Megatron-LM run by their keys, with Megatron's way of reading them: of two values the last
/// counts. Notes are added for arguments that are unknown, idle, repeated or not modelled.
class MegatronArguments {
 public:
  MegatronArguments(const ArgumentList& list, std::string file, Diagnostics& diagnostics, ImportNotes& notes);

  [[nodiscard]] bool has(std::string_view key) const { return stated_.find(key) != stated_.end(); }
  /// The position of an argument; without one, the file.
  [[nodiscard]] Position position(std::string_view key) const;
  /// As the file writes it: `--num-layers`.
  [[nodiscard]] std::string written(std::string_view key) const;

  /// The whole number of an argument; empty if it is absent or wrong, which is reported.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view key, Range range) const;
  [[nodiscard]] std::int64_t number(std::string_view key, Range range, std::int64_t otherwise) const {
    return number(key, range).value_or(otherwise);
  }
  /// The same for an argument that Megatron requires, which is reported where it is absent; then 0.
  [[nodiscard]] std::int64_t required(std::string_view key, Range range) const;
  /// Whether an argument states one whole number, without a word where it does not.
  [[nodiscard]] bool is_number(std::string_view key) const;
  [[nodiscard]] double fraction(std::string_view key, double otherwise) const;
  [[nodiscard]] std::string word(std::string_view key, std::string_view otherwise) const;
  [[nodiscard]] std::vector<std::string> words(std::string_view key) const;
  /// Whether a switch of either kind leaves its key true.
  [[nodiscard]] bool is_on(std::string_view key) const;

  /// Reports all but the first stated of arguments that say one thing in different ways.
  void refuse_second_of(std::span<const std::string_view> keys) const;

  /// Notes that a study does not model an argument, what it has instead, and how the run differs.
  void note_unmodelled(std::string_view key, std::string_view follows, const LikelyEffect& effect) const;
  void assume(std::string text, Position position = {}) const;
  [[nodiscard]] Diagnostics& diagnostics() const { return diagnostics_; }
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  struct Stated {
    const ArgumentRule* rule = nullptr;
    Argument argument;
  };

  void take(const Argument& argument);
  void join_defaults();
  void check_values(Argument& argument, const ArgumentRule& rule) const;
  void note_rule(const Stated& stated) const;
  [[nodiscard]] const ArgumentValue* value(std::string_view key) const;

  std::string file_;
  Diagnostics& diagnostics_;
  ImportNotes& notes_;
  std::map<std::string, Stated, std::less<>> stated_;
};

}  // namespace hdpsim
