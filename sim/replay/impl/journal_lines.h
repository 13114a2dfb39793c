#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// A line of steps.sums: the checksum of a row.
inline constexpr std::int64_t sum_bytes = 17;
[[nodiscard]] inline std::string sum_line(std::uint64_t sum) {
  return fmt::format("{:016x}\n", sum);
}

/// Reads the lines of a file that have a line end, byte by byte.
class CompleteLines {
 public:
  explicit CompleteLines(const std::filesystem::path& path) : path_(path) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) file_.open(path, std::ios::binary);
  }

  bool next(std::string& line) {
    if (!std::getline(file_, line) || file_.eof()) return false;
    read_ += line.size() + 1;
    ++line_;
    return true;
  }
  /// The number of bytes read so far.
  [[nodiscard]] std::uintmax_t read() const { return read_; }
  /// A problem at the line that was read last, or `behind` lines after it.
  [[nodiscard]] Diagnostic problem(std::string message, int behind = 0) const {
    return {{path_.string(), line_ + behind, 1}, std::move(message), {}};
  }

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::uintmax_t read_ = 0;
  int line_ = 0;
};

/// The checksums of rows, which follow the first line of a file.
class Sums {
 public:
  explicit Sums(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return;
    file_.open(path, std::ios::binary);
    std::string header;
    if (!std::getline(file_, header) || file_.eof()) return;
    begin_ = static_cast<std::int64_t>(header.size()) + 1;
    rows_ = (static_cast<std::int64_t>(std::filesystem::file_size(path, error)) - begin_) / sum_bytes;
  }

  [[nodiscard]] std::int64_t rows() const { return rows_; }

  bool is_of(std::int64_t row, std::uint64_t sum) {
    if (row >= rows_) return false;
    if (row != held_ && row != held_ + 1) file_.seekg(begin_ + row * sum_bytes);
    if (row != held_) file_.read(text_.data(), sum_bytes);
    held_ = row;
    return text_ == sum_line(sum);
  }

 private:
  std::ifstream file_;
  std::int64_t begin_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t held_ = -1;  // row whose checksum was read last
  std::string text_ = std::string(sum_bytes, ' ');
};

}  // namespace hdpsim
