#include "sim/import/impl/shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/document/limits.h"
#include "sim/import/impl/shell_arithmetic.h"
#include "sim/import/impl/shell_fields.h"

namespace hdpsim {
namespace {

// The limit of all expansions together: variables that hold each other twice grow without end.
constexpr std::size_t most_expanded_bytes = 2 * largest_yaml_bytes;
constexpr std::size_t bytes_of_a_word = 64;
constexpr std::size_t shown_bytes = 40;

bool ends_word(char c) {
  return c == '\0' || is_shell_blank(c) || std::string_view(";&|()<>").find(c) != std::string_view::npos;
}

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

ShellWords::ShellWords(const std::string& text, Diagnostics& diagnostics, std::string file)
    : text_(text), diagnostics_(diagnostics), file_(std::move(file)) {}

char ShellWords::peek(std::size_t ahead) const {
  return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
}

bool ShellWords::starts_with(std::string_view begin) const {
  return rest().starts_with(begin);
}

void ShellWords::skip_blanks() {
  while (!at_end()) {
    if (starts_with("\\\n")) {
      advance(2);
    } else if (starts_with("\\\r\n")) {
      advance(3);
    } else if (is_shell_blank(peek()) && peek() != '\n') {
      advance();
    } else {
      break;
    }
  }
  if (peek() != '#') return;
  while (!at_end() && peek() != '\n') advance();
}

void ShellWords::give_up(std::uint32_t at, const std::string& message) {
  const auto lines = std::count(text_.begin(), text_.begin() + at, '\n');
  const std::size_t before = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
  const std::size_t line = before == std::string::npos ? 0 : before + 1;
  diagnostics_.error({file_, static_cast<int>(lines) + 1, static_cast<int>(at - line) + 1}, message);
  at_ = text_.size();
}

bool ShellWords::spend(std::size_t bytes, std::uint32_t at) {
  spent_ += bytes + bytes_of_a_word;
  if (spent_ <= most_expanded_bytes) return true;
  if (!at_end()) give_up(at, fmt::format("the variables expand to more than {} MB", most_expanded_bytes / 1'000'000));
  return false;
}

std::vector<ShellText> ShellWords::word() {
  ShellFields fields(offset());
  while (!at_end() && !ends_word(peek())) part(fields, Mode::split);
  return fields.take();
}

ShellText ShellWords::whole_word() {
  ShellFields fields(offset());
  while (!at_end() && !ends_word(peek())) part(fields, Mode::whole);
  return fields.take_whole();
}

std::vector<ShellText> ShellWords::list() {
  const std::uint32_t begin = offset();
  std::vector<ShellText> words;
  while (true) {
    skip_blanks();
    if (at_end()) {
      if (diagnostics_.empty()) give_up(begin - 1, "a list without an end: ')' is missing");
      return words;
    }
    if (peek() == ')') break;
    if (peek() == '\n' || ends_word(peek())) {
      advance();
      continue;
    }
    for (ShellText& each : word()) words.push_back(std::move(each));
  }
  advance();
  return words;
}

void ShellWords::part(ShellFields& fields, Mode mode) {
  switch (peek()) {
    case '\\':
      return escaped(fields, mode);
    case '\'':
      return single_quoted(fields);
    case '"':
      return double_quoted(fields, mode);
    case '$':
      return dollar(fields, mode);
    case '`':
      return backticks(fields);
    default:
      fields.add(peek(), offset());
      advance();
  }
}

void ShellWords::escaped(ShellFields& fields, Mode mode) {
  const std::size_t end_of_line = starts_with("\\\n") ? 2 : starts_with("\\\r\n") ? 3 : 0;
  if (end_of_line > 0) return advance(end_of_line);
  const bool is_kept = mode == Mode::quoted && std::string_view("$`\"\\").find(peek(1)) == std::string_view::npos;
  if (is_kept || at_ + 1 >= text_.size()) {
    fields.add('\\', offset());
    return advance();
  }
  advance();
  fields.add(peek(), offset());
  advance();
}

void ShellWords::single_quoted(ShellFields& fields) {
  const std::uint32_t begin = offset();
  fields.add_quotes();
  advance();
  while (!at_end() && peek() != '\'') {
    fields.add(peek(), offset());
    advance();
  }
  if (at_end()) return give_up(begin, "a text without an end: ' is missing");
  advance();
}

void ShellWords::double_quoted(ShellFields& fields, Mode mode) {
  const std::uint32_t begin = offset();
  const Mode inner = mode == Mode::whole ? Mode::whole : Mode::quoted;
  advance();
  if (peek() != '$') fields.add_quotes();  // "${LIST[@]}" may be no word at all
  while (!at_end() && peek() != '"') {
    if (peek() == '\\') {
      escaped(fields, Mode::quoted);
    } else if (peek() == '$') {
      dollar(fields, inner);
    } else if (peek() == '`') {
      backticks(fields);
    } else {
      fields.add(peek(), offset());
      advance();
    }
  }
  if (at_end()) {
    if (diagnostics_.empty()) give_up(begin, "a text without an end: \" is missing");
    return;
  }
  advance();
}

std::string ShellWords::name_here() {
  std::string name;
  while (begins_name(peek()) || (!name.empty() && is_digit(peek()))) {
    name += peek();
    advance();
  }
  return name;
}

void ShellWords::dollar(ShellFields& fields, Mode mode) {
  const std::uint32_t begin = offset();
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
    fields.add_unset(fmt::format("${}", peek()));
    return advance();
  }
  fields.add('$', begin);
}

bool ShellWords::is_set(const std::string& name, bool counts_empty) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return false;
  const auto& items = found->second.items;
  const bool is_empty =
      std::all_of(items.begin(), items.end(), [](const ShellText& each) { return each.text.empty(); });
  const bool is_unknown =
      std::any_of(items.begin(), items.end(), [](const ShellText& each) { return !each.unset.empty(); });
  return !is_empty || (!counts_empty && !is_unknown);
}

