#include "sim/import/impl/shell_evaluation.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hdpsim {
namespace {

// Whether a character is in the brackets that begin a pattern; `size` becomes their length, 0 if they are not closed.
bool in_brackets(char c, std::string_view pattern, std::size_t& size) {
  const bool is_inverted = pattern.size() > 1 && (pattern[1] == '!' || pattern[1] == '^');
  const std::size_t first = is_inverted ? 2 : 1;
  const std::size_t end = pattern.find(']', first + 1);
  size = end == std::string_view::npos ? 0 : end + 1;
  bool is_in = false;
  for (std::size_t i = first; size > 0 && i < end; ++i) {
    if (i + 2 < end && pattern[i + 1] == '-') {
      is_in = is_in || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      is_in = is_in || pattern[i] == c;
    }
  }
  return is_in != is_inverted;
}

// The length of the part of a pattern that matches this character; 0 if none does.
std::size_t matched(char c, std::string_view pattern) {
  if (pattern.empty()) return 0;
  if (pattern.front() == '?') return 1;
  std::size_t size = 0;
  if (pattern.front() == '[') {
    const bool is_in = in_brackets(c, pattern, size);
    if (size > 0) return is_in ? size : 0;
  }
  return pattern.front() == c ? 1 : 0;
}

using Truth = std::optional<bool>;

constexpr int deepest_condition = 64;

// A variable without a value is empty to the shell; what a command prints may be anything.
bool is_known(const ShellText& word) {
  return !word.is_not_computed();
}

std::optional<std::int64_t> number(const ShellText& word) {
  std::int64_t value = 0;
  const char* end_of_text = word.text.data() + word.text.size();
  const auto [end, error] = std::from_chars(word.text.data(), end_of_text, value);
  return error == std::errc{} && end == end_of_text ? std::optional(value) : std::nullopt;
}

Truth compared(std::string_view sign, std::int64_t left, std::int64_t right) {
  if (sign == "-eq") return left == right;
  if (sign == "-ne") return left != right;
  if (sign == "-gt") return left > right;
  if (sign == "-ge") return left >= right;
  if (sign == "-lt") return left < right;
  if (sign == "-le") return left <= right;
  return std::nullopt;
}

Truth both(const ShellText& left, std::string_view sign, const ShellText& right) {
  if (!is_known(left) || !is_known(right)) return std::nullopt;
  const bool is_pattern = right.text.find_first_of("*?[") != std::string::npos;
  if (sign == "=" || sign == "==" || sign == "!=") {
    if (is_pattern && right.text != left.text) return matches_pattern(left.text, right.text) == (sign != "!=");
    return (left.text == right.text) == (sign != "!=");
  }
  const auto a = number(left);
  const auto b = number(right);
  return a && b ? compared(sign, *a, *b) : std::nullopt;
}

class Condition {
 public:
  explicit Condition(const std::vector<ShellText>& words) : words_(words) {}

  Truth value() {
    const Truth result = any();
    return at_ == words_.size() ? result : std::nullopt;
  }

 private:
  [[nodiscard]] std::string_view word(std::size_t ahead = 0) const {
    return at_ + ahead < words_.size() ? std::string_view(words_[at_ + ahead].text) : std::string_view();
  }
  [[nodiscard]] std::size_t left() const { return words_.size() - at_; }

  Truth any() {
    Truth result = all();
    while (word() == "||" || word() == "-o") {
      ++at_;
      const Truth other = all();
      if (result == true || other == true) {
        result = true;
      } else if (!other) {
        result = std::nullopt;
      }
    }
    return result;
  }

  Truth all() {
    Truth result = one();
    while (word() == "&&" || word() == "-a") {
      ++at_;
      const Truth other = one();
      if (result == false || other == false) {
        result = false;
      } else if (!other) {
        result = std::nullopt;
      }
    }
    return result;
  }

  Truth one() {
    if (left() == 0 || ++depth_ > deepest_condition) return std::nullopt;
    const Truth result = primary();
    --depth_;
    return result;
  }

  Truth primary() {
    if (word() == "!") {
      ++at_;
      const Truth inner = one();
      return inner ? Truth(!*inner) : inner;
    }
    if (word() == "(") {
      ++at_;
      const Truth inner = any();
      if (word() != ")") return std::nullopt;
      ++at_;
      return inner;
    }
    const bool tests_one = left() >= 2 && word().size() == 2 && word().front() == '-' && !is_comparison(word(1));
    if (tests_one) return unary();
    if (left() >= 3 && is_comparison(word(1))) {
      at_ += 3;
      return both(words_[at_ - 3], words_[at_ - 2].text, words_[at_ - 1]);
    }
    ++at_;
    const ShellText& alone = words_[at_ - 1];
    return is_known(alone) ? Truth(!alone.text.empty()) : std::nullopt;
  }

  Truth unary() {
    at_ += 2;
    const ShellText& tested = words_[at_ - 1];
    const std::string& sign = words_[at_ - 2].text;
    if (!is_known(tested)) return std::nullopt;
    if (sign == "-z") return tested.text.empty();
    if (sign == "-n") return !tested.text.empty();
    return std::nullopt;
  }

  static bool is_comparison(std::string_view word) {
    return word == "=" || word == "==" || word == "!=" || word == "=~" || word == "-eq" || word == "-ne" ||
           word == "-gt" || word == "-ge" || word == "-lt" || word == "-le" || word == "<" || word == ">";
  }

  const std::vector<ShellText>& words_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

// Goes back to the last star, which then matches one character more.
bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::size_t star = std::string_view::npos;
  std::size_t behind_star = 0;
  while (at < text.size()) {
    const std::size_t size = matched(text[at], pattern.substr(in_pattern));
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      behind_star = at;
    } else if (size > 0) {
      in_pattern += size;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++behind_star;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

std::optional<bool> shell_condition(const std::vector<ShellText>& words) {
  return Condition(words).value();
}

}  // namespace hdpsim
