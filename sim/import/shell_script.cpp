#include "sim/import/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/text.h"
#include "sim/document/limits.h"
#include "sim/import/impl/shell_arithmetic.h"
#include "sim/import/impl/shell_builtins.h"
#include "sim/import/impl/shell_condition.h"
#include "sim/import/impl/shell_fields.h"
#include "sim/import/impl/shell_words.h"

namespace hdpsim {
namespace {

/// How a command ended, as far as that is known.
struct Ending {
  std::optional<bool> truth;
  bool is_test = false;  ///< A condition, and no command that is run for what it does.
  std::string unset;     ///< What of the condition the script does not set.

  /// Whether what follows `&&` runs: commands are taken to succeed.
  [[nodiscard]] std::optional<bool> succeeds() const { return is_test ? truth : std::optional(true); }
};

class ScriptReader {
 public:
  ScriptReader(const std::string& file, const std::string& text, Diagnostics& diagnostics)
      : file_(file), words_(text, diagnostics, file) {
    script_.lines.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') script_.lines.push_back(static_cast<std::uint32_t>(i + 1));
    }
  }

  ShellScript read(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) words_.fix(name, value);
    while (!words_.at_end()) {
      (void)list({});
      words_.advance();  // what ends a list that nothing has begun
    }
    note_defaults();
    for (const auto& [name, variable] : words_.variables()) {
      if (variable.items.size() == 1) script_.variables.emplace(name, variable.items.front());
    }
    return std::move(script_);
  }

 private:
  // ---- Lists of commands

  // Commands up to one of these reserved words, which is read, too, and kept in ended_by_.
  Ending list(std::initializer_list<std::string_view> ends) {
    Ending last;
    ended_by_.clear();
    while (true) {
      skip_separators();
      if (words_.at_end()) break;
      const std::string_view reserved = reserved_here();
      if (std::find(ends.begin(), ends.end(), reserved) != ends.end()) {
        words_.advance(reserved.size());
        ended_by_ = reserved;
        break;
      }
      if (words_.peek() == ')') break;
      last = alternatives();
    }
    return last;
  }

  // Commands joined by && and ||.
  Ending alternatives() {
    Ending left = pipeline();
    while (true) {
      words_.skip_blanks();
      const bool is_and = words_.starts_with("&&");
      if (!is_and && !words_.starts_with("||")) return left;
      words_.advance(2);
      skip_newlines();
      const std::uint32_t begin = words_.offset();
      const std::optional<bool> success = left.succeeds();
      const bool runs = success.has_value() && *success == is_and;
      const int before = effects_;
      const Ending right = only_if(runs, [this] { return pipeline(); });
      if (left.is_test && !runs) note_skipped(begin, before, left);
      if (left.is_test && runs) left.truth = right.is_test ? right.truth : std::nullopt;
    }
  }

  Ending pipeline() {
    Ending last;
    bool is_inverted = false;
    while (true) {
      words_.skip_blanks();
      if (words_.peek() == '!' && (words_.peek(1) == ' ' || words_.peek(1) == '\t')) {
        words_.advance();
        is_inverted = !is_inverted;
        continue;
      }
      last = command();
      words_.skip_blanks();
      if (words_.peek() != '|' || words_.peek(1) == '|') break;
      words_.advance(words_.peek(1) == '&' ? 2 : 1);
      skip_newlines();
    }
    if (is_inverted && last.truth) last.truth = !*last.truth;
    return last;
  }

  template <class Act>
  Ending only_if(bool runs, const Act& act) {
    const bool was_muted = std::exchange(words_.muted, words_.muted || !runs);
    Ending ending = act();
    words_.muted = was_muted;
    return ending;
  }

  // ---- One command

  Ending command() {
    if (++depth_ > deepest_level) words_.give_up(start(), "commands are nested too deeply");
    Ending ending = command_here();
    --depth_;
    return ending;
  }

