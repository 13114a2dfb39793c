#include "sim/import/impl/shell_variables.h"

#include <algorithm>
#include <utility>

namespace hdpsim {
namespace {

constexpr std::size_t bytes_of_a_word = 64;
constexpr std::size_t most_arguments = 100;

// The number of an argument of the script; 0 for any other name.
std::size_t argument_number(const std::string& name) {
  const bool is_number = !name.empty() && name.size() <= 2 &&
                         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? std::stoul(name) : 0;
}

}  // namespace

std::size_t ShellVariable::bytes() const {
  std::size_t all = 0;
  for (const ShellText& item : items) all += item.text.size() + bytes_of_a_word;
  return all;
}

const ShellVariable* ShellVariables::find(const std::string& name) const {
  if (const auto fixed = fixed_.find(name); fixed != fixed_.end()) fixed->second = true;
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

void ShellVariables::note(const std::string& name) {
  if (changed_.empty()) return;
  const auto found = variables_.find(name);
  if (changed_.back().count(name) > 0) return;
  if (found != variables_.end()) noted_ += found->second.bytes();
  changed_.back().emplace(name, found == variables_.end() ? std::nullopt : std::optional(found->second));
}

void ShellVariables::set(const std::string& name, std::optional<ShellVariable> value) {
  if (const auto fixed = fixed_.find(name); fixed != fixed_.end()) {
    fixed->second = true;
    return;
  }
  note(name);
  if (value) {
    variables_[name] = std::move(*value);
  } else {
    variables_.erase(name);
  }
}

ShellVariable* ShellVariables::change(const std::string& name) {
  if (const auto fixed = fixed_.find(name); fixed != fixed_.end()) {
    fixed->second = true;
    return nullptr;
  }
  note(name);
  return &variables_[name];
}

ShellVariables::Changes ShellVariables::take_back() {
  Changes before = std::move(changed_.back());
  changed_.pop_back();
  Changes after;
  for (auto& [name, old] : before) {
    const auto now = variables_.find(name);
    after.emplace(name, now == variables_.end() ? std::nullopt : std::optional(std::move(now->second)));
    if (old) {
      variables_[name] = std::move(*old);
    } else {
      variables_.erase(name);
    }
  }
  return after;
}

void ShellVariables::apply(Changes changes) {
  for (auto& [name, value] : changes) set(name, std::move(value));
}

void ShellVariables::fix(const std::string& name, const std::string& value) {
  if (const std::size_t number = argument_number(name); number > 0 && number <= most_arguments) {
    for (std::size_t i = arguments.size(); i < number; ++i) {
      arguments.push_back(
          {{ShellText::unknown({.what = "$" + std::to_string(i + 1), .kind = ShellUnknown::Kind::not_set})}});
    }
    arguments[number - 1].items = {ShellText::of(value)};
    return;
  }
  variables_[name].items = {ShellText::of(value)};
  fixed_.emplace(name, false);
}

std::vector<ShellText> ShellVariables::all_arguments() const {
  std::vector<ShellText> all;
  for (const ShellVariable& argument : arguments) all.insert(all.end(), argument.items.begin(), argument.items.end());
  return all;
}

std::vector<std::string> ShellVariables::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, was_used] : fixed_) {
    if (!was_used) names.push_back(name);
  }
  return names;
}

}  // namespace hdpsim
