#include "sim/import/impl/shell_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/text.h"
#include "sim/document/limits.h"
#include "sim/import/impl/launched_job.h"
#include "sim/import/impl/shell_evaluation.h"
#include "sim/import/shell_script.h"

namespace hdpsim {

ShellReader::ShellReader(const std::string& file, const std::string& text, Diagnostics& diagnostics)
    : file_(file), words_(text, diagnostics, file) {
  script_.lines.push_back(0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') script_.lines.push_back(static_cast<std::uint32_t>(i + 1));
  }
  script_.directives = slurm_directives(text);
}

ShellScript ShellReader::read(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : slurm_variables(script_.directives)) {
    words_.variables.set(name, ShellVariable{{value}});
  }
  for (const auto& [name, value] : variables) words_.variables.fix(name, value);
  while (!words_.at_end()) {
    (void)list({});
    words_.advance();  // what ends a list that nothing has begun
  }
  note_defaults();
  note_unused();
  for (const auto& [name, variable] : words_.variables.all()) {
    if (variable.items.size() == 1) script_.variables.emplace(name, variable.items.front());
  }
  return std::move(script_);
}

// ---- Lists of commands

// Commands up to one of these reserved words, which is read, too, and kept in ended_by_.
ShellReader::Ending ShellReader::list(std::initializer_list<std::string_view> ends) {
  Ending last;
  while (true) {
    skip_separators();
    ended_by_.clear();
    if (words_.at_end()) break;
    const std::string_view reserved = reserved_here();
    if (std::find(ends.begin(), ends.end(), reserved) != ends.end()) {
      words_.advance(reserved.size());
      ended_by_ = reserved;
      break;
    }
    if (words_.peek() == ')' || (open_cases_ > 0 && words_.starts_with(";;"))) break;
    last = alternatives();
  }
  return last;
}

// Commands joined by && and ||.
ShellReader::Ending ShellReader::alternatives() {
  Ending left = pipeline();
  while (true) {
    words_.skip_blanks();
    const bool is_and = words_.starts_with("&&");
    if (!is_and && !words_.starts_with("||")) return left;
    words_.advance(2);
    skip_newlines();
    alternative(left, is_and);
  }
}

void ShellReader::alternative(Ending& left, bool is_and) {
  const std::optional<bool> success = left.succeeds();
  const Answer answer = !success ? Answer::perhaps : *success == is_and ? Answer::yes : Answer::no;
  Choice choice{.begin = words_.place(), .outcomes = {}, .cause = {}};
  Ending right;
  take_part(choice, answer, left, [&] { return right = pipeline(); });
  end_choice(choice);
  if (!left.is_test || answer == Answer::no) return;
  left.unknowns.insert(left.unknowns.end(), right.unknowns.begin(), right.unknowns.end());
  left.truth = answer == Answer::perhaps ? std::nullopt : right.succeeds();
}