void ShellWords::expand(ShellFields& fields, const std::string& name, Mode mode, bool all_items) {
  if (muted) return;
  const auto found = variables_.find(name);
  if (found == variables_.end()) return fields.add_unset("$" + name);
  const auto& items = found->second.items;
  const std::size_t count = all_items ? items.size() : std::min<std::size_t>(items.size(), 1);
  if (mode == Mode::quoted && count > 0) fields.add_quotes();
  for (std::size_t i = 0; i < count; ++i) {
    if (!spend(items[i].text.size(), offset() - 1)) return;
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
  const std::uint32_t begin = offset() - 1;
  advance();
  const std::string name = name_here();
  const bool all_items = starts_with("[@]") || starts_with("[*]");
  if (all_items) advance(3);
  if (!name.empty() && peek() == '}') {
    advance();
    return expand(fields, name, mode, all_items);
  }
  const bool counts_empty = peek() == ':';
  const char kind = peek(counts_empty ? 1 : 0);
  if (!name.empty() && kind != '\0' && std::string_view("-=+?").find(kind) != std::string_view::npos) {
    advance(counts_empty ? 2 : 1);
    use_default(fields, name, kind, counts_empty, mode);
  } else if (name.empty() && is_digit(peek()) && (peek(1) == ':' || peek(1) == '-')) {  // ${1:-default}
    const std::string number(1, peek());
    const bool has_colon = peek(1) == ':';
    advance(has_colon ? 3 : 2);
    use_default(fields, number, '-', has_colon, mode);
  } else {
    const bool was_muted = std::exchange(muted, true);
    ShellFields dropped(begin);
    operand(dropped, mode);
    muted = was_muted;
    const std::size_t size = std::min<std::size_t>(at_ - begin + 1, shown_bytes);
    fields.add_unset(text_.substr(begin, size));
  }
  if (peek() == '}') return advance();
  if (diagnostics_.empty()) give_up(begin, "an expansion without an end: } is missing");
}

// `-` and `=`: what stands there if the variable is not set; `+`: if it is; `?`: an error if it is not.
void ShellWords::use_default(ShellFields& fields, const std::string& name, char kind, bool counts_empty, Mode mode) {
  const std::uint32_t begin = offset();
  const bool has = is_set(name, counts_empty);
  ShellFields other(begin);
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
  if (kind == '?') return fields.add_unset("$" + name);
  defaults_.emplace(name, text.text.empty() ? text.unset : text.text);
  if (mode == Mode::split) {
    fields.add_split(text);
  } else {
    fields.add(text);
  }
  if (kind == '=') assign(name, {text}, Assignment::replace);
}

// What stands in braces behind an operator, up to the brace that ends it.
void ShellWords::operand(ShellFields& fields, Mode mode) {
  if (++depth_ > deepest_level) return give_up(offset() - 1, "expansions are nested too deeply");
  while (!at_end() && peek() != '}') {
    if (is_shell_blank(peek()) || (mode == Mode::quoted && peek() == '\'')) {
      fields.add(peek(), offset());
      advance();
    } else {
      part(fields, mode);
    }
  }
  --depth_;
}

void ShellWords::arithmetic(ShellFields& fields) {
  const std::uint32_t begin = offset() - 1;
  if (++depth_ > deepest_level) return give_up(begin, "expansions are nested too deeply");
  advance(2);
  ShellFields inside(offset());
  int open = 0;
  while (!at_end() && !(open == 0 && starts_with("))"))) {
    if (peek() == '(') ++open;
    if (peek() == ')') --open;
    if (peek() == '$') {
      dollar(inside, Mode::whole);
    } else {
      inside.add(peek(), offset());
      advance();
    }
  }
  --depth_;
  if (at_end()) {
    if (diagnostics_.empty()) give_up(begin, "arithmetic without an end: )) is missing");
    return;
  }
  advance(2);
  if (muted) return;
  const ShellText text = inside.take_whole();
  const auto value = text.unset.empty()
                         ? shell_arithmetic(text.text, [this](const std::string& name) { return number_text(name); })
                         : std::nullopt;
  if (!value) {
    const std::size_t size = std::min<std::size_t>(at_ - begin, shown_bytes);
    return fields.add_unset(text.unset.empty() ? text_.substr(begin, size) : text.unset);
  }
  for (const char digit : std::to_string(*value)) fields.add(digit, begin);
}

std::optional<std::string> ShellWords::number_text(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.items.empty()) return std::nullopt;
  const ShellText& first = found->second.items.front();
  return first.unset.empty() ? std::optional(first.text) : std::nullopt;
}

