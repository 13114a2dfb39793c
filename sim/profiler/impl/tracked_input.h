#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/document/input_file.h"
#include "sim/profiler/profiler_readers.h"

namespace hdpsim {

/// The bytes of a file one after another, with the place of the current one.
class TrackedInput {
 public:
  TrackedInput(const std::filesystem::path& path, const ReportShare& report);

  /// The next byte; end() afterwards is true if there was none. InputError, with line and column, for damaged
  /// compression, and for text in which no value ends for longest_line bytes (limits.h).
  [[nodiscard]] char current() const { return buffer_[at_]; }
  [[nodiscard]] bool ended() const { return at_ == filled_; }
  void advance();
  /// Says that a value has begun or ended: what comes may be as long again.
  void value_found() { since_value_ = 0; }
  [[nodiscard]] Position position() const { return {file_.name(), line_, column_}; }

 private:
  void refill();

  InputFile file_;
  const ReportShare& report_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  std::size_t since_value_ = 0;
  int line_ = 1;
  int column_ = 1;
};

/// An input iterator over a TrackedInput, as a JSON parser takes it.
class TrackedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit TrackedIterator(TrackedInput* input = nullptr) : input_(input) {}
  char operator*() const { return input_->current(); }
  TrackedIterator& operator++() {
    input_->advance();
    return *this;
  }
  /// Only the comparison with the end is asked for.
  friend bool operator==(const TrackedIterator& a, const TrackedIterator& b) { return a.at_end() == b.at_end(); }

 private:
  [[nodiscard]] bool at_end() const { return input_ == nullptr || input_->ended(); }

  TrackedInput* input_;
};

}  // namespace hdpsim
