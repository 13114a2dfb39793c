#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hdpsim {

/// A file that is being read. InputError if there is none of this name, MachineError if it cannot be read.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);

  /// As much as there is, up to the size of `buffer`; less means the end of the file.
  std::size_t read(std::span<unsigned char> buffer);
  void seek(std::int64_t offset);
  [[nodiscard]] std::int64_t size();
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  [[noreturn]] void refused() const;

  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// The lines of a text file without their ends (LF or CR LF) and without a byte order mark.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path);

  /// Reads the next line; false at the end of the file. InputError for a line above longest_line (limits.h).
  bool next();
  /// The same without lines that are empty but for blanks or, unless it is '\0', begin with `comment` behind them.
  /// InputError above most_empty_lines of these.
  bool next_filled(char comment);
  /// The current line, until next() is called again.
  [[nodiscard]] std::string_view text() const { return line_; }
  /// Its number, from 1 to what an int holds.
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] const std::string& file_name() const { return file_.name(); }

 private:
  bool refill();

  InputFile file_;
  std::string buffer_;
  std::size_t at_ = 0;  // first byte of buffer_ that no line has had
  std::string_view line_;
  int number_ = 0;
  int empty_ = 0;  // of those that next_filled() has left out
};

/// The number of `bytes` in order of rising significance; at most 8 of them.
[[nodiscard]] std::uint64_t little_endian(std::span<const unsigned char> bytes);

}  // namespace hdpsim