  Ending command_here() {
    const std::string reserved(reserved_here());
    const std::uint32_t begin = words_.offset();
    if (reserved == "if") return if_command();
    if (reserved == "for" || reserved == "while" || reserved == "until" || reserved == "select") {
      words_.advance(reserved.size());
      return not_followed(begin, "a loop", [this] {
        (void)list({"do"});
        return list({"done"});
      });
    }
    if (reserved == "case") {
      words_.advance(reserved.size());
      return not_followed(begin, "a case", [this] { return skip_case(); });
    }
    if (reserved == "function") {
      words_.advance(reserved.size());
      words_.skip_blanks();
      (void)words_.word();
      words_.skip_blanks();
      if (words_.starts_with("()")) words_.advance(2);
      return function(begin);
    }
    if (reserved == "{") {
      words_.advance();
      return list({"}"});
    }
    if (words_.starts_with("((")) return arithmetic_command();
    if (words_.peek() == '(') return subshell();
    return simple_command();
  }

  Ending if_command() {
    enum class Taken : std::uint8_t { no, yes, unknown };
    const std::uint32_t begin = words_.offset();
    words_.advance(2);
    Ending condition = list({"then"});
    Taken taken = Taken::no;
    int left_out = 0;
    Ending cause;
    while (!words_.at_end()) {
      const bool is_known = condition.is_test && condition.truth.has_value();
      const bool runs = taken == Taken::no && is_known && *condition.truth;
      const int before = effects_;
      (void)only_if(runs, [this] { return list({"elif", "else", "fi"}); });
      if (taken != Taken::yes && !runs && (!is_known || !condition.unset.empty())) {
        left_out += effects_ - before;
        cause = condition;
      }
      if (runs) {
        taken = Taken::yes;
      } else if (taken == Taken::no && !is_known) {
        taken = Taken::unknown;
      }
      if (ended_by_ == "elif") {
        condition = only_if(taken == Taken::no, [this] { return list({"then"}); });
      } else if (ended_by_ == "else") {
        condition = {.truth = true, .is_test = taken != Taken::unknown, .unset = {}};
      } else {
        break;
      }
    }
    if (left_out > 0) note_skipped(begin, effects_ - left_out, cause);
    return {};
  }

  // Variables that it sets have their old values behind it.
  Ending subshell() {
    std::map<std::string, ShellVariable> before = words_.snapshot();
    Ending inside = command_in();
    std::vector<std::string> added;
    for (const auto& [name, value] : words_.variables()) {
      if (before.count(name) == 0) added.push_back(name);
    }
    for (const std::string& name : added) words_.put(name, std::nullopt);
    for (auto& [name, value] : before) words_.put(name, std::move(value));
    return inside;
  }

  Ending arithmetic_command() {
    const std::uint32_t begin = words_.offset();
    const std::string_view text = words_.rest();
    int open = 0;
    do {
      if (words_.peek() == '(') ++open;
      if (words_.peek() == ')') --open;
      words_.advance();
    } while (!words_.at_end() && open > 0);
    const std::vector<std::string> names = names_set_by_arithmetic(text.substr(0, words_.offset() - begin));
    if (!names.empty()) not_known("'(('", begin, names);
    return {.truth = std::nullopt, .is_test = true, .unset = {}};
  }

  // Patterns are no commands, so that only words are looked at.
  Ending skip_case() {
    int open = 1;
    while (!words_.at_end() && open > 0) {
      skip_separators();
      const std::string_view reserved = reserved_here();
      if (reserved == "esac") --open;
      if (reserved == "case") ++open;
      if (!reserved.empty()) {
        words_.advance(reserved.size());
        continue;
      }
      if (assignment_length() > 0) ++effects_;
      const std::uint32_t at = words_.offset();
      for (const ShellText& word : words_.word()) count_effect(word);
      if (words_.offset() == at) words_.advance();
    }
    return {};
  }

