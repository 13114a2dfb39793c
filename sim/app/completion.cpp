#include "sim/app/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/text.h"

namespace hdpsim::app {
namespace {

// Quotes a text with single quotes for a POSIX shell.
std::string quoted(const std::string& text) {
  std::string safe = "'";
  for (const char c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return safe + "'";
}

std::vector<std::string> words_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> words;
  words.reserve(commands.size());
  for (const CommandText& command : commands) words.push_back(command.word());
  return words;
}

std::vector<std::string> names_of(const std::vector<OptionText>& options) {
  std::vector<std::string> names;
  for (const OptionText& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// Visits commands depth first, the command itself before those below it.
template <class Visit>
void for_each(const CommandText& command, const Visit& visit) {
  visit(command);
  for (const CommandText& below : command.commands) for_each(below, visit);
}

// ---- bash: the words before the cursor choose a command by its name; then its options, their values, or files.

std::string bash_values(const OptionText& option) {
  if (!option.choices.empty())
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", joined(option.choices, " "));
  if (option.takes_path()) return "COMPREPLY=($(compgen -f -- \"$current\"))";
  return "COMPREPLY=()";
}

std::string bash_words(const CommandText& command) {
  std::vector<std::string> words = words_of(command.commands);
  for (const OptionText& positional : command.positionals) {
    words.insert(words.end(), positional.choices.begin(), positional.choices.end());
  }
  return joined(words, " ");
}

std::string bash_script(const CommandText& program) {
  std::string commands;
  std::string values;
  std::string names;
  for_each(program, [&](const CommandText& command) {
    if (command.name != program.name)
      commands += fmt::format("      '{}') command=\"$command $word\" ;;\n", command.name);
    for (const OptionText& option : command.options) {
      if (option.value.empty()) continue;
      for (const std::string& name : option.names) {
        values += fmt::format("    '{} {}') {}; return ;;\n", command.name, name, bash_values(option));
      }
    }
    names += fmt::format("    '{}') options='{}' words='{}' ;;\n", command.name, joined(names_of(command.options), " "),
                         bash_words(command));
  });
  return fmt::format(R"(# Completion of {0} for bash: source this file, or keep it in
# ~/.local/share/bash-completion/completions/{0}
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command={0} word options= words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    case "$command $word" in
{1}    esac
  done
  case "$command $previous" in
{2}  esac
  case "$command" in
{3}  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _{0} {0}
)",
                     program.name, commands, values, names);
}

// ---- zsh: a function per command, each with one call of _arguments.

// Escapes a text within the brackets of an _arguments specification.
std::string in_brackets(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string zsh_action(const OptionText& option) {
  if (!option.choices.empty()) return fmt::format("({})", joined(option.choices, " "));
  return option.takes_path() ? "_files" : " ";
}

std::string zsh_options(const CommandText& command) {
  std::string text;
  for (const OptionText& option : command.options) {
    for (const std::string& name : option.names) {
      const std::string value =
          option.value.empty() ? "" : fmt::format(":{}:{}", in_brackets(option.value), zsh_action(option));
      text +=
          fmt::format(" \\\n    {}", quoted(fmt::format("*{}[{}]{}", name, in_brackets(option.description), value)));
    }
  }
  return text;
}

std::string zsh_name(const CommandText& command) {
  std::string name = "_" + command.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::string zsh_leaf(const CommandText& command) {
  std::string positionals;
  for (const OptionText& positional : command.positionals) {
    positionals +=
        fmt::format(" \\\n    {}", quoted(fmt::format("*:{}:{}", positional.names[0], zsh_action(positional))));
  }
  return fmt::format("{}() {{\n  _arguments{}{}\n}}\n", zsh_name(command), zsh_options(command), positionals);
}

std::string zsh_node(const CommandText& command) {
  std::string described;
  std::string cases;
  for (const CommandText& below : command.commands) {
    described += fmt::format("\n      {}", quoted(fmt::format("{}:{}", below.word(), below.summary)));
    cases += fmt::format("    {}) {} ;;\n", below.word(), zsh_name(below));
  }
  return fmt::format(R"({}() {{
  local state line
  _arguments -C{} \
    '1:command:->command' '*::argument:->argument'
  case $state in
  command)
    local -a commands=({})
    _describe command commands ;;
  argument)
    case $line[1] in
{}    esac ;;
  esac
}}
)",
                     zsh_name(command), zsh_options(command), described, cases);
}

std::string zsh_script(const CommandText& program) {
  std::string text =
      fmt::format("#compdef {}\n# Completion of {} for zsh: keep this file as _{} in a folder of $fpath.\n",
                  program.name, program.name, program.name);
  for_each(program, [&](const CommandText& command) {
    text += fmt::format("\n{}", command.commands.empty() ? zsh_leaf(command) : zsh_node(command));
  });
  return text + fmt::format("\n_{} \"$@\"\n", program.name);
}

// ---- fish: a line per command and option, each with the condition under which it is offered.

std::string fish_condition(const CommandText& program, const CommandText& command) {
  if (command.name == program.name) return "__fish_use_subcommand";
  std::string words = command.name.substr(program.name.size() + 1);
  std::string condition;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t end = words.find(' ', at);
    condition +=
        (condition.empty() ? "" : "; and ") +
        fmt::format("__fish_seen_subcommand_from {}", words.substr(at, end == std::string::npos ? end : end - at));
    at = end == std::string::npos ? end : end + 1;
  }
  if (command.commands.empty()) return condition;
  return fmt::format("{}; and not __fish_seen_subcommand_from {}", condition, joined(words_of(command.commands), " "));
}

std::string fish_quoted(const std::string& text) {
  std::string safe = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe + "'";
}

std::string fish_option(const std::string& condition, const OptionText& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  std::string value = option.value.empty() ? "" : option.takes_path() ? " -r -F" : " -x";
  if (!option.choices.empty()) value += fmt::format(" -a '{}'", joined(option.choices, " "));
  return fmt::format("complete -c hdpsim -n {}{}{} -d {}\n", fish_quoted(condition), names, value,
                     fish_quoted(option.description));
}

std::string fish_script(const CommandText& program) {
  std::string text =
      fmt::format("# Completion of {0} for fish: keep it as ~/.config/fish/completions/{0}.fish\n", program.name);
  for_each(program, [&](const CommandText& command) {
    const std::string condition = fish_condition(program, command);
    for (const CommandText& below : command.commands) {
      text += fmt::format("complete -c {} -f -n {} -a {} -d {}\n", program.name, fish_quoted(condition), below.word(),
                          fish_quoted(below.summary));
    }
    for (const OptionText& positional : command.positionals) {
      if (positional.choices.empty()) continue;
      text += fmt::format("complete -c {} -f -n {} -a '{}'\n", program.name, fish_quoted(condition),
                          joined(positional.choices, " "));
    }
    for (const OptionText& option : command.options) text += fish_option(condition, option);
  });
  return text;
}

}  // namespace

const std::vector<std::string>& shell_names() {
  static const std::vector<std::string> names = {"bash", "zsh", "fish"};
  return names;
}

std::string completion_script(const std::string& shell, const CommandText& program) {
  if (shell == "bash") return bash_script(program);
  if (shell == "zsh") return zsh_script(program);
  HDPSIM_CHECK(shell == "fish", "there is no completion for the shell '{}'", shell);
  return fish_script(program);
}

}  // namespace hdpsim::app
