#pragma once

#include <string>
#include <vector>

namespace hdpsim::app {

/// An option or a positional argument as the command line defines it.
struct OptionText {
  std::vector<std::string> names;    ///< `-g`, `--gpus`; a positional has one name, `STUDY`.
  std::string value;                 ///< Placeholder: `COUNT`; empty for a flag.
  std::vector<std::string> choices;  ///< The only values, if they are restricted.
  std::string description;
  bool positional = false;
  bool required = false;

  /// Whether its value is a file or a folder, as far as shells should know.
  [[nodiscard]] bool takes_path() const;
};

/// A command with all of its help: the one source of manual pages and completions.
struct CommandText {
  std::string name;  ///< Includes the commands above it: `hdpsim trace fit`.
  std::string summary;
  std::vector<OptionText> positionals;
  std::vector<OptionText> options;
  std::string notes;                  ///< Text between the options and the examples.
  std::vector<std::string> examples;  ///< Command lines.
  std::vector<CommandText> commands;

  /// The last word of the name.
  [[nodiscard]] std::string word() const { return name.substr(name.rfind(' ') + 1); }
};

/// The page of a command in Markdown, with the commands below it as sections.
[[nodiscard]] std::string markdown_page(const CommandText& command);
/// The list of commands, with links to pages named `WORD.md`.
[[nodiscard]] std::string markdown_overview(const CommandText& program);
/// The program with all its commands as a manual page, man(7).
[[nodiscard]] std::string manual_page(const CommandText& program, const std::string& release);

}  // namespace hdpsim::app
