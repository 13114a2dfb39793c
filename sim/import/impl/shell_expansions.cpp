#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/document/limits.h"
#include "sim/import/impl/shell_text.h"
#include "sim/import/impl/shell_words.h"

namespace hdpsim {
namespace {

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

ShellUnknown not_set(const std::string& name, std::uint32_t place) {
  ShellUnknown unknown{.what = "$" + name, .kind = ShellUnknown::Kind::not_set};
  unknown.place = place;
  return unknown;
}

}  // namespace

std::string ShellWords::name_here() {
  std::string name;
  while (begins_name(peek()) || (!name.empty() && is_digit(peek()))) {
    name += peek();
    advance();
  }
  return name;
}

void ShellWords::dollar(ShellFields& fields, Mode mode) {
  const std::uint32_t begin = place();
  dollar_ = begin;
  advance();
  if (starts_with("((")) return arithmetic(fields);
  if (peek() == '(') return substitution(fields);
  if (peek() == '{') return braces(fields, mode);
  if (peek() == '\'' && mode != Mode::quoted) return single_quoted(fields);
  if (begins_name(peek())) {
    const std::string name = name_here();
    return expand(fields, name, mode, false);
  }
  if (is_digit(peek()) || (peek() != '\0' && std::string_view("@*#?$!-").find(peek()) != std::string_view::npos)) {
    argument(fields, mode, peek());
    return advance();
  }
  fields.add('$', begin);
}

// `$(expr 8 / $N)` is a sum as in `$((8 / N))`. False if the command is another one.
bool ShellWords::sum_of_expr(ShellFields& fields, std::size_t begin, std::size_t end) {
  constexpr std::string_view called = "$(expr ";
  constexpr std::string_view signs = "+-*/%()\\ ";
  const std::string_view command = std::string_view(text()).substr(begin, end - begin);
  if (muted || !command.starts_with(called)) return false;
  const std::string_view sum = command.substr(called.size(), command.size() - called.size() - 1);
  const bool is_sum = std::all_of(sum.begin(), sum.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '$' || signs.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (!is_sum) return false;
  ShellText expression;
  for (const char c : sum) {
    if (c != '\\' && c != '$') expression.add(c, place_of(begin));
  }
  const auto value = evaluated(expression, place_of(begin));
  if (!value) return false;
  for (const char digit : std::to_string(*value)) fields.add(digit, place_of(begin));
  return true;
}

// `$1`, `$@`, `$#`, and `$?` and the like, which no script states.
void ShellWords::argument(ShellFields& fields, Mode mode, char name) {
  if (muted) return;
  if (name == '@' || name == '*') return expand_items(fields, variables.all_arguments(), mode);
  if (name == '#') {
    const ShellText count = ShellText::of(std::to_string(variables.arguments.size()));
    return expand_items(fields, {count}, mode);
  }
  if (!is_digit(name) || name == '0') return fields.add_unknown({.what = fmt::format("${}", name)});
  expand(fields, std::string(1, name), mode, false);
}

// The items of a variable, or of an argument; null if it has none.
const std::vector<ShellText>* ShellWords::items_of(const std::string& name) const {
  if (!name.empty() && is_digit(name.front())) {
    const std::size_t number = name.size() <= 2 ? std::stoul(name) : 0;
    const bool is_given = number > 0 && number <= variables.arguments.size();
    return is_given ? &variables.arguments[number - 1].items : nullptr;
  }
  const ShellVariable* found = variables.find(name);
  return found == nullptr ? nullptr : &found->items;
}

bool ShellWords::is_set(const std::string& name, bool counts_empty) const {
  const auto* items = items_of(name);
  if (items == nullptr) return false;
  const auto is_given = [](const ShellText& each) { return !each.text.empty() || each.is_not_computed(); };
  if (std::any_of(items->begin(), items->end(), is_given)) return true;
  const bool is_unknown = std::any_of(items->begin(), items->end(), [](const auto& each) { return !each.is_known(); });
  return !counts_empty && !is_unknown;
}

void ShellWords::expand(ShellFields& fields, const std::string& name, Mode mode, bool all_items) {
  if (muted) return;
  const auto* items = items_of(name);
  if (items == nullptr) return fields.add_unknown(not_set(name, dollar_));
  const std::size_t count = all_items ? items->size() : std::min<std::size_t>(items->size(), 1);
  std::vector<ShellText> held(items->begin(), items->begin() + static_cast<std::ptrdiff_t>(count));
  for (ShellText& item : held) {
    for (ShellUnknown& unknown : item.unknowns) {
      if (unknown.holder.empty()) unknown.holder = name;
      if (unknown.place == ShellText::nowhere) unknown.place = dollar_;
    }
  }
  expand_items(fields, held, mode);
}

// The number of `[3]`, which is read; empty, and nothing read, if there is none.
std::optional<std::size_t> ShellWords::index_here() {
  constexpr std::size_t most_digits = 4;
  std::size_t digits = 0;
  while (peek() == '[' && digits < most_digits && is_digit(peek(1 + digits))) ++digits;
  if (digits == 0 || peek(1 + digits) != ']') return std::nullopt;
  const std::size_t index = std::stoul(std::string(rest().substr(1, digits)));
  advance(digits + 2);
  return index;
}

void ShellWords::expand_item(ShellFields& fields, const std::string& name, Mode mode, std::size_t index) {
  if (muted) return;
  const auto* items = items_of(name);
  if (items == nullptr || index >= items->size()) return fields.add_unknown(not_set(name, dollar_));
  expand_items(fields, {(*items)[index]}, mode);
}

void ShellWords::expand_items(ShellFields& fields, const std::vector<ShellText>& items, Mode mode) {
  if (mode == Mode::quoted && !items.empty()) fields.add_quotes();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!spend(items[i].text.size())) return;
    if (i > 0 && mode == Mode::whole) fields.add(' ', items[i].begin);
    if (i > 0 && mode != Mode::whole) fields.end_field();
    if (mode == Mode::split) {
      fields.add_split(items[i]);
    } else {
      fields.add(items[i]);
    }
  }
}

