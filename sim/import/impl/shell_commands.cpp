#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "sim/import/impl/shell_builtins.h"
#include "sim/import/impl/shell_evaluation.h"
#include "sim/import/impl/shell_reader.h"

namespace hdpsim {
namespace {

constexpr std::array<std::string_view, 6> shells = {"bash", "sh", "zsh", "dash", "sbatch", "ssh"};
constexpr std::size_t shells_with_texts = 4;  // behind -c

bool names_variable(std::string_view text) {
  const auto belongs = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(), belongs);
}

std::string_view program_of(const ShellText& word) {
  return std::string_view(word.text).substr(word.text.find_last_of('/') + 1);
}

bool is_shell(const ShellText& word) {
  return std::find(shells.begin(), shells.end(), program_of(word)) != shells.end();
}

bool takes_text(const ShellText& word) {
  const auto end = shells.begin() + shells_with_texts;
  return std::find(shells.begin(), end, program_of(word)) != end;
}

}  // namespace

bool declares(const std::string& command) {
  return command == "export" || command == "declare" || command == "local" || command == "readonly" ||
         command == "typeset";
}

bool asks_machine(std::string_view command) {
  constexpr std::array<std::string_view, 12> all = {"command", "which", "type", "hash", "grep",    "egrep",
                                                    "pgrep",   "diff",  "cmp",  "nc",   "getopts", "nvidia-smi"};
  return std::find(all.begin(), all.end(), command) != all.end();
}

bool says_words(std::string_view command) {
  constexpr std::array<std::string_view, 5> all = {"echo", "printf", "cat", "logger", "tee"};
  return std::find(all.begin(), all.end(), command) != all.end();
}

std::optional<std::vector<std::string>> names_set_by_builtin(const ShellCommand& command) {
  const std::string& name = command.words.front().text;
  std::vector<std::string> names;
  if (name == "getopts" && command.words.size() > 2) return std::vector<std::string>{command.words[2].text, "OPTARG"};
  if (name == "printf") {
    if (command.words.size() < 3 || command.words[1].text != "-v") return std::nullopt;
    return std::vector{command.words[2].text};
  }
  const bool takes_names = name == "read" || name == "mapfile" || name == "readarray";
  if (!takes_names && name != "let") return std::nullopt;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    if (takes_names) {
      names.push_back(word);
      continue;
    }
    std::vector<std::string> set = names_set_by_arithmetic(word);
    std::move(set.begin(), set.end(), std::back_inserter(names));
  }
  return names;
}

// The variable of `read -r -d '' NAME`, which takes a whole here-document; empty if it is another command.
std::string ShellReader::read_whole(const ShellCommand& command) {
  const auto& words = command.words;
  if (words.size() < 4 || words.front().text != "read") return {};
  for (std::size_t i = 1; i + 2 < words.size(); ++i) {
    const bool ends_nowhere =
        words[i].text.ends_with('d') && words[i].text.starts_with('-') && words[i + 1].text.empty();
    if (ends_nowhere) return words.back().text;
  }
  return {};
}

// ---- Simple commands

ShellReader::Ending ShellReader::simple_command() {
  SimpleCommand simple;
  simple.first_document = documents_.size();
  auto& words = simple.command.words;
  while (true) {
    words_.skip_blanks();
    const char c = words_.peek();
    if (words_.at_end() || c == '\n' || c == ';' || c == '|' || c == ')') break;
    if (c == '&' && words_.peek(1) != '>') break;
    if (c == '<' || c == '>' || c == '&') {
      redirection(simple);
    } else if ((words.empty() || simple.is_declaration) && assignment_length() > 0) {
      if (words.empty() && !simple.has_assignments) words_.variables.open();
      simple.has_assignments = simple.has_assignments || words.empty();
      assignment();
    } else if (c == '(') {
      words_.advance();
      words_.skip_blanks();
      if (words.size() <= 1 && words_.peek() == ')') {
        words_.advance();
        end_assignments(simple);
        function_behind_name(words.empty() ? std::string() : words.front().text);
        return {};
      }
    } else {
      end_assignments(simple);
      for (ShellText& word : words_.word()) words.push_back(std::move(word));
      simple.is_declaration = simple.is_declaration || (words.size() == 1 && declares(words.front().text));
      if (words.size() == 1 && words.front().text == "[[") return double_brackets();
    }
  }
  if (simple.has_assignments) words_.variables.apply(words_.variables.take_back());
  return ended(simple);
}