ShellReader::Ending ShellReader::pipeline() {
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

// ---- One command

ShellReader::Ending ShellReader::command() {
  if (++depth_ > deepest_level) words_.give_up(words_.place(), "commands are nested too deeply");
  Ending ending = words_.at_end() ? Ending{} : command_here();
  --depth_;
  return ending;
}

ShellReader::Ending ShellReader::command_here() {
  const std::string reserved(reserved_here());
  if (!reserved.empty()) return compound(reserved);
  if (words_.starts_with("((")) return arithmetic_command();
  if (words_.peek() == '(') return subshell();
  return simple_command();
}

ShellReader::Ending ShellReader::compound(std::string_view reserved) {
  words_.advance(reserved.size());
  if (reserved == "if") return if_command();
  if (reserved == "case") return case_command();
  if (reserved == "for" || reserved == "select") return for_command();
  if (reserved == "while" || reserved == "until") return while_command(reserved == "until");
  if (reserved == "{") return list({"}"});
  if (reserved != "function") return {};  // it ends what nothing has begun
  words_.skip_blanks();
  const std::vector<ShellText> name = words_.word();
  words_.skip_blanks();
  if (words_.starts_with("()")) words_.advance(2);
  function_behind_name(name.empty() ? std::string() : name.front().text);
  return {};
}

// Variables that it sets have their old values behind it.
ShellReader::Ending ShellReader::subshell() {
  Ending inside;
  (void)tried([&] { inside = command_in(); });
  return inside;
}

ShellReader::Ending ShellReader::command_in() {
  words_.advance();
  Ending inside = list({});
  words_.advance();
  return inside;
}

ShellReader::Ending ShellReader::arithmetic_command() {
  const std::uint32_t begin = words_.place();
  const std::size_t first = words_.offset() + 2;
  const ShellWords::Spot start = words_.spot();
  int open = 0;
  do {
    if (words_.peek() == '(') ++open;
    if (words_.peek() == ')') --open;
    words_.advance();
  } while (!words_.at_end() && open > 0);
  const ShellWords::Spot end = words_.spot();
  if (words_.muted || end.at < first + 2) return {.truth = {}, .is_test = true, .unknowns = {}};
  words_.go_to({start.source, first});
  const ShellText expression = words_.document(end.at - 2);
  words_.go_to(end);
  const auto value = words_.evaluated(expression, begin);
  if (value) return {.truth = *value != 0, .is_test = true, .unknowns = {}};
  if (const auto names = names_set_by_arithmetic(expression.text); !names.empty()) not_known("'(('", begin, names);
  return {.truth = std::nullopt, .is_test = true, .unknowns = expression.unknowns};
}

// ---- Functions, and texts that are read as scripts

void ShellReader::function_behind_name(const std::string& name) {
  skip_newlines();
  if (!words_.muted) functions_[name] = words_.spot();
  (void)only_if(false, [this] { return command(); });
}

void ShellReader::call(const ShellCommand& command) {
  const ShellWords::Spot back = words_.spot();
  std::vector<ShellVariable> arguments;
  for (std::size_t i = 1; i < command.words.size(); ++i) arguments.push_back({{command.words[i]}});
  std::swap(arguments, words_.variables.arguments);
  const auto documents = std::exchange(documents_, {});
  const ShellWords::Spot body = functions_.at(command.words.front().text);
  words_.go_to(body);
  (void)this->command();
  if (words_.spend(words_.offset() - std::min(words_.offset(), body.at))) words_.go_to(back);
  documents_ = documents;
  words_.variables.arguments = std::move(arguments);
  if (flow_ == Flow::exits || flow_ == Flow::goes_on) return;
  flow_ = Flow::goes_on;
  words_.muted = false;
}

// A text that another command reads as a script; `before` are the words of that command.
void ShellReader::run_text(const ShellText& text, const std::vector<ShellText>& before) {
  if (!words_.spend(text.text.size() + text.unknowns.size())) return;
  if (++depth_ > deepest_level) words_.give_up(words_.place(), "commands are nested too deeply");
  sources_.push_back(ShellSource::of(text));
  const ShellWords::Spot back = words_.spot();
  const auto documents = std::exchange(documents_, {});
  const int cases = std::exchange(open_cases_, 0);
  std::vector<ShellText> outer = before_;
  before_.insert(before_.end(), before.begin(), before.end());
  words_.go_to({&sources_.back(), 0});
  while (!words_.at_end()) {
    (void)list({});
    words_.advance();
  }
  before_ = std::move(outer);
  open_cases_ = cases;
  documents_ = documents;
  words_.go_to(back);
  --depth_;
}

// ---- Between commands

void ShellReader::skip_separators() {
  while (!words_.at_end()) {
    words_.skip_blanks();
    const char c = words_.peek();
    if (c == '\n') {
      end_line();
    } else if (c == ';' && open_cases_ > 0 && words_.starts_with(";;")) {
      return;
    } else if (c == ';' || c == '&') {
      words_.advance();
    } else {
      return;
    }
  }
}

void ShellReader::skip_newlines() {
  words_.skip_blanks();
  while (words_.peek() == '\n') {
    end_line();
    words_.skip_blanks();
  }
}

// Here-documents begin on the line behind their commands.
void ShellReader::end_line() {
  words_.advance();
  for (const Document& document : std::exchange(documents_, {})) take_document(document);
}

void ShellReader::take_document(const Document& document) {
  const ShellWords::Spot begin = words_.spot();
  std::size_t end = begin.at;
  while (!words_.at_end()) {
    end = words_.offset();
    const std::string_view rest = words_.rest();
    const std::string_view line = rest.substr(0, rest.find('\n'));
    words_.advance(line.size() + 1);
    const std::size_t first = std::min(line.find_first_not_of('\t'), line.size());
    if (line.substr(first) == document.end) break;
    end = words_.offset();
  }
  if (words_.muted) return;
  const DocumentText text{begin, end, document.is_literal};
  if (!document.file.empty()) files_[document.file] = text;
  if (!document.variable.empty()) words_.assign(document.variable, {text_of(text)}, ShellWords::Assignment::replace);
  if (document.is_run) (void)tried([&] { run_text(text_of(text), {}); });
}

ShellText ShellReader::text_of(const DocumentText& document) {
  const ShellWords::Spot back = words_.spot();
  words_.go_to(document.begin);
  ShellText text;
  text.begin = words_.place();
  if (!document.is_literal) {
    text = words_.document(document.end);
  } else {
    for (; !words_.at_end() && words_.offset() < document.end; words_.advance())
      text.add(words_.peek(), words_.place());
  }
  words_.go_to(back);
  return text;
}

// The word here, if all of it is letters, or a brace.
std::string_view ShellReader::reserved_here() const {
  constexpr std::array<std::string_view, 16> all = {"if",   "then",     "elif",  "else",  "fi",     "for",
                                                    "do",   "done",     "while", "until", "select", "case",
                                                    "esac", "function", "{",     "}"};
  const std::string_view rest = words_.rest();
  const std::size_t size = std::min(rest.find_first_of(" \t\r\n;&|()<>"), rest.size());
  const auto found = std::find(all.begin(), all.end(), rest.substr(0, size));
  return found == all.end() ? std::string_view() : rest.substr(0, size);
}

// ---- Notes

void ShellReader::not_known(const std::string& what, std::uint32_t begin, const std::vector<std::string>& names) {
  if (words_.muted) ++effects_;
  if (words_.muted) return;
  const std::string why = fmt::format("it is set in line {}", line_of(begin));
  for (const std::string& name : names) words_.forget(name, why);
  note(begin, fmt::format("{} is not followed: --var NAME=VALUE gives what it sets", what));
}

void ShellReader::note_ignored_part(const Choice& choice) {
  const auto& unknowns = choice.cause.unknowns;
  const bool lacks_value = !unknowns.empty() && unknowns.front().kind == ShellUnknown::Kind::not_set;
  const std::string why =
      lacks_value ? fmt::format("{} has no value here", unknowns.front().what) : "the condition depends on the machine";
  note(static_cast<std::uint32_t>(choice.begin),
       fmt::format("{}: what depends on it, up to line {}, is ignored", why, line_of(words_.place())));
}

void ShellReader::note_defaults() {
  std::vector<std::string> all;
  for (const auto& [name, value] : words_.defaults()) all.push_back(fmt::format("{} ({})", name, value));
  if (all.empty()) return;
  script_.notes.push_back({ImportNote::Kind::assumed,
                           {},
                           fmt::format("defaults count for what {} does not set: {}", file_, joined(all, ", "))});
}

void ShellReader::note_unused() {
  for (const std::string& name : words_.variables.unused()) {
    script_.notes.push_back({ImportNote::Kind::assumed,
                             {},
                             fmt::format("--var {}=VALUE has no effect: {} does not use {}", name, file_, name)});
  }
}

void ShellReader::note(std::uint32_t begin, std::string text) {
  script_.notes.push_back({ImportNote::Kind::assumed, script_.position(file_, begin), std::move(text)});
}

void ShellReader::count_effect(const ShellText& word) {
  if (word.text.starts_with("--")) ++effects_;
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
  return ShellReader(file, text, diagnostics).read(variables);
}

}  // namespace hdpsim