// What a command would print is not known. Skips to the parenthesis that ends it.
void ShellWords::substitution(ShellFields& fields) {
  const std::uint32_t begin = offset() - 1;
  int open = 0;
  char quote = '\0';
  while (!at_end()) {
    const char c = peek();
    if (c == '\\' && quote != '\'') {
      advance();
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(') {
      ++open;
    } else if (c == ')' && --open == 0) {
      break;
    }
    advance();
  }
  if (at_end()) return give_up(begin, "a command without an end: ) is missing");
  advance();
  fields.add_unset(text_.substr(begin, std::min<std::size_t>(at_ - begin, shown_bytes)));
}

void ShellWords::backticks(ShellFields& fields) {
  const std::uint32_t begin = offset();
  advance();
  while (!at_end() && peek() != '`') advance(peek() == '\\' ? 2 : 1);
  if (at_end()) return give_up(begin, "a command without an end: ` is missing");
  advance();
  fields.add_unset(text_.substr(begin, std::min<std::size_t>(at_ - begin, shown_bytes)));
}

std::optional<ShellVariable> ShellWords::assign(const std::string& name, std::vector<ShellText> items, Assignment how) {
  if (muted || fixed_.count(name) > 0) return std::nullopt;
  std::size_t bytes = 0;
  for (const ShellText& item : items) bytes += item.text.size() + bytes_of_a_word;
  if (!spend(bytes, offset() > 0 ? offset() - 1 : 0)) return std::nullopt;
  const auto [found, is_new] = variables_.try_emplace(name);
  auto& mine = found->second.items;
  if (how == Assignment::replace) {
    std::vector<ShellText> old = std::exchange(mine, std::move(items));
    return is_new ? std::nullopt : std::optional(ShellVariable{std::move(old)});
  }
  if (how == Assignment::append_items || mine.empty()) {
    for (ShellText& item : items) mine.push_back(std::move(item));
  } else {
    for (const ShellText& item : items) {
      mine.front().text += item.text;
      mine.front().from.insert(mine.front().from.end(), item.from.begin(), item.from.end());
      if (mine.front().unset.empty()) mine.front().unset = item.unset;
    }
  }
  return std::nullopt;
}

void ShellWords::put(const std::string& name, std::optional<ShellVariable> value) {
  if (muted || fixed_.count(name) > 0) return;
  if (value) {
    variables_[name] = std::move(*value);
  } else {
    variables_.erase(name);
  }
}

std::map<std::string, ShellVariable> ShellWords::snapshot() {
  std::size_t bytes = 0;
  for (const auto& [name, variable] : variables_) {
    for (const ShellText& item : variable.items) bytes += item.text.size() + bytes_of_a_word;
  }
  if (!spend(bytes, offset() > 0 ? offset() - 1 : 0)) return {};
  return variables_;
}

void ShellWords::fix(const std::string& name, const std::string& value) {
  ShellText text;
  text.text = value;
  text.from.assign(value.size(), ShellText::nowhere);
  variables_[name].items = {std::move(text)};
  fixed_.insert(name);
}

}  // namespace hdpsim