// Assignments in front of a command hold for it alone: the words of the command do not see them.
void ShellReader::end_assignments(SimpleCommand& simple) {
  if (!simple.has_assignments) return;
  for (auto& [name, value] : words_.variables.take_back()) {
    if (value && value->items.size() == 1) simple.command.environment.insert_or_assign(name, value->items.front());
  }
  simple.has_assignments = false;
}

ShellReader::Ending ShellReader::ended(SimpleCommand& simple) {
  ShellCommand& command = simple.command;
  if (words_.muted) {
    for (const ShellText& word : command.words) count_effect(word);
    return {};
  }
  if (command.words.empty()) return {};
  const std::string name = command.words.front().text;
  for (std::size_t i = simple.first_document; i < documents_.size(); ++i) {
    documents_[i].is_run = std::any_of(command.words.begin(), command.words.end(), is_shell);
    documents_[i].file = simple.output;
    documents_[i].variable = read_whole(command);
  }
  if (const auto known = builtin(command)) return *known;
  if (functions_.count(name) > 0) {
    call(command);
    return {};
  }
  if (run_inner(command)) return {};
  const bool asks = asks_machine(name);
  ShellUnknown question{.what = fmt::format("`{}`", joined_words(command.words).text.substr(0, 40))};
  command.words.insert(command.words.begin(), before_.begin(), before_.end());
  script_.commands.push_back(std::move(command));
  if (!asks) return {};
  return {.truth = std::nullopt, .is_test = true, .unknowns = {std::move(question)}};
}

// What the shell does itself; empty if it is another command.
std::optional<ShellReader::Ending> ShellReader::builtin(const ShellCommand& command) {
  const std::string& name = command.words.front().text;
  if (name == "[" || name == "test") {
    std::vector<ShellText> words(command.words.begin() + 1, command.words.end());
    if (name == "[" && !words.empty()) words.pop_back();
    return tested(words);
  }
  if (name == "true" || name == "false" || name == ":")
    return Ending{.truth = name != "false", .is_test = true, .unknowns = {}};
  if (name == "exit" || name == "return" || name == "break" || name == "continue") {
    set_flow(name);
    return Ending{};
  }
  if (name == "let") {
    Ending last{.truth = std::nullopt, .is_test = true, .unknowns = {}};
    bool is_known = true;
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const auto value = words_.evaluated(command.words[i], command.words[i].begin);
      is_known = is_known && value.has_value();
      if (value) last.truth = *value != 0;
    }
    if (is_known) return last;
  }
  if (const auto names = names_set_by_builtin(command)) {
    not_known(fmt::format("'{}'", name), command.words.front().begin, *names);
    return Ending{.truth = std::nullopt, .is_test = name != "printf", .unknowns = {}};
  }
  if (name == "eval") {
    run_text(joined_words({command.words.begin() + 1, command.words.end()}), {});
    return Ending{};
  }
  if (name == "unset") {
    for (const ShellText& word : command.words) words_.variables.set(word.text, std::nullopt);
    return Ending{};
  }
  if (name == "shift") {
    auto& arguments = words_.variables.arguments;
    const std::size_t count = command.words.size() > 1 ? std::strtoul(command.words[1].text.c_str(), nullptr, 10) : 1;
    arguments.erase(arguments.begin(),
                    arguments.begin() + static_cast<std::ptrdiff_t>(std::min(count, arguments.size())));
    return Ending{};
  }
  if (!declares(name)) return std::nullopt;
  declare(command);
  return Ending{};
}

void ShellReader::set_flow(const std::string& name) {
  flow_ = name == "exit"     ? Flow::exits
          : name == "return" ? Flow::returns
          : name == "break"  ? Flow::breaks
                             : Flow::continues;
  words_.muted = true;
}

// Words of `export` and its kin that quotes or expansions made assignments.
void ShellReader::declare(const ShellCommand& command) {
  for (const ShellText& word : command.words) {
    const std::size_t equals = word.text.find('=');
    if (equals != std::string::npos && names_variable(std::string_view(word.text).substr(0, equals))) {
      words_.assign(word.text.substr(0, equals), {word.part(equals + 1, word.text.size())},
                    ShellWords::Assignment::replace);
    } else if (word.is_not_computed()) {
      note(word.begin, fmt::format("what {} sets by {} is not known: --var NAME=VALUE gives it",
                                   command.words.front().text, word.unset()));
    }
  }
}

