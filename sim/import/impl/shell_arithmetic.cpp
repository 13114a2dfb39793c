#include "sim/import/impl/shell_arithmetic.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace hdpsim {
namespace {

using Number = std::optional<std::int64_t>;
using ValueOf = std::function<std::optional<std::string>(const std::string&)>;

constexpr int deepest_term = 32;
constexpr int most_terms = 10'000;  // names may stand for sums of names

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

// A number with a leading zero is octal in a shell; such numbers are not read.
Number whole(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? Number(value) : std::nullopt;
}

Number added(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::nullopt : Number(result);
}

Number multiplied(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt : Number(result);
}

Number applied(char sign, std::int64_t a, std::int64_t b) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  if (sign == '+') return added(a, b);
  if (sign == '*') return multiplied(a, b);
  if (sign == '-') return b == least ? std::nullopt : added(a, -b);
  if (b == 0 || (a == least && b == -1)) return std::nullopt;
  return sign == '/' ? a / b : a % b;
}

class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ValueOf& value_of, int& terms, int depth = 0)
      : text_(text), value_of_(value_of), terms_(terms), depth_(depth) {}

  Number value() {
    const Number result = sum();
    return next() == '\0' ? result : std::nullopt;
  }

 private:
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Number sum() {
    return chain("+-", [this] { return chain("*/%", [this] { return factor(); }); });
  }

  template <class Part>
  Number chain(std::string_view signs, const Part& part) {
    Number left = part();
    while (left && next() != '\0' && signs.find(next()) != std::string_view::npos) {
      const char sign = text_[at_++];
      const Number right = part();
      left = right ? applied(sign, *left, *right) : std::nullopt;
    }
    return left;
  }

  Number factor() {
    if (++depth_ > deepest_term || ++terms_ > most_terms) return std::nullopt;
    const Number result = atom();
    --depth_;
    return result;
  }

  Number atom() {
    if (next() == '(') {
      ++at_;
      const Number inner = sum();
      if (next() != ')') return std::nullopt;
      ++at_;
      return inner;
    }
    if (next() == '-') {
      ++at_;
      const Number inner = factor();
      return inner ? multiplied(*inner, -1) : std::nullopt;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return std::nullopt;
    if (word.front() >= '0' && word.front() <= '9') return whole(word);
    const auto text = value_of_(std::string(word));
    return text ? Arithmetic(*text, value_of_, terms_, depth_).value() : std::nullopt;
  }

  std::string_view text_;
  const ValueOf& value_of_;
  int& terms_;  // of all expressions together
  int depth_;
  std::size_t at_ = 0;
};

// Whether text begins with `=`, `+=`, `<<=`, `++` and the like, and not with a comparison.
bool begins_with_assignment(std::string_view text) {
  if (text.starts_with("++") || text.starts_with("--")) return true;
  if (text.starts_with("<<") || text.starts_with(">>")) text.remove_prefix(2);
  const bool has_sign = !text.empty() && std::string_view("+-*/%&|^").find(text.front()) != std::string_view::npos;
  if (has_sign) text.remove_prefix(1);
  return text.starts_with('=') && !text.starts_with("==");
}

}  // namespace

std::vector<std::string> names_set_by_arithmetic(std::string_view text) {
  std::vector<std::string> names;
  bool is_stepped = false;  // by a `++` or `--` before the name
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_name(text[end])) ++end;
    if (end == at) {
      is_stepped = text.substr(at).starts_with("++") || text.substr(at).starts_with("--");
      at += is_stepped ? 2 : 1;
      continue;
    }
    const std::string_view word = text.substr(at, end - at);
    const std::string_view behind = text.substr(std::min(text.find_first_not_of(" \t\n", end), text.size()));
    const bool is_number = word.front() >= '0' && word.front() <= '9';
    if (!is_number && (is_stepped || begins_with_assignment(behind))) names.emplace_back(word);
    is_stepped = false;
    at = end;
  }
  return names;
}

std::optional<std::int64_t> shell_arithmetic(std::string_view text, const ValueOf& value_of) {
  int terms = 0;
  return Arithmetic(text, value_of, terms).value();
}

}  // namespace hdpsim
