#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/import/impl/shell_words.h"
#include "sim/import/shell_script.h"

namespace hdpsim {

/// Follows a script: runs what it does to its variables, and keeps the commands that it would start.
class ShellReader {
 public:
  ShellReader(const std::string& file, const std::string& text, Diagnostics& diagnostics);

  ShellScript read(const std::map<std::string, std::string>& variables);

 private:
  /// How a command ended, as far as that is known.
  struct Ending {
    std::optional<bool> truth;
    bool is_test = false;                     ///< A condition, and no command that is run for what it does.
    std::vector<ShellUnknown> unknowns = {};  ///< The unknown parts of the condition.

    /// Whether what follows `&&` runs: commands are taken to succeed.
    [[nodiscard]] std::optional<bool> succeeds() const { return is_test ? truth : std::optional(true); }
  };
  /// What a part of the script may have done.
  struct Outcome {
    ShellVariables::Changes changes;
    bool ended = false;  ///< What follows it does not run.
  };
  /// One of several parts runs, or none.
  struct Choice {
    std::size_t begin = 0;  ///< Its place in the script.
    std::vector<Outcome> outcomes = {};
    Ending cause = {};
    bool is_done = false;  ///< No further part can run.
  };
  enum class Answer : std::uint8_t { no, yes, perhaps };
  /// Which of the commands that follow in a list, a loop or a function are skipped.
  enum class Flow : std::uint8_t { goes_on, breaks, continues, returns, exits };
  /// A here-document that begins on the next line.
  struct Document {
    std::string end;
    bool is_literal = false;    ///< Nothing in it is expanded.
    bool is_run = false;        ///< A shell reads it.
    std::string file = {};      ///< It is written there.
    std::string variable = {};  ///< `read -d ''` sets it to all of it.
  };
  /// The place of its text.
  struct DocumentText {
    ShellWords::Spot begin;
    std::size_t end = 0;
    bool is_literal = false;
  };
  struct SimpleCommand {
    ShellCommand command;
    std::string output;              ///< The file to which it writes; empty: none.
    std::size_t first_document = 0;  ///< Of documents_, its own.
    bool is_declaration = false;
    bool has_assignments = false;  ///< In front of it, for it alone.
  };

  // ---- Lists (shell_reader.cpp)
  Ending list(std::initializer_list<std::string_view> ends);
  Ending alternatives();
  void alternative(Ending& left, bool is_and);
  Ending pipeline();
  Ending command();
  Ending command_here();
  Ending compound(std::string_view reserved);
  Ending subshell();
  Ending command_in();
  Ending arithmetic_command();
  void function_behind_name(const std::string& name);
  void call(const ShellCommand& command);
  void run_text(const ShellText& text, const std::vector<ShellText>& before);
  void skip_separators();
  void skip_newlines();
  void end_line();
  void take_document(const Document& document);
  ShellText text_of(const DocumentText& document);
  [[nodiscard]] std::string_view reserved_here() const;

  // ---- Parts of which some run (shell_choices.cpp)
  Ending if_command();
  Ending case_command();
  Ending for_command();
  Ending while_command(bool until);
  Answer pattern_answer(const ShellText& word);
  void run_loop_body(const ShellWords::Spot& body);
  bool turn_ended();
  template <class Act>
  void take_part(Choice& choice, Answer answer, const Ending& cause, const Act& act);
  void skip_part(const Choice& choice, const Ending& cause, std::size_t begin, int effects_before);
  void end_choice(Choice& choice);
  void join(const std::string& name, const Choice& choice, const std::vector<const Outcome*>& possible);
  template <class Act>
  Outcome tried(const Act& act);
  template <class Act>
  Ending only_if(bool runs, const Act& act);

  // ---- One command (shell_commands.cpp)
  Ending simple_command();
  void end_assignments(SimpleCommand& simple);
  [[nodiscard]] static std::string read_whole(const ShellCommand& command);
  Ending ended(SimpleCommand& simple);
  std::optional<Ending> builtin(const ShellCommand& command);
  void set_flow(const std::string& name);
  void declare(const ShellCommand& command);
  bool run_inner(const ShellCommand& command);
  Ending double_brackets();
  static Ending tested(const std::vector<ShellText>& words);
  [[nodiscard]] std::size_t assignment_length() const;
  void assignment();
  void redirection(SimpleCommand& simple);

  // ---- Notes
  void not_known(const std::string& what, std::uint32_t begin, const std::vector<std::string>& names);
  void note_ignored_part(const Choice& choice);
  void note_defaults();
  void note_unused();
  void note(std::uint32_t begin, std::string text);
  void count_effect(const ShellText& word);
  [[nodiscard]] int line_of(std::uint32_t place) const { return script_.position(file_, place).line; }

  std::string file_;
  ShellWords words_;
  ShellScript script_;
  std::deque<ShellSource> sources_;                    // texts that are read as scripts
  std::vector<ShellText> before_;                      // words before the command whose text is read
  std::map<std::string, ShellWords::Spot> functions_;  // bodies
  std::map<std::string, DocumentText> files_;          // what here-documents write
  std::vector<Document> documents_;
  std::string ended_by_;
  Flow flow_ = Flow::goes_on;
  int depth_ = 0;
  int open_cases_ = 0;
  int effects_ = 0;  // of what was not run: assignments and arguments
};

template <class Act>
ShellReader::Ending ShellReader::only_if(bool runs, const Act& act) {
  const bool was_muted = std::exchange(words_.muted, words_.muted || !runs);
  Ending ending = act();
  words_.muted = was_muted || flow_ != Flow::goes_on;
  return ending;
}

// What it does is taken back: it may not have run.
template <class Act>
ShellReader::Outcome ShellReader::tried(const Act& act) {
  words_.variables.open();
  const bool was_muted = words_.muted;
  act();
  Outcome outcome{words_.variables.take_back(), flow_ != Flow::goes_on};
  if (!was_muted) flow_ = Flow::goes_on;
  words_.muted = was_muted;
  return outcome;
}

template <class Act>
void ShellReader::take_part(Choice& choice, Answer answer, const Ending& cause, const Act& act) {
  const std::size_t begin = words_.place();
  const int before = effects_;
  if (choice.is_done || answer == Answer::no || words_.muted) {
    (void)only_if(false, act);
    return skip_part(choice, cause, begin, before);
  }
  const bool is_sure = answer == Answer::yes && choice.outcomes.empty();
  if (is_sure && cause.unknowns.empty()) {
    (void)only_if(true, act);
    choice.is_done = true;
    return;
  }
  Outcome outcome = tried(act);
  if (is_sure && !outcome.ended) {  // a missing value counts as empty, unless the script then gives up
    words_.variables.apply(std::move(outcome.changes));
    choice.is_done = true;
    return;
  }
  choice.is_done = answer == Answer::yes && cause.unknowns.empty();
  if (choice.cause.unknowns.empty()) choice.cause = cause;
  choice.outcomes.push_back(std::move(outcome));
}

}  // namespace hdpsim