  Ending simple_command() {
    ShellCommand command;
    bool is_declaration = false;
    std::vector<std::pair<std::string, std::optional<ShellVariable>>> before;  // of what is set for the command alone
    const std::uint32_t begin = words_.offset();
    while (true) {
      words_.skip_blanks();
      const char c = words_.peek();
      if (words_.at_end() || c == '\n' || c == ';' || c == '|' || c == ')') break;
      if (c == '&' && words_.peek(1) != '>') break;
      if (c == '<' || c == '>' || c == '&') {
        redirection(command);
      } else if ((command.words.empty() || is_declaration) && assignment_length() > 0) {
        std::string name = name_assigned_here();
        const bool replaces = !appends_here();
        std::optional<ShellVariable> old = assignment();
        if (!is_declaration && replaces) before.emplace_back(std::move(name), std::move(old));
      } else if (c == '(') {
        words_.advance();
        words_.skip_blanks();
        if (command.words.size() <= 1 && words_.peek() == ')') {
          words_.advance();
          return function(begin);
        }
      } else {
        for (; !before.empty(); before.pop_back()) words_.put(before.back().first, std::move(before.back().second));
        for (ShellText& word : words_.word()) command.words.push_back(std::move(word));
        is_declaration = is_declaration || (command.words.size() == 1 && declares(command.words.front().text));
        if (command.words.size() == 1 && command.words.front().text == "[[") return double_brackets();
      }
    }
    return ended(command);
  }

  // From behind its name on.
  Ending function(std::uint32_t begin) {
    return not_followed(begin, "a function", [this] {
      skip_newlines();
      return command();
    });
  }

  Ending ended(ShellCommand& command) {
    for (const ShellText& word : command.words) {
      if (words_.muted) count_effect(word);
    }
    if (command.words.empty()) return {};
    const std::string name = command.words.front().text;
    if (name == "[" || name == "test") {
      command.words.erase(command.words.begin());
      if (name == "[" && !command.words.empty()) command.words.pop_back();
      return tested(command.words);
    }
    if (name == "true" || name == "false") return {.truth = name == "true", .is_test = true, .unset = {}};
    if (const auto names = names_set_by_builtin(command)) {
      not_known(fmt::format("'{}'", name), command.words.front().begin, *names);
    }
    if (name == "unset") {
      for (const ShellText& word : command.words) words_.put(word.text, std::nullopt);
    }
    if (!words_.muted && !declares(name)) {
      if ((name == "source" || name == ".") && command.words.size() > 1) note_source(command);
      script_.commands.push_back(std::move(command));
    }
    return {};
  }

  Ending double_brackets() {
    std::vector<ShellText> inside;
    while (true) {
      skip_newlines();
      if (words_.at_end()) break;
      const std::uint32_t at = words_.offset();
      const std::string_view sign = words_.starts_with("&&") ? "&&" : words_.starts_with("||") ? "||" : "";
      if (!sign.empty() || std::string_view("()<>;&|").find(words_.peek()) != std::string_view::npos) {
        const std::size_t size = sign.empty() ? 1 : 2;
        ShellText operation;
        operation.text = words_.rest().substr(0, size);
        operation.begin = at;
        inside.push_back(std::move(operation));
        words_.advance(size);
        continue;
      }
      ShellText word = words_.whole_word();
      if (word.text == "]]") break;
      inside.push_back(std::move(word));
    }
    return tested(inside);
  }

  static Ending tested(const std::vector<ShellText>& words) {
    Ending ending{.truth = shell_condition(words), .is_test = true, .unset = {}};
    for (const ShellText& word : words) {
      if (ending.unset.empty()) ending.unset = word.unset;
    }
    return ending;
  }

  // ---- Words of a command that are none

