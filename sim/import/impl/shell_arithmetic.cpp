#include "sim/import/impl/shell_evaluation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>

namespace hdpsim {
namespace {

using Number = std::optional<std::int64_t>;
using ValueOf = std::function<std::optional<std::string>(const std::string&)>;

constexpr int deepest_term = 64;
constexpr int most_terms = 10'000;  // the value of a name may be a sum of names

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

Number quotient(char sign, std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == std::numeric_limits<std::int64_t>::min() && b == -1)) return std::nullopt;
  return sign == '/' ? a / b : a % b;
}

Number power(std::int64_t base, std::int64_t exponent) {
  constexpr std::int64_t most = 63;  // a power of 2 beyond it has no room
  if (exponent < 0 || (exponent > most && base != 0 && base != 1)) return std::nullopt;
  Number result = 1;
  for (std::int64_t i = 0; i < std::min(exponent, most) && result; ++i) result = multiplied(*result, base);
  return result;
}

Number shifted(bool to_the_left, std::int64_t a, std::int64_t by) {
  constexpr std::int64_t bits = 63;
  if (a < 0 || by < 0 || by >= bits) return std::nullopt;
  return to_the_left ? multiplied(a, std::int64_t{1} << by) : Number(a >> by);
}

/// A sign between two terms; higher levels bind them first.
struct BinarySign {
  std::string_view sign;
  int level;
};

// A sign that begins with another one comes before it.
constexpr auto binary_signs = std::to_array<BinarySign>({{"||", 1},
                                                         {"&&", 2},
                                                         {"==", 6},
                                                         {"!=", 6},
                                                         {"<<", 8},
                                                         {">>", 8},
                                                         {"<=", 7},
                                                         {">=", 7},
                                                         {"**", 11},
                                                         {"|", 3},
                                                         {"^", 4},
                                                         {"&", 5},
                                                         {"<", 7},
                                                         {">", 7},
                                                         {"+", 9},
                                                         {"-", 9},
                                                         {"*", 10},
                                                         {"/", 10},
                                                         {"%", 10}});

Number order_of(std::string_view sign, std::int64_t a, std::int64_t b) {
  if (sign == "==") return a == b ? 1 : 0;
  if (sign == "!=") return a != b ? 1 : 0;
  if (sign == "<=") return a <= b ? 1 : 0;
  if (sign == ">=") return a >= b ? 1 : 0;
  if (sign == "<") return a < b ? 1 : 0;
  return a > b ? 1 : 0;
}

Number applied(std::string_view sign, std::int64_t a, std::int64_t b) {
  if (sign == "||") return a != 0 || b != 0 ? 1 : 0;
  if (sign == "&&") return a != 0 && b != 0 ? 1 : 0;
  if (sign == "|") return a | b;
  if (sign == "^") return a ^ b;
  if (sign == "&") return a & b;
  if (sign == "+") return added(a, b);
  if (sign == "-") return b == std::numeric_limits<std::int64_t>::min() ? std::nullopt : added(a, -b);
  if (sign == "*") return multiplied(a, b);
  if (sign == "**") return power(a, b);
  if (sign == "/" || sign == "%") return quotient(sign.front(), a, b);
  if (sign == "<<" || sign == ">>") return shifted(sign == "<<", a, b);
  return order_of(sign, a, b);
}

// The sign of an assignment with which text begins, such as `=` and `<<=`; empty if it does not.
std::string_view assignment_sign(std::string_view text) {
  std::string_view sign = text.substr(0, text.starts_with("<<") || text.starts_with(">>") ? 2 : 0);
  const char next = text.size() > sign.size() ? text[sign.size()] : '\0';
  if (sign.empty() && next != '\0' && std::string_view("+-*/%&|^").find(next) != std::string_view::npos) {
    sign = text.substr(0, 1);
  }
  const std::string_view behind = text.substr(sign.size());
  return behind.starts_with('=') && !behind.starts_with("==") ? text.substr(0, sign.size() + 1) : std::string_view();
}

