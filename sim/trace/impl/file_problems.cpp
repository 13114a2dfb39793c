#include "sim/trace/impl/file_problems.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/real_number.h"
#include "sim/document/input_file.h"
#include "sim/document/limits.h"
#include "sim/trace/length_distribution.h"

namespace hdpsim {
namespace {

constexpr std::int64_t most_kept = 20;
// Diagnostics finds a line by counting line ends. Beyond this many, the text that holds them would outgrow what a
// streaming reader may keep, and the problem is reported without its line.
constexpr int last_line_shown = 1'000'000;
constexpr std::size_t longest_shown = 1 << 16;  // bytes of a line: a longer one is not shown either

constexpr const char* length_help = "a length is a whole number of tokens from 1 to 2^40";

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A suggestion of the whole number that the text may mean.
std::string whole_number_help(std::string_view text, const char* otherwise) {
  const Parsed<std::int64_t> count = parse_count(text);
  if (count.value && *count.value > 0) return fmt::format("write {}", *count.value);
  return otherwise;
}

bool only_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

void FileProblems::add(const TextPlace& place, std::string message, std::string help) {
  ++count_;
  Position position{file_, place.line, place.column};
  if (count_ > most_kept) {
    if (!first_left_out_) first_left_out_ = std::move(position);
  } else {
    kept_.error(std::move(position), std::move(message), std::move(help));
  }
  const bool is_shown = count_ <= most_kept + 1 && place.line > 0 && place.line_text.size() <= longest_shown;
  if (is_shown) lines_.emplace(place.line, place.line_text);
  if (count_ >= most_problems) throw_if_any();
}

void FileProblems::add(std::string message, std::string help) {
  add(TextPlace{}, std::move(message), std::move(help));
}

void FileProblems::throw_if_any() const {
  if (empty()) return;
  Diagnostics all = kept_;
  if (first_left_out_) {
    const std::int64_t more = count_ - most_kept;
    all.error(*first_left_out_,
              fmt::format("and {}{} more problem{}{}", count_ < most_problems ? "" : "at least ", more,
                          more == 1 ? "" : "s", first_left_out_->line > 0 ? " from here on" : ""));
  }
  std::string source;
  int at = 1;
  for (const auto& [line, text] : lines_) {
    if (line > last_line_shown) break;
    source.append(static_cast<std::size_t>(line - at), '\n');
    source += text;
    at = line;
  }
  if (!source.empty()) all.add_source(file_, std::move(source));
  all.throw_if_any();
}

void FileProblems::fail(const TextPlace& place, std::string message, std::string help) {
  add(place, std::move(message), std::move(help));
  throw_if_any();
  throw CheckFailure("a problem was added and is not there");
}

void FileProblems::fail(std::string message, std::string help) {
  fail(TextPlace{}, std::move(message), std::move(help));
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

Parsed<std::int64_t> checked_length(std::int64_t tokens) {
  if (tokens < 0) return {{}, fmt::format("the length {} is negative", tokens), length_help};
  if (tokens == 0) return {{}, "the length is 0", length_help};
  if (tokens > longest_length) return {{}, fmt::format("the length {} is above 2^40 tokens", tokens), length_help};
  return {tokens, {}, {}};
}

Parsed<std::int64_t> parse_length(std::string_view text) {
  if (const auto whole = whole_number(text)) return checked_length(*whole);
  if (text.empty()) return {{}, "the length is missing", length_help};
  if (only_digits(text)) return {{}, fmt::format("the length {} is above 2^40 tokens", text), length_help};
  return {{}, fmt::format("the length \"{}\" is not a whole number", text), whole_number_help(text, length_help)};
}

Parsed<std::int64_t> parse_part_of_length(std::string_view text) {
  const auto whole = whole_number(text);
  return whole == 0 ? Parsed<std::int64_t>{0, {}, {}} : parse_length(text);
}

Parsed<std::int64_t> parse_step(std::string_view text) {
  constexpr const char* help = "a step is a whole number from 0";
  const auto whole = whole_number(text);
  if (whole && *whole >= 0) return {*whole, {}, {}};
  if (whole) return {{}, fmt::format("the step {} is negative", *whole), help};
  if (text.empty()) return {{}, "the step is missing", help};
  return {{}, fmt::format("the step \"{}\" is not a whole number within 64 bits", text), whole_number_help(text, help)};
}

Parsed<double> parse_share(std::string_view text) {
  if (!text.ends_with('%')) return parse_weight(text);
  const std::string_view number = text.substr(0, text.size() - 1);
  return parse_weight(number.substr(0, number.find_last_not_of(' ') + 1));
}

Parsed<double> parse_weight(std::string_view text) {
  double value = 0;
  const auto [end, error] = read_real_number(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  if (is_number && std::isfinite(value) && value >= 0) return {value, {}, {}};
  if (is_number) return {{}, fmt::format("{} is not a number from 0", text), {}};
  return {{}, fmt::format("\"{}\" is not a number", text), {}};
}

}  // namespace hdpsim
