#include "sim/import/impl/megatron_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/text.h"

namespace hdpsim {
namespace {

using Kind = ArgumentRule::Kind;
using Role = ArgumentRule::Role;

bool is_switch(const ArgumentRule& rule) {
  return rule.kind == Kind::turns_on || rule.kind == Kind::turns_off;
}

std::string text_of(const Argument& argument) {
  std::string text = argument.written;
  for (const ArgumentValue& value : argument.values) text += ' ' + (value.text.empty() ? value.unset : value.text);
  if (argument.is_switch) text += argument.is_on ? ": true" : ": false";
  return text;
}

// Whether a switch leaves its key true. A key of a document states that itself; an option there, whether it is given.
bool truth_of(const ArgumentRule& rule, const Argument& argument) {
  const bool says_option = with_underscores(argument.written) == with_underscores(rule.option);
  const bool is_given = argument.is_switch ? argument.is_on : true;
  return says_option && rule.kind == Kind::turns_off ? !is_given : is_given;
}

// Whether it has another value than the usual one.
bool says_something(const ArgumentRule& rule, const Argument& argument) {
  if (is_switch(rule)) return truth_of(rule, argument) == (rule.kind == Kind::turns_on);
  if (argument.is_switch) return argument.is_on;
  return std::any_of(argument.values.begin(), argument.values.end(),
                     [&](const ArgumentValue& value) { return value.text != rule.usual || !value.unset.empty(); });
}

}  // namespace

MegatronArguments::MegatronArguments(const ArgumentList& list, std::string file, Diagnostics& diagnostics,
                                     ImportNotes& notes)
    : file_(std::move(file)), diagnostics_(diagnostics), notes_(notes) {
  for (const Argument& argument : list.arguments) take(argument);
  for (const auto& [key, stated] : stated_) note_rule(stated);
  if (list.states_defaults) join_defaults();
}

// Where all arguments are listed, those that the user set are not known: names are enough.
void MegatronArguments::join_defaults() {
  std::vector<std::string> names;
  for (const ImportNote& note : notes_) {
    if (note.kind == ImportNote::Kind::unknown) names.push_back(note.text.substr(0, note.text.find_first_of(": ")));
  }
  std::erase_if(notes_, [](const ImportNote& note) {
    return note.kind == ImportNote::Kind::unknown || note.kind == ImportNote::Kind::ignored;
  });
  if (names.empty()) return;
  std::sort(names.begin(), names.end());
  notes_.push_back({ImportNote::Kind::unknown, {}, joined(names, ", ")});
}

void MegatronArguments::take(const Argument& argument) {
  const ArgumentRule* rule = rule_of(argument.written);
  if (rule == nullptr) {
    if (argument.is_launcher || (argument.is_switch && !argument.is_on)) return;
    const NameHint* hint = hint_of_name(argument.written);
    const std::string text = text_of(argument);
    notes_.push_back({ImportNote::Kind::unknown, argument.position,
                      hint == nullptr ? text : difference_text(text, hint->follows, hint->effect)});
    return;
  }
  const std::string key = rule->role == Role::idle ? with_underscores(argument.written) : key_of(*rule);
  Stated stated{rule, argument};
  check_values(stated.argument, *rule);
  const auto [place, is_new] = stated_.emplace(key, stated);
  if (is_new) return;
  if (rule->role != Role::idle && text_of(place->second.argument) != text_of(stated.argument)) {
    notes_.push_back({ImportNote::Kind::repeated, stated.argument.position,
                      fmt::format("{} (before: {})", text_of(stated.argument), text_of(place->second.argument))});
  }
  place->second = std::move(stated);
}

// What the shell leaves of an unset variable is nothing. Words behind a switch are of nobody.
void MegatronArguments::check_values(Argument& argument, const ArgumentRule& rule) const {
  if (rule.role == Role::idle) return;
  auto& values = argument.values;
  if (values.size() > 1 || is_switch(rule)) {
    for (const ArgumentValue& value : values) {
      if (value.text.empty() && !value.unset.empty()) {
        notes_.push_back({ImportNote::Kind::assumed, value.position,
                          fmt::format("{} has no value here, and counts as empty", value.unset)});
      }
    }
    std::erase_if(values, [](const ArgumentValue& value) { return value.text.empty() && !value.unset.empty(); });
  }
  if (is_switch(rule)) {
    const bool says_truth = values.size() == 1 && (values[0].text == "true" || values[0].text == "false");
    if (says_truth) {
      argument.is_switch = true;
      argument.is_on = values[0].text == "true";
    } else if (!values.empty()) {
      notes_.push_back({ImportNote::Kind::unknown, values[0].position,
                        fmt::format("{} (behind {}, which has no value)", values[0].text, argument.written)});
    }
    values.clear();
  }
}

void MegatronArguments::note_rule(const Stated& stated) const {
  const auto& [rule, argument] = stated;
  const bool needs_value = rule->role != Role::idle && !is_switch(*rule);
  if (needs_value && argument.values.empty() && !argument.is_switch) {
    diagnostics_.error(argument.position, fmt::format("{} has no value", argument.written),
                       "a variable behind it may have none in this file: --var NAME=VALUE gives it one");
  }
  if (rule->role == Role::idle) {
    std::string name = with_underscores(argument.written);
    std::replace(name.begin(), name.end(), '_', '-');
    notes_.push_back({ImportNote::Kind::ignored, argument.position, std::move(name)});
  } else if (rule->role != Role::stated && !says_something(*rule, argument)) {
    return;
  } else if (rule->role == Role::unmodelled) {
    notes_.push_back({ImportNote::Kind::unmodelled, argument.position,
                      difference_text(text_of(argument), rule->follows, rule->effect)});
  } else if (rule->role == Role::refused) {
    diagnostics_.unsupported(argument.position, fmt::format("{} is {}", argument.written, rule->follows));
  }
}

Position MegatronArguments::position(std::string_view key) const {
  const auto found = stated_.find(key);
  if (found == stated_.end()) return {file_, 0, 0};
  const Argument& argument = found->second.argument;
  return argument.values.empty() ? argument.position : argument.values.front().position;
}

std::string MegatronArguments::written(std::string_view key) const {
  const auto found = stated_.find(key);
  if (found != stated_.end()) return found->second.argument.written;
  std::string option = "--" + std::string(key);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

// The value of an argument that has to be known.
const ArgumentValue* MegatronArguments::value(std::string_view key) const {
  const auto found = stated_.find(key);
  if (found == stated_.end()) return nullptr;
  const Argument& argument = found->second.argument;
  if (argument.values.size() != 1) {
    if (!argument.values.empty() || argument.is_switch) {
      diagnostics_.error(argument.position, fmt::format("{} must have one value", argument.written));
    }
    return nullptr;
  }
  const ArgumentValue& value = argument.values.front();
  if (value.unset.empty()) return &value;
  diagnostics_.error(value.position,
                     fmt::format("{}: this file does not state {}{}{}", argument.written, value.unset,
                                 value.why.empty() ? "" : ": ", value.why),
                     value.variable.empty() ? "write the value itself"
                                            : fmt::format("--var {}=VALUE gives it a value", value.variable));
  return nullptr;
}

std::optional<std::int64_t> MegatronArguments::number(std::string_view key, Range range) const {
  const ArgumentValue* stated = value(key);
  if (stated == nullptr) return std::nullopt;
  return read_in<std::int64_t>(Value::scalar(stated->text, stated->position), written(key), range, diagnostics_);
}

bool MegatronArguments::is_number(std::string_view key) const {
  const auto found = stated_.find(key);
  if (found == stated_.end() || found->second.argument.values.size() != 1) return false;
  const ArgumentValue& value = found->second.argument.values.front();
  return value.unset.empty() && !value.text.empty() && value.text.find_first_not_of("0123456789") == std::string::npos;
}

std::int64_t MegatronArguments::required(std::string_view key, Range range) const {
  if (!has(key)) diagnostics_.error({file_, 0, 0}, fmt::format("{} is missing", written(key)));
  return number(key, range, 0);
}

double MegatronArguments::fraction(std::string_view key, double otherwise) const {
  const ArgumentValue* stated = value(key);
  if (stated == nullptr) return otherwise;
  return read_in<double>(Value::scalar(stated->text, stated->position), fmt::format("'{}'", key), {0, 1}, diagnostics_)
      .value_or(otherwise);
}

std::string MegatronArguments::word(std::string_view key, std::string_view otherwise) const {
  const ArgumentValue* stated = value(key);
  return stated == nullptr ? std::string(otherwise) : stated->text;
}

std::vector<std::string> MegatronArguments::words(std::string_view key) const {
  std::vector<std::string> all;
  const auto found = stated_.find(key);
  if (found == stated_.end()) return all;
  for (const ArgumentValue& value : found->second.argument.values) all.push_back(value.text);
  return all;
}

bool MegatronArguments::is_on(std::string_view key) const {
  const auto found = stated_.find(key);
  if (found != stated_.end()) return truth_of(*found->second.rule, found->second.argument);
  const ArgumentRule* rule = rule_of(key);
  return rule != nullptr && rule->kind == Kind::turns_off;
}

void MegatronArguments::note_unmodelled(std::string_view key, std::string_view follows,
                                        const LikelyEffect& effect) const {
  const auto found = stated_.find(key);
  const std::string text = found == stated_.end() ? written(key) : text_of(found->second.argument);
  notes_.push_back({ImportNote::Kind::unmodelled, found == stated_.end() ? Position{} : found->second.argument.position,
                    difference_text(text, follows, effect)});
}

void MegatronArguments::refuse_second_of(std::span<const std::string_view> keys) const {
  std::string_view first;
  for (const std::string_view key : keys) {
    // Logs and checkpoints have what Megatron-LM derives from an option, too, by its key.
    if (!has(key) || !written(key).starts_with("--")) continue;
    if (first.empty()) {
      first = key;
      continue;
    }
    diagnostics_.error(position(key), fmt::format("'{}' says what '{}' says already", key, first),
                       "remove one of them");
  }
}

void MegatronArguments::assume(std::string text, Position position) const {
  notes_.push_back({ImportNote::Kind::assumed, std::move(position), std::move(text)});
}

}  // namespace hdpsim
