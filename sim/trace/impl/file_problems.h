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

/// A place in a text file, with the line that it is in.
struct TextPlace {
  std::string_view line_text;
  int line = 0;
  int column = 0;
};

/// The problems of one file that is streamed: keeps the first 20 with their lines, and counts the others. The last of
/// most_problems (limits.h) ends the reading: add() throws what was collected.
class FileProblems {
 public:
  explicit FileProblems(std::string file) : file_(std::move(file)) {}

  void add(const TextPlace& place, std::string message, std::string help = {});
  /// A problem of the file as a whole, or of a binary one.
  void add(std::string message, std::string help = {});

  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// InputError.
  void throw_if_any() const;
  /// add() and throw_if_any(), for what leaves nothing more to read.
  [[noreturn]] void fail(const TextPlace& place, std::string message, std::string help = {});
  [[noreturn]] void fail(std::string message, std::string help = {});

 private:
  std::string file_;
  Diagnostics kept_;
  std::map<int, std::string> lines_;
  std::int64_t count_ = 0;
  std::optional<Position> first_left_out_;
};

/// A length in decimal digits, from 1 to 2^40.
[[nodiscard]] Parsed<std::int64_t> parse_length(std::string_view text);
/// One of several numbers whose sum is a length: from 0 to 2^40.
[[nodiscard]] Parsed<std::int64_t> parse_part_of_length(std::string_view text);
/// The range of a length for a number that needs no parsing.
[[nodiscard]] Parsed<std::int64_t> checked_length(std::int64_t tokens);
/// A step number in decimal digits, from 0.
[[nodiscard]] Parsed<std::int64_t> parse_step(std::string_view text);
/// A finite number from 0.
[[nodiscard]] Parsed<double> parse_weight(std::string_view text);

}  // namespace hdpsim
