#include "sim/import/impl/shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/document/limits.h"
#include "sim/import/impl/shell_evaluation.h"
#include "sim/import/impl/shell_text.h"

namespace hdpsim {
namespace {

// The limit of all that a script computes: variables that hold each other twice grow without end, and so do loops.
constexpr std::size_t most_expanded_bytes = 2 * largest_yaml_bytes;
constexpr std::size_t bytes_of_a_step = 64;
constexpr int most_terms_in_all = 500'000;
constexpr std::size_t shown_bytes = 40;

constexpr char unknown_here = '\x1a';  // in a text that is read again, in place of an unknown part

bool ends_word(char c) {
  return c == '\0' || is_shell_blank(c) || std::string_view(";&|()<>").find(c) != std::string_view::npos;
}

}  // namespace

ShellSource ShellSource::of(const ShellText& text) {
  ShellSource source;
  auto unknown = text.unknowns.begin();
  for (std::size_t i = 0; i <= text.text.size(); ++i) {
    for (; unknown != text.unknowns.end() && unknown->at == i; ++unknown) {
      source.unknowns.emplace(source.text.size(), *unknown);
      source.text += unknown_here;
      source.from.push_back(i < text.from.size() && text.from[i] != ShellText::nowhere ? text.from[i] : text.begin);
    }
    if (i == text.text.size()) break;
    source.text += text.text[i];
    source.from.push_back(text.from[i] == ShellText::nowhere ? text.begin : text.from[i]);
  }
  source.from.push_back(source.from.empty() ? text.begin : source.from.back());
  return source;
}

ShellWords::ShellWords(const std::string& script, Diagnostics& diagnostics, std::string file)
    : script_{.text = script}, diagnostics_(diagnostics), file_(std::move(file)) {}

void ShellWords::go_to(const Spot& spot) {
  source_ = spot.source;
  at_ = std::min(spot.at, text().size());
}

std::uint32_t ShellWords::place_of(std::size_t at) const {
  return source_->from.empty() ? static_cast<std::uint32_t>(at) : source_->from[std::min(at, source_->from.size() - 1)];
}

char ShellWords::peek(std::size_t ahead) const {
  return at_ + ahead < text().size() ? text()[at_ + ahead] : '\0';
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

void ShellWords::give_up(std::uint32_t place, const std::string& message) {
  const std::string& script = script_.text;
  const std::size_t at = std::min<std::size_t>(place, script.size());
  const auto lines = std::count(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const std::size_t before = at == 0 ? std::string::npos : script.rfind('\n', at - 1);
  const std::size_t line = before == std::string::npos ? 0 : before + 1;
  if (!has_given_up_) {
    diagnostics_.error({file_, static_cast<int>(lines) + 1, static_cast<int>(at - line) + 1}, message);
  }
  has_given_up_ = true;
  at_ = text().size();
}

bool ShellWords::spend(std::size_t bytes) {
  if (has_given_up_) return false;
  spent_ += bytes + bytes_of_a_step;
  if (spent_ <= most_expanded_bytes) return true;
  give_up(place_of(at_ > 0 ? at_ - 1 : 0), fmt::format("the variables and loops of the script come to more than {} MB",
                                                       most_expanded_bytes / 1'000'000));
  return false;
}

// ---- Words

std::vector<ShellText> ShellWords::word() {
  ShellFields fields(place());
  while (!at_end() && !ends_word(peek())) part(fields, Mode::split);
  return fields.take();
}

ShellText ShellWords::whole_word() {
  ShellFields fields(place());
  while (!at_end() && !ends_word(peek())) part(fields, Mode::whole);
  return fields.take_whole();
}

std::vector<ShellText> ShellWords::list() {
  const std::uint32_t begin = place_of(at_ > 0 ? at_ - 1 : 0);
  std::vector<ShellText> words;
  while (true) {
    skip_blanks();
    if (at_end()) {
      give_up(begin, "a list without an end: ')' is missing");
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

ShellText ShellWords::document(std::size_t end) {
  ShellFields fields(place());
  while (!at_end() && at_ < end) {
    if (peek() == '\\') {
      escaped(fields, Mode::quoted);
    } else if (peek() == '$') {
      dollar(fields, Mode::quoted);
    } else if (peek() == '`') {
      backticks(fields);
    } else {
      fields.add(peek(), place());
      advance();
    }
  }
  return fields.take_whole();
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
      break;
  }
  const auto unknown = peek() == unknown_here ? source_->unknowns.find(at_) : source_->unknowns.end();
  if (unknown != source_->unknowns.end()) {
    fields.add_unknown(unknown->second);
  } else {
    fields.add(peek(), place());
  }
  advance();
}

void ShellWords::escaped(ShellFields& fields, Mode mode) {
  const std::size_t end_of_line = starts_with("\\\n") ? 2 : starts_with("\\\r\n") ? 3 : 0;
  if (end_of_line > 0) return advance(end_of_line);
  const bool is_kept = mode == Mode::quoted && std::string_view("$`\"\\").find(peek(1)) == std::string_view::npos;
  if (is_kept || at_ + 1 >= text().size()) {
    fields.add('\\', place());
    return advance();
  }
  advance();
  fields.add(peek(), place());
  advance();
}

void ShellWords::single_quoted(ShellFields& fields) {
  const std::uint32_t begin = place();
  fields.add_quotes();
  advance();
  while (!at_end() && peek() != '\'') {
    const auto unknown = source_->unknowns.find(at_);
    if (unknown != source_->unknowns.end()) {
      fields.add_unknown(unknown->second);
    } else {
      fields.add(peek(), place());
    }
    advance();
  }
  if (at_end()) return give_up(begin, "a text without an end: ' is missing");
  advance();
}

void ShellWords::double_quoted(ShellFields& fields, Mode mode) {
  const std::uint32_t begin = place();
  const Mode inner = mode == Mode::whole ? Mode::whole : Mode::quoted;
  advance();
  if (peek() != '$') fields.add_quotes();  // "${LIST[@]}" may be no word
  while (!at_end() && peek() != '"') {
    if (peek() == '\\') {
      escaped(fields, Mode::quoted);
    } else if (peek() == '$') {
      dollar(fields, inner);
    } else if (peek() == '\'') {
      fields.add(peek(), place());
      advance();
    } else {
      part(fields, inner);
    }
  }
  if (at_end()) return give_up(begin, "a text without an end: \" is missing");
  advance();
}

// What a command would print is not known. Skips to the parenthesis that ends it.
void ShellWords::substitution(ShellFields& fields) {
  const std::size_t begin = at_ - 1;
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
  if (at_end()) return give_up(place_of(begin), "a command without an end: ) is missing");
  advance();
  if (sum_of_expr(fields, begin, at_)) return;
  add_not_computed(fields, begin, at_);
}

void ShellWords::backticks(ShellFields& fields) {
  const std::size_t begin = at_;
  advance();
  while (!at_end() && peek() != '`') advance(peek() == '\\' ? 2 : 1);
  if (at_end()) return give_up(place_of(begin), "a command without an end: ` is missing");
  advance();
  add_not_computed(fields, begin, at_);
}

void ShellWords::add_not_computed(ShellFields& fields, std::size_t begin, std::size_t end) {
  if (muted) return;
  ShellUnknown unknown{.what = text().substr(begin, std::min<std::size_t>(end - begin, shown_bytes))};
  unknown.place = place_of(begin);
  fields.add_unknown(std::move(unknown));
}

void ShellWords::arithmetic(ShellFields& fields) {
  const std::size_t begin = at_ - 1;
  if (++depth_ > deepest_level) return give_up(place_of(begin), "expansions are nested too deeply");
  advance(2);
  ShellFields inside(place());
  int open = 0;
  while (!at_end() && !(open == 0 && starts_with("))"))) {
    if (peek() == '(') ++open;
    if (peek() == ')') --open;
    if (peek() == '$') {
      dollar(inside, Mode::whole);
    } else {
      inside.add(peek(), place());
      advance();
    }
  }
  --depth_;
  if (at_end()) return give_up(place_of(begin), "arithmetic without an end: )) is missing");
  advance(2);
  if (muted) return;
  const ShellText expression = inside.take_whole();
  const auto value = evaluated(expression, place_of(begin));
  if (!value && !expression.is_known()) return fields.add_unknown(expression.unknowns.front());
  if (!value) return add_not_computed(fields, begin, at_);
  for (const char digit : std::to_string(*value)) fields.add(digit, place_of(begin));
}

std::optional<std::int64_t> ShellWords::evaluated(const ShellText& expression, std::uint32_t at) {
  if (muted || has_given_up_) return std::nullopt;
  const auto value_of = [this](const std::string& name) -> std::optional<std::string> {
    const auto* items = items_of(name);
    if (items == nullptr || items->empty() || !items->front().is_known()) return std::nullopt;
    return items->front().text;
  };
  ShellSum sum;
  if (expression.is_known()) sum = shell_arithmetic(expression.text, value_of);
  terms_ += sum.terms;
  if (terms_ > most_terms_in_all) {
    give_up(at, fmt::format("the arithmetic of the script has more than {} terms", most_terms_in_all));
    return std::nullopt;
  }
  if (!sum.value) {
    for (const std::string& name : names_set_by_arithmetic(expression.text)) forget(name, "");
    return std::nullopt;
  }
  for (const auto& [name, value] : sum.assigned) {
    assign(name, {ShellText::of(std::to_string(value))}, Assignment::replace);
  }
  return sum.value;
}

// ---- Variables

void ShellWords::assign(const std::string& name, std::vector<ShellText> items, Assignment how) {
  if (muted) return;
  if (!spend(ShellVariable{items}.bytes())) return;
  ShellVariable* variable = variables.change(name);
  if (variable == nullptr) return;
  if (const std::size_t noted = variables.take_noted(); noted > 0 && !spend(noted)) return;
  auto& mine = variable->items;
  if (how == Assignment::replace) {
    mine = std::move(items);
  } else if (how == Assignment::append_items || mine.empty()) {
    for (ShellText& item : items) mine.push_back(std::move(item));
  } else {
    for (const ShellText& item : items) mine.front().add(item);
  }
}

void ShellWords::forget(const std::string& name, const std::string& why) {
  if (muted) return;
  variables.set(name, ShellVariable{{ShellText::unknown({.what = "$" + name, .why = why})}});
}

}  // namespace hdpsim