// A command that has another shell read a text: `bash -c TEXT`, `srun bash FILE`, or any with a text in one word that
// trains.
bool ShellReader::run_inner(const ShellCommand& command) {
  const auto& words = command.words;
  if (says_words(words.front().text)) return false;
  const auto shell = std::find_if(words.begin(), words.end(), is_shell);
  for (auto word = shell; word != words.end(); ++word) {
    const bool is_text =
        word != shell && takes_text(*shell) && (word - 1)->text.starts_with('-') && (word - 1)->text.ends_with('c');
    const auto file = files_.find(word->text);
    if (!is_text && file == files_.end()) continue;
    const ShellText text = is_text ? *word : text_of(file->second);
    (void)tried([&] { run_text(text, {words.begin(), shell}); });
    return true;
  }
  const auto inner = std::find_if(words.begin(), words.end(), [](const ShellText& word) {
    return word.text.find(' ') != std::string::npos && names_training(word.text);
  });
  if (inner == words.end()) return false;
  const std::size_t equals = inner->text.starts_with("--") ? inner->text.find('=') : std::string::npos;
  const std::size_t first = equals == std::string::npos ? 0 : equals + 1;
  (void)tried([&] { run_text(inner->part(first, inner->text.size()), {words.begin(), inner}); });
  return true;
}

// ---- Conditions

ShellReader::Ending ShellReader::double_brackets() {
  std::vector<ShellText> inside;
  while (true) {
    skip_newlines();
    if (words_.at_end()) break;
    const std::string_view sign = words_.starts_with("&&") ? "&&" : words_.starts_with("||") ? "||" : "";
    if (!sign.empty() || std::string_view("()<>;&|").find(words_.peek()) != std::string_view::npos) {
      const std::size_t size = sign.empty() ? 1 : 2;
      ShellText operation = ShellText::of(words_.rest().substr(0, size));
      operation.begin = words_.place();
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

ShellReader::Ending ShellReader::tested(const std::vector<ShellText>& words) {
  Ending ending{.truth = shell_condition(words), .is_test = true, .unknowns = {}};
  for (const ShellText& word : words) {
    ending.unknowns.insert(ending.unknowns.end(), word.unknowns.begin(), word.unknowns.end());
  }
  return ending;
}

// ---- Words of a command that are none

// The length of `NAME=` or `NAME+=`; 0 if there is none here.
std::size_t ShellReader::assignment_length() const {
  const std::string_view rest = words_.rest();
  std::size_t at = 0;
  while (at < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[at])) != 0 || rest[at] == '_')) ++at;
  if (at == 0 || (rest[0] >= '0' && rest[0] <= '9')) return 0;
  if (at < rest.size() && rest[at] == '+') ++at;
  return at < rest.size() && rest[at] == '=' ? at + 1 : 0;
}

void ShellReader::assignment() {
  const std::size_t length = assignment_length();
  std::string name(words_.rest().substr(0, length - 1));
  const bool appends = name.back() == '+';
  if (appends) name.pop_back();
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
  words_.assign(name, std::move(items), !appends ? How::replace : is_list ? How::append_items : How::append_text);
}

void ShellReader::redirection(SimpleCommand& simple) {
  auto& words = simple.command.words;
  if (!words.empty()) {
    const ShellText& last = words.back();
    const bool is_number = !last.text.empty() && last.text.find_first_not_of("0123456789") == std::string::npos;
    const bool is_beside = !last.from.empty() && last.from.back() + 1 == words_.place();
    if (is_number && is_beside) words.pop_back();
  }
  const bool is_document = words_.starts_with("<<") && !words_.starts_with("<<<");
  const bool is_output = words_.peek() == '>';
  while (words_.peek() == '<' || words_.peek() == '>' || words_.peek() == '&') words_.advance();
  if (is_document && words_.peek() == '-') words_.advance();
  words_.skip_blanks();
  if (words_.peek() == '(') {
    (void)tried([this] { (void)command_in(); });
    return;
  }
  const bool is_literal = words_.peek() == '\'' || words_.peek() == '"' || words_.peek() == '\\';
  const ShellText word = words_.whole_word();
  if (is_document) documents_.push_back({.end = word.text, .is_literal = is_literal});
  if (is_output) simple.output = word.text;
}

}  // namespace hdpsim