  // The length of `NAME=` or `NAME+=`; 0 if there is none here.
  [[nodiscard]] std::size_t assignment_length() const {
    const std::string_view rest = words_.rest();
    std::size_t at = 0;
    while (at < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[at])) != 0 || rest[at] == '_')) ++at;
    if (at == 0 || (rest[0] >= '0' && rest[0] <= '9')) return 0;
    if (at < rest.size() && rest[at] == '+') ++at;
    return at < rest.size() && rest[at] == '=' ? at + 1 : 0;
  }

  [[nodiscard]] std::string name_assigned_here() const {
    std::string name(words_.rest().substr(0, assignment_length() - 1));
    if (name.back() == '+') name.pop_back();
    return name;
  }

  [[nodiscard]] bool appends_here() const { return words_.rest()[assignment_length() - 2] == '+'; }

  // Returns the value that was replaced, if there was one.
  std::optional<ShellVariable> assignment() {
    const std::size_t length = assignment_length();
    const std::string name = name_assigned_here();
    const bool appends = appends_here();
    words_.advance(length);
    const bool is_list = words_.peek() == '(';
    std::vector<ShellText> items;
    if (is_list) {
      words_.advance();
      items = words_.list();
    } else {
      items.push_back(words_.whole_word());
    }
    if (words_.muted) ++effects_;
    using How = ShellWords::Assignment;
    const How how = !appends ? How::replace : is_list ? How::append_items : How::append_text;
    return words_.assign(name, std::move(items), how);
  }

  void redirection(ShellCommand& command) {
    if (!command.words.empty()) {
      const ShellText& last = command.words.back();
      const bool is_number = !last.text.empty() && last.text.find_first_not_of("0123456789") == std::string::npos;
      const bool is_beside = !last.from.empty() && last.from.back() + 1 == words_.offset();
      if (is_number && is_beside) command.words.pop_back();
    }
    const bool is_document = words_.starts_with("<<") && !words_.starts_with("<<<");
    while (words_.peek() == '<' || words_.peek() == '>' || words_.peek() == '&') words_.advance();
    if (is_document && words_.peek() == '-') words_.advance();
    words_.skip_blanks();
    if (words_.peek() == '(') return (void)not_followed(words_.offset(), "a command", [this] { return command_in(); });
    const ShellText word = words_.whole_word();
    if (is_document) documents_.push_back(word.text);
  }

  Ending command_in() {
    words_.advance();
    Ending inside = list({});
    words_.advance();
    return inside;
  }

  // ---- Between commands

  void skip_separators() {
    while (!words_.at_end()) {
      words_.skip_blanks();
      const char c = words_.peek();
      if (c == '\n') {
        end_line();
      } else if (c == ';' || c == '&') {
        words_.advance();
      } else {
        return;
      }
    }
  }

  void skip_newlines() {
    words_.skip_blanks();
    while (words_.peek() == '\n') {
      end_line();
      words_.skip_blanks();
    }
  }

  // Here-documents begin on the line behind their commands.
  void end_line() {
    words_.advance();
    for (const std::string& end : std::exchange(documents_, {})) {
      while (!words_.at_end()) {
        const std::string_view rest = words_.rest();
        const std::string_view line = rest.substr(0, rest.find('\n'));
        words_.advance(line.size() + 1);
        const std::size_t first = std::min(line.find_first_not_of('\t'), line.size());
        if (line.substr(first) == end) break;
      }
    }
  }

  // The word here, if all of it is letters, or a brace.
  [[nodiscard]] std::string_view reserved_here() const {
    const std::string_view rest = words_.rest();
    const std::size_t size = std::min(rest.find_first_of(" \t\r\n;&|()<>"), rest.size());
    const std::string_view word = rest.substr(0, size);
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '{' || c == '}'; };
    return std::all_of(word.begin(), word.end(), is_letter) && is_reserved(word) ? word : std::string_view();
  }

  static bool is_reserved(std::string_view word) {
    constexpr std::array<std::string_view, 16> all = {"if",   "then",     "elif",  "else",  "fi",     "for",
                                                      "do",   "done",     "while", "until", "select", "case",
                                                      "esac", "function", "{",     "}"};
    return std::find(all.begin(), all.end(), word) != all.end();
  }

  // ---- What is told

  void not_known(const std::string& what, std::uint32_t begin, const std::vector<std::string>& names) {
    if (words_.muted) ++effects_;
    if (words_.muted) return;
    for (const std::string& name : names) words_.put(name, std::nullopt);
    note(begin, fmt::format("{} is not followed: --var NAME=VALUE gives what it sets", what));
  }

  template <class Act>
  Ending not_followed(std::uint32_t begin, std::string_view what, const Act& act) {
    const int before = effects_;
    Ending ending = only_if(false, act);
    if (effects_ > before && !words_.muted) {
      note(begin, fmt::format("{} up to line {} is not followed", what, line_of(words_.offset())));
    }
    return {};
  }

  void note_skipped(std::uint32_t begin, int effects_before, const Ending& condition) {
    if (effects_ == effects_before || words_.muted) return;
    const std::string why = condition.unset.empty() ? "the condition depends on the machine"
                                                    : fmt::format("{} has no value here", condition.unset);
    if (condition.truth && condition.unset.empty()) return;
    note(begin, fmt::format("{}: what hangs on it, up to line {}, is left out", why, line_of(words_.offset())));
  }

  void note_source(const ShellCommand& command) {
    note(command.words.front().begin,
         fmt::format("'{}' is not read in: give its variables with --var NAME=VALUE",
                     command.words[1].text.empty() ? command.words[1].unset : command.words[1].text));
  }

  void note_defaults() {
    std::vector<std::string> all;
    for (const auto& [name, value] : words_.defaults()) all.push_back(fmt::format("{} ({})", name, value));
    if (all.empty()) return;
    script_.notes.push_back({ImportNote::Kind::assumed,
                             {},
                             fmt::format("defaults count for what {} does not set: {}", file_, joined(all, ", "))});
  }

  void note(std::uint32_t begin, std::string text) {
    script_.notes.push_back({ImportNote::Kind::assumed, script_.position(file_, begin), std::move(text)});
  }

  void count_effect(const ShellText& word) {
    if (word.text.starts_with("--")) ++effects_;
  }

  [[nodiscard]] int line_of(std::uint32_t offset) const { return script_.position(file_, offset).line; }
  [[nodiscard]] std::uint32_t start() const { return words_.offset() > 0 ? words_.offset() - 1 : 0; }

  std::string file_;
  ShellWords words_;
  ShellScript script_;
  std::vector<std::string> documents_;  // ends of here-documents that begin on the next line
  std::string ended_by_;
  int depth_ = 0;
  int effects_ = 0;  // of what was not run: assignments and arguments
};

}  // namespace

std::vector<ShellText> ShellScript::split(const ShellText& text) {
  std::vector<ShellText> words;
  bool is_open = false;
  for (std::size_t i = 0; i < text.text.size(); ++i) {
    if (is_shell_blank(text.text[i])) {
      is_open = false;
      continue;
    }
    if (!is_open) {
      words.emplace_back();
      words.back().begin = text.from[i] == ShellText::nowhere ? text.begin : text.from[i];
    }
    is_open = true;
    words.back().text += text.text[i];
    words.back().from.push_back(text.from[i]);
  }
  return words;
}

Position ShellScript::position(const std::string& file, std::uint32_t offset) const {
  const auto behind = std::upper_bound(lines.begin(), lines.end(), offset);
  if (behind == lines.begin()) return {file, 1, 1};
  return {file, static_cast<int>(behind - lines.begin()), static_cast<int>(offset - *(behind - 1)) + 1};
}

Position ShellScript::position(const std::string& file, const ShellText& word) const {
  return position(file, word.begin);
}

ShellScript read_shell_script(const std::string& file, const std::string& text,
                              const std::map<std::string, std::string>& variables, Diagnostics& diagnostics) {
  return ScriptReader(file, text, diagnostics).read(variables);
}

}  // namespace hdpsim