void ShellWords::braces(ShellFields& fields, Mode mode) {
  const std::size_t begin = at_ - 1;
  advance();
  std::string name = name_here();
  for (; name.empty() || is_digit(name.front()); advance()) {  // ${1}, ${10:-default}
    if (!is_digit(peek())) break;
    name += peek();
  }
  const bool all_items = starts_with("[@]") || starts_with("[*]");
  if (all_items) advance(3);
  const auto index = all_items || name.empty() ? std::nullopt : index_here();
  const char sign = peek(peek() == ':' ? 1 : 0);
  if (index && peek() == '}') {
    expand_item(fields, name, mode, *index);
  } else if (!name.empty() && peek() == '}') {
    expand(fields, name, mode, all_items);
  } else if (!name.empty() && sign != '\0' && std::string_view("-=+?").find(sign) != std::string_view::npos) {
    use_default(fields, name, mode);
  } else if (name.empty() && (starts_with("@}") || starts_with("*}") || starts_with("#}"))) {
    argument(fields, mode, peek());
    advance();
  } else {
    not_expanded(fields, mode, begin);
  }
  if (peek() == '}') return advance();
  give_up(place_of(begin), "an expansion without an end: } is missing");
}

// `${X%.*}` and the like.
void ShellWords::not_expanded(ShellFields& fields, Mode mode, std::size_t begin) {
  const bool was_muted = std::exchange(muted, true);
  ShellFields dropped(place());
  operand(dropped, mode);
  muted = was_muted;
  add_not_computed(fields, begin, at_ + 1);
}

// `-` and `=`: the text if the variable is not set; `+`: if it is; `?`: an error if it is not. With a colon an
// empty variable counts as one that is not set.
void ShellWords::use_default(ShellFields& fields, const std::string& name, Mode mode) {
  const bool counts_empty = peek() == ':';
  if (counts_empty) advance();
  const char kind = peek();
  advance();
  const bool has = is_set(name, counts_empty);
  ShellFields other(place());
  const bool takes = kind == '+' ? has : !has && kind != '?';
  const bool was_muted = std::exchange(muted, muted || !takes);
  operand(other, mode == Mode::quoted ? Mode::quoted : Mode::whole);
  muted = was_muted;
  if (muted) return;
  const ShellText text = other.take_whole();
  if (kind == '+') {
    if (takes) fields.add(text);
    return;
  }
  if (has) return expand(fields, name, mode, false);
  if (kind == '?') return fields.add_unknown(not_set(name, dollar_));
  defaults_.emplace(name, text.text.empty() ? text.unset() : text.text);
  if (mode == Mode::split) {
    fields.add_split(text);
  } else {
    fields.add(text);
  }
  if (kind == '=') assign(name, {text}, Assignment::replace);
}

// The text in braces behind an operator, up to the brace that ends it.
void ShellWords::operand(ShellFields& fields, Mode mode) {
  if (++depth_ > deepest_level) return give_up(place_of(at_ > 0 ? at_ - 1 : 0), "expansions are nested too deeply");
  while (!at_end() && peek() != '}') {
    if (is_shell_blank(peek()) || (mode == Mode::quoted && peek() == '\'')) {
      fields.add(peek(), place());
      advance();
    } else {
      part(fields, mode);
    }
  }
  --depth_;
}

}  // namespace hdpsim
