#include "sim/app/command_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace hdpsim::app {
namespace {

// Splits what CLI11 calls a type, `FORMAT:{table,csv}`. Its own placeholders, TEXT and so on, carry no information.
void read_type(const std::string& type, OptionText& option) {
  const std::size_t colon = type.find(':');
  option.value = type.substr(0, colon);
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) option.choices.push_back(choice);
}

OptionText option_text(const CLI::Option& option) {
  OptionText text;
  text.positional = !option.nonpositional();
  text.required = option.get_required();
  text.description = option.get_description();
  if (text.positional) {
    text.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  }
  if (option.get_type_size() != 0) read_type(option.get_type_name(), text);
  return text;
}

// Parses "notes\nExample:\n  command\n  command\n\nmore notes": indented lines below the word are commands.
void read_footer(const std::string& footer, CommandText& command) {
  std::istringstream lines(footer);
  bool in_examples = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Example:" || line == "Examples:") {
      in_examples = true;
    } else if (in_examples && line.starts_with("  ")) {
      command.examples.push_back(line.substr(2));
    } else if (!line.empty()) {
      in_examples = false;
      if (!command.notes.empty()) command.notes += '\n';
      command.notes += line;
    }
  }
}

std::string usage(const CommandText& command) {
  std::string text = command.name;
  for (const OptionText& positional : command.positionals) {
    text += positional.required ? " " + positional.names[0] : fmt::format(" [{}]", positional.names[0]);
  }
  if (!command.commands.empty()) text += " COMMAND";
  if (!command.options.empty()) text += " [options]";
  return text;
}

// Empty if the description names them already.
std::string choices_text(const OptionText& option) {
  const auto is_said = [&](const std::string& choice) { return option.description.find(choice) != std::string::npos; };
  if (std::all_of(option.choices.begin(), option.choices.end(), is_said)) return "";
  return fmt::format(" One of {}.", fmt::join(option.choices, ", "));
}

std::string description_of(const OptionText& option) {
  const std::string stop = option.description.ends_with('.') ? "" : ".";
  return option.description + stop + choices_text(option) + (option.required && !option.positional ? " Required." : "");
}

// ---- Markdown

// Escapes bars, which would end the cell of a table.
std::string in_cell(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '|' ? std::string("\\|") : std::string(1, c);
  return safe;
}

std::string markdown_rows(const std::vector<OptionText>& options) {
  std::string text;
  for (const OptionText& option : options) {
    const bool show_value = !option.positional && !option.value.empty();
    text += fmt::format("| `{}{}` | {} |\n", in_cell(fmt::format("{}", fmt::join(option.names, ", "))),
                        show_value ? in_cell(fmt::format(" {}", option.value)) : "", in_cell(description_of(option)));
  }
  return text;
}

std::string markdown_section(const CommandText& command, const std::string& level) {
  std::string text =
      fmt::format("{} {}\n\n{}.\n\n```\n{}\n```\n\n", level, command.name, command.summary, usage(command));
  if (!command.positionals.empty() || !command.options.empty()) {
    text += fmt::format("| | |\n|---|---|\n{}{}\n", markdown_rows(command.positionals), markdown_rows(command.options));
  }
  if (!command.notes.empty()) text += command.notes + "\n\n";
  if (!command.examples.empty()) text += fmt::format("```sh\n{}\n```\n\n", fmt::join(command.examples, "\n"));
  for (const CommandText& below : command.commands) text += markdown_section(below, level + "#");
  return text;
}

// ---- man(7)

// Escapes what troff interprets: a point or a quote at the begin of a line, a backslash and a minus sign anywhere.
std::string roff(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (safe.empty() || safe.back() == '\n')) safe += "\\&";
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string roff_options(const std::vector<OptionText>& options) {
  std::string text;
  for (const OptionText& option : options) {
    const std::string value =
        option.positional || option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.value));
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(fmt::format("{}", fmt::join(option.names, ", "))), value,
                        roff(description_of(option)));
  }
  return text;
}

std::string roff_examples(const std::vector<std::string>& examples) {
  return examples.empty()
             ? ""
             : fmt::format(".PP\n.nf\n.RS\n{}\n.RE\n.fi\n", roff(fmt::format("{}", fmt::join(examples, "\n"))));
}

std::string roff_command(const CommandText& command) {
  std::string text = fmt::format(".SS \"{}\"\n{}.\n", roff(usage(command)), roff(command.summary));
  text += roff_options(command.positionals) + roff_options(command.options);
  if (!command.notes.empty()) text += fmt::format(".PP\n{}\n", roff(command.notes));
  text += roff_examples(command.examples);
  for (const CommandText& below : command.commands) text += roff_command(below);
  return text;
}

}  // namespace

bool OptionText::takes_path() const {
  constexpr std::array<std::string_view, 5> words = {"FILE", "FOLDER", "PATH", "DIR", "STUDY"};
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return value.find(word) != std::string::npos || (positional && names[0].find(word) != std::string::npos);
  });
}

CommandText command_text(const CLI::App& app, const std::string& before) {
  CommandText text;
  text.name = before.empty() ? app.get_name() : before + " " + app.get_name();
  text.summary = app.get_description();
  if (text.summary.ends_with('.')) text.summary.pop_back();
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* each) { return !each->get_group().empty(); })) {
    OptionText read = option_text(*option);
    (read.positional ? text.positionals : text.options).push_back(std::move(read));
  }
  read_footer(app.get_footer(), text);
  for (const CLI::App* below : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    text.commands.push_back(command_text(*below, text.name));
  }
  return text;
}

std::string markdown_page(const CommandText& command) {
  std::string text = markdown_section(command, "#");
  text.pop_back();  // one newline at the end
  return text;
}

std::string markdown_overview(const CommandText& program) {
  std::string text = fmt::format("# {}\n\n{}.\n\n| command | |\n|---|---|\n", program.name, program.summary);
  for (const CommandText& command : program.commands) {
    text += fmt::format("| [{0}]({0}.md) | {1} |\n", command.word(), in_cell(command.summary));
  }
  return text + fmt::format("\n| option | |\n|---|---|\n{}\n{}\n", markdown_rows(program.options), program.notes);
}

std::string manual_page(const CommandText& program, const std::string& version) {
  std::string text = fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n", "HDPSIM", program.name, version);
  text +=
      fmt::format(".SH NAME\n{} \\- {}\n", program.name, "simulates training steps of long\\-context language models");
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR \\fICOMMAND\\fR [options]\n", program.name);
  text += fmt::format(".SH DESCRIPTION\n{}.\n", roff(program.summary));
  text += fmt::format(".SH OPTIONS\n{}", roff_options(program.options));
  text += ".SH COMMANDS\n";
  for (const CommandText& command : program.commands) text += roff_command(command);
  text += fmt::format(".SH EXIT STATUS\n{}\n", roff(program.notes));
  return text + fmt::format(".SH EXAMPLES\n{}", roff_examples(program.examples));
}

}  // namespace hdpsim::app
