#include "sim/app/command_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/text.h"

namespace hdpsim::app {
namespace {

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
  return fmt::format(" One of {}.", joined(option.choices, ", "));
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
    text += fmt::format("| `{}{}` | {} |\n", in_cell(joined(option.names, ", ")),
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
  if (!command.examples.empty()) text += fmt::format("```sh\n{}\n```\n\n", joined(command.examples, "\n"));
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
    text +=
        fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(joined(option.names, ", ")), value, roff(description_of(option)));
  }
  return text;
}

std::string roff_examples(const std::vector<std::string>& examples) {
  return examples.empty() ? "" : fmt::format(".PP\n.nf\n.RS\n{}\n.RE\n.fi\n", roff(joined(examples, "\n")));
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

std::string manual_page(const CommandText& program, const std::string& release) {
  std::string text = fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n", "HDPSIM", program.name, release);
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