class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ValueOf& value_of, ShellSum& sum, int depth = 0)
      : text_(text), value_of_(value_of), sum_(sum), depth_(depth) {}

  Number value() {
    Number result = expression();
    while (next() == ',') {
      ++at_;
      result = expression();
    }
    return next() == '\0' ? result : std::nullopt;
  }

 private:
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool takes(std::string_view sign) {
    if (next() == '\0' || !text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }

  Number expression() {
    if (++depth_ > deepest_term) return std::nullopt;
    const Number result = choice();
    --depth_;
    return result;
  }

  Number choice() {
    const Number condition = chain(1);
    if (!condition || next() != '?') return condition;
    ++at_;
    const Number yes = expression();
    if (!yes || !takes(":")) return std::nullopt;
    const Number no = expression();
    return no ? (*condition != 0 ? yes : no) : std::nullopt;
  }

  // Terms joined by signs of this level or a higher one.
  Number chain(int level) {
    Number left = term();
    while (left) {
      const BinarySign* sign = sign_here();
      if (sign == nullptr || sign->level < level) break;
      at_ += sign->sign.size();
      const Number right = chain(sign->level + 1);
      left = right ? applied(sign->sign, *left, *right) : std::nullopt;
    }
    return left;
  }

  const BinarySign* sign_here() {
    if (next() == '\0') return nullptr;
    const std::string_view rest = text_.substr(at_);
    const auto found = std::find_if(binary_signs.begin(), binary_signs.end(),
                                    [&](const BinarySign& each) { return rest.starts_with(each.sign); });
    return found == binary_signs.end() ? nullptr : &*found;
  }

  Number term() {
    if (++depth_ > deepest_term || ++sum_.terms > most_terms) return std::nullopt;
    const Number result = unary();
    --depth_;
    return result;
  }

  Number unary() {
    if (takes("++")) return stepped(name(), 1);
    if (takes("--")) return stepped(name(), -1);
    if (takes("-")) {
      const Number inner = term();
      return inner ? multiplied(*inner, -1) : inner;
    }
    if (takes("+")) return term();
    if (takes("!")) {
      const Number inner = term();
      return inner ? Number(*inner == 0 ? 1 : 0) : inner;
    }
    if (!takes("(")) return atom();
    const Number inner = expression();
    return takes(")") ? inner : std::nullopt;
  }

  std::string name() {
    (void)next();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  Number atom() {
    const std::string word = name();
    if (word.empty()) return std::nullopt;
    if (word.front() >= '0' && word.front() <= '9') return whole(word);
    if (takes("++")) return before_step(word, 1);
    if (takes("--")) return before_step(word, -1);
    (void)next();
    const std::string_view sign = assignment_sign(text_.substr(std::min(at_, text_.size())));
    if (sign.empty()) return value_named(word);
    at_ += sign.size();
    Number value = expression();
    if (value && sign.size() > 1) {
      const Number old = value_named(word);
      value = old ? applied(sign.substr(0, sign.size() - 1), *old, *value) : std::nullopt;
    }
    if (value) sum_.assigned[word] = *value;
    return value;
  }

  Number stepped(const std::string& word, std::int64_t by) {
    const Number old = word.empty() ? std::nullopt : value_named(word);
    const Number value = old ? added(*old, by) : std::nullopt;
    if (value) sum_.assigned[word] = *value;
    return value;
  }

  Number before_step(const std::string& word, std::int64_t by) {
    const Number old = value_named(word);
    return stepped(word, by) ? old : std::nullopt;
  }

  Number value_named(const std::string& word) {
    if (const auto found = sum_.assigned.find(word); found != sum_.assigned.end()) return found->second;
    const auto text = value_of_(word);
    return text ? Arithmetic(*text, value_of_, sum_, depth_).value() : std::nullopt;
  }

  std::string_view text_;
  const ValueOf& value_of_;
  ShellSum& sum_;  // of all expressions together
  int depth_;
  std::size_t at_ = 0;
};

// Whether text begins with `=`, `+=`, `<<=`, `++` and the like, and not with a comparison.
bool begins_assignment(std::string_view text) {
  return text.starts_with("++") || text.starts_with("--") || !assignment_sign(text).empty();
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
    if (!is_number && (is_stepped || begins_assignment(behind))) names.emplace_back(word);
    is_stepped = false;
    at = end;
  }
  return names;
}

ShellSum shell_arithmetic(std::string_view text, const ValueOf& value_of) {
  ShellSum sum;
  sum.value = Arithmetic(text, value_of, sum).value();
  return sum;
}

}  // namespace hdpsim
