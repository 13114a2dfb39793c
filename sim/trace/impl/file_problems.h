#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity_text.h"

namespace hdpsim {

/// A place in a text file, with the text of its line.
struct TextPlace {
  std::string_view line_text;
  int line = 0;
  int column = 0;
};

/// The problems of one streamed file: keeps the first 20 with their lines, and counts the others. The last of
/// most_problems (limits.h) ends the reading: add() then throws what was collected.
class FileProblems {
 public:
  explicit FileProblems(std::string file) : file_(std::move(file)) {}

  void add(const TextPlace& place, std::string message, std::string help = {});
  /// A problem of the file as a whole, or of a binary one.
  void add(std::string message, std::string help = {});

  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// Throws an InputError if there are problems.
  void throw_if_any() const;
  /// add() followed by throw_if_any(), for a problem that leaves nothing more to read.
  [[noreturn]] void fail(const TextPlace& place, std::string message, std::string help = {});
  [[noreturn]] void fail(std::string message, std::string help = {});

 private:
  std::string file_;
  Diagnostics kept_;
  std::map<int, std::string> lines_;
  std::int64_t count_ = 0;
  std::optional<Position> first_left_out_;
};

/// A text without the blanks around it.
[[nodiscard]] std::string_view without_blanks(std::string_view text);

/// Parses a length in decimal digits, from 1 to 2^40.
[[nodiscard]] Parsed<std::int64_t> parse_length(std::string_view text);
/// Parses one of several numbers whose sum is a length: from 0 to 2^40.
[[nodiscard]] Parsed<std::int64_t> parse_part_of_length(std::string_view text);
/// Checks the range of a length that needs no parsing.
[[nodiscard]] Parsed<std::int64_t> checked_length(std::int64_t tokens);
/// Parses a step number in decimal digits, from 0.
[[nodiscard]] Parsed<std::int64_t> parse_step(std::string_view text);
/// Parses a finite number from 0, with or without a percent sign behind it, which does not change the number.
[[nodiscard]] Parsed<double> parse_share(std::string_view text);
/// Parses a finite number from 0.
[[nodiscard]] Parsed<double> parse_weight(std::string_view text);

}  // namespace hdpsim
