#include <fmt/format.h>

#include <algorithm>

#include "sim/import/impl/shell_evaluation.h"
#include "sim/import/impl/shell_reader.h"
#include "sim/import/impl/shell_text.h"

namespace hdpsim {
namespace {

// Whether a variable only has more behind what it had: another item, or more words.
bool extends(const ShellVariable& longer, const ShellVariable& before) {
  const auto same = [](const ShellText& a, const ShellText& b) { return a.text == b.text && a.unset() == b.unset(); };
  const std::size_t count = before.items.size();
  if (count == 0 || longer.items.size() < count) return false;
  if (!std::equal(before.items.begin(), before.items.end() - 1, longer.items.begin(), same)) return false;
  const std::string& old = before.items.back().text;
  const std::string& text = longer.items[count - 1].text;
  if (text == old) return true;
  return longer.items.size() == count && !old.empty() && text.starts_with(old) &&
         (is_shell_blank(text[old.size()]) || is_shell_blank(old.back()));
}

bool are_equal(const std::optional<ShellVariable>& a, const std::optional<ShellVariable>& b) {
  if (!a || !b) return !a && !b;
  return std::equal(a->items.begin(), a->items.end(), b->items.begin(), b->items.end(),
                    [](const ShellText& x, const ShellText& y) { return x.text == y.text && x.unset() == y.unset(); });
}

}  // namespace

// What does not run matters if something that has no value decides so.
void ShellReader::skip_part(const Choice& choice, const Ending& cause, std::size_t begin, int effects_before) {
  if (choice.is_done || words_.muted || effects_ == effects_before || cause.unknowns.empty()) return;
  note_ignored_part({.begin = begin, .outcomes = {}, .cause = cause});
}

// One of the parts has run, or none of them if no answer was sure. Those that end the script have not.
void ShellReader::end_choice(Choice& choice) {
  if (choice.outcomes.empty()) return;
  if (!choice.is_done) choice.outcomes.emplace_back();
  std::vector<const Outcome*> possible;
  for (const Outcome& outcome : choice.outcomes) {
    if (!outcome.ended) possible.push_back(&outcome);
  }
  std::map<std::string, bool> names;
  for (const Outcome* outcome : possible) {
    for (const auto& [name, value] : outcome->changes) names.emplace(name, true);
  }
  const auto notes = script_.notes.size();
  for (const auto& [name, is_changed] : names) join(name, choice, possible);
  if (script_.notes.size() > notes + 1) script_.notes.resize(notes + 1);  // one note for all of them
}

// The value that all parts leave, if it is one. What is only added to it is ignored, with a note; otherwise it is not
// known.
void ShellReader::join(const std::string& name, const Choice& choice, const std::vector<const Outcome*>& possible) {
  const ShellVariable* found = words_.variables.find(name);
  const auto before = found == nullptr ? std::nullopt : std::optional(*found);
  if (before && !words_.spend(before->bytes())) return;
  const auto value_in = [&](const Outcome& outcome) -> const std::optional<ShellVariable>& {
    const auto changed = outcome.changes.find(name);
    return changed == outcome.changes.end() ? before : changed->second;
  };
  const auto& first = value_in(*possible.front());
  const auto is_first = [&](const Outcome* outcome) { return are_equal(value_in(*outcome), first); };
  if (std::all_of(possible.begin(), possible.end(), is_first)) return words_.variables.set(name, first);
  const auto is_longer = [&](const Outcome* outcome) {
    const auto& value = value_in(*outcome);
    return value && before && extends(*value, *before);
  };
  if (std::all_of(possible.begin(), possible.end(), is_longer)) return note_ignored_part(choice);
  const auto& unknowns = choice.cause.unknowns;
  words_.forget(name,
                fmt::format("it depends on {} in line {}", unknowns.empty() ? "the condition" : unknowns.front().what,
                            line_of(static_cast<std::uint32_t>(choice.begin))));
}

// ---- if

ShellReader::Ending ShellReader::if_command() {
  Choice choice{.begin = words_.place(), .outcomes = {}, .cause = {}};
  Ending condition = list({"then"});
  while (!words_.at_end()) {
    const bool is_known = condition.is_test && condition.truth.has_value();
    const Answer answer = !is_known ? Answer::perhaps : *condition.truth ? Answer::yes : Answer::no;
    take_part(choice, answer, condition, [this] { return list({"elif", "else", "fi"}); });
    if (ended_by_ == "elif") {
      condition = only_if(!choice.is_done, [this] { return list({"then"}); });
    } else if (ended_by_ == "else") {
      condition = {.truth = true, .is_test = true, .unknowns = {}};
    } else {
      break;
    }
  }
  end_choice(choice);
  return {};
}

// ---- case

// Of patterns joined by `|`, up to their parenthesis.
ShellReader::Answer ShellReader::pattern_answer(const ShellText& word) {
  Answer answer = Answer::no;
  while (!words_.at_end()) {
    words_.skip_blanks();
    const ShellText pattern = words_.whole_word();
    const bool is_known = word.is_known() && pattern.is_known();
    if (pattern.text == "*" || (is_known && matches_pattern(word.text, pattern.text))) {
      answer = Answer::yes;
    } else if (!is_known && answer == Answer::no) {
      answer = Answer::perhaps;
    }
    words_.skip_blanks();
    if (words_.peek() != '|') break;
    words_.advance();
  }
  if (words_.peek() == ')') words_.advance();
  return answer;
}

ShellReader::Ending ShellReader::case_command() {
  Choice choice{.begin = words_.place(), .outcomes = {}, .cause = {}};
  words_.skip_blanks();
  const ShellText word = words_.whole_word();
  skip_newlines();
  if (words_.starts_with("in")) words_.advance(2);
  ++open_cases_;
  while (!words_.at_end()) {
    skip_separators();
    if (reserved_here() == "esac") {
      words_.advance(4);
      break;
    }
    const std::size_t at = words_.offset();
    if (words_.peek() == '(') words_.advance();
    const Answer answer = pattern_answer(word);
    Ending cause{.truth = {}, .is_test = true, .unknowns = {}};
    if (answer != Answer::yes) cause.unknowns = word.unknowns;
    take_part(choice, answer, cause, [this] { return list({"esac"}); });
    if (ended_by_ == "esac") break;
    while (words_.peek() == ';' || words_.peek() == '&') words_.advance();
    if (words_.offset() == at) words_.advance();
  }
  --open_cases_;
  end_choice(choice);
  return {};
}

// ---- Loops

// Whether a loop ends with the turn that has just been read.
bool ShellReader::turn_ended() {
  const Flow flow = flow_;
  if (flow == Flow::breaks || flow == Flow::continues) {
    flow_ = Flow::goes_on;
    words_.muted = false;
  }
  return flow != Flow::goes_on && flow != Flow::continues;
}

void ShellReader::run_loop_body(const ShellWords::Spot& body) {
  words_.go_to(body);
  (void)list({"done"});
  (void)words_.spend(words_.offset() - std::min(words_.offset(), body.at));
}

ShellReader::Ending ShellReader::for_command() {
  Choice choice{.begin = words_.place(), .outcomes = {}, .cause = {}};
  words_.skip_blanks();
  const bool counts = words_.starts_with("((");
  const std::vector<ShellText> name = counts ? std::vector<ShellText>() : words_.word();
  std::vector<ShellText> items = words_.variables.all_arguments();
  if (counts) (void)only_if(false, [this] { return arithmetic_command(); });
  skip_newlines();
  if (!counts && words_.starts_with("in")) {
    words_.advance(2);
    items.clear();
    for (words_.skip_blanks(); !words_.at_end() && words_.peek() != ';' && words_.peek() != '\n';
         words_.skip_blanks()) {
      const std::size_t at = words_.offset();
      for (ShellText& item : words_.word()) items.push_back(std::move(item));
      if (words_.offset() == at) words_.advance();
    }
  }
  skip_separators();
  if (reserved_here() == "do") words_.advance(2);
  const ShellWords::Spot body = words_.spot();
  const bool is_known = !counts && std::all_of(items.begin(), items.end(), [](auto& item) { return item.is_known(); });
  if (words_.muted || (is_known && items.empty())) {
    return only_if(false, [this] { return list({"done"}); });
  }
  if (!is_known) {
    take_part(choice, Answer::perhaps, Ending{.truth = {}, .is_test = true, .unknowns = {}}, [&] {
      if (!name.empty()) words_.forget(name.front().text, "");
      Ending ending = list({"done"});
      (void)turn_ended();
      return ending;
    });
    end_choice(choice);
    return {};
  }
  for (const ShellText& item : items) {
    words_.assign(name.empty() ? std::string() : name.front().text, {item}, ShellWords::Assignment::replace);
    run_loop_body(body);
    if (turn_ended() || !words_.spend(0)) break;
  }
  return {};
}

ShellReader::Ending ShellReader::while_command(bool until) {
  Choice choice{.begin = words_.place(), .outcomes = {}, .cause = {}};
  const ShellWords::Spot start = words_.spot();
  while (true) {
    const Ending condition = list({"do"});
    const bool is_known = condition.is_test && condition.truth.has_value();
    const bool runs = is_known && *condition.truth != until;
    const ShellWords::Spot body = words_.spot();
    if (words_.muted || !is_known || !runs) {
      const auto turn = [this, before = flow_] {
        Ending ending = list({"done"});
        if (before == Flow::goes_on) (void)turn_ended();
        return ending;
      };
      take_part(choice, is_known ? Answer::no : Answer::perhaps, condition, turn);
      end_choice(choice);
      return {};
    }
    words_.variables.open();
    run_loop_body(body);
    ShellVariables::Changes changes = words_.variables.take_back();
    const bool is_endless = changes.empty();  // another turn would do the same
    words_.variables.apply(std::move(changes));
    if (turn_ended() || is_endless || !words_.spend(words_.offset() - std::min(words_.offset(), start.at))) return {};
    words_.go_to(start);
  }
}

}  // namespace hdpsim
