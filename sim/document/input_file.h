#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sim/document/compression.h"

namespace hdpsim {

/// What may stand around the fields of a line.
inline constexpr std::string_view blanks = " \t";

/// Bytes of the byte order mark of UTF-8 that programs for spreadsheets put before a text: 0 without it.
[[nodiscard]] inline std::size_t mark_bytes(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? mark.size() : 0;
}

/// A file that is being read; one whose name says that it is compressed (compression.h) is decompressed on the way.
/// InputError if no file has this name or its compression is damaged or not read, MachineError if it cannot be read.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);

  /// Reads up to the size of `buffer` and returns the number of bytes; fewer mean the end of the file.
  std::size_t read(std::span<unsigned char> buffer);
  /// Neither is possible in a compressed file (checked).
  void seek(std::int64_t offset);
  [[nodiscard]] std::int64_t size();
  /// The share of the file that has been read, from 0 to 1, of a compressed one in its stored bytes.
  [[nodiscard]] double share_read() const;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  [[noreturn]] void refused() const;

  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
  double stored_bytes_ = 0;
  std::unique_ptr<Decompressor> compressed_;  // null for a plain file; reads file_
};

/// The lines of a text file without their ends (LF or CR LF) and without a byte order mark.
class LineReader {
 public:
  /// InputError for a text in UTF-16.
  explicit LineReader(const std::filesystem::path& path);

  /// Reads the next line; false at the end of the file. InputError for a line above longest_line (limits.h), and for a
  /// text whose lines end with CR alone.
  bool next();
  /// The same, but skips lines that are blank and, unless `comment` is '\0', lines whose first other character is
  /// `comment`. InputError above most_empty_lines of these.
  bool next_filled(char comment);
  /// The current line, until next() is called again.
  [[nodiscard]] std::string_view text() const { return line_; }
  /// The number of the current line, from 1 to what an int holds.
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] const std::string& file_name() const { return file_.name(); }
  [[nodiscard]] double share_read() const { return file_.share_read(); }

 private:
  bool refill();

  InputFile file_;
  std::string buffer_;
  std::size_t at_ = 0;  // first byte of buffer_ that belongs to no line yet
  std::string_view line_;
  int number_ = 0;
  int empty_ = 0;  // lines that next_filled() has skipped
};

/// The little-endian number in `bytes`, of which there are at most 8.
[[nodiscard]] std::uint64_t little_endian(std::span<const unsigned char> bytes);

}  // namespace hdpsim
