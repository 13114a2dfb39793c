#include <fmt/format.h>

#include <algorithm>

#include "sim/app/command.h"
#include "sim/app/command_text.h"
#include "sim/app/completion.h"
#include "sim/base/diagnostic.h"

namespace hdpsim::app {
namespace {

struct HelpOptions {
  std::optional<Command> program;
  std::string what;
  bool markdown = false;
};

int print_completion(const HelpOptions& options, const Session&) {
  print_bytes(completion_script(options.what, options.program->text()));
  return 0;
}

int print_manual(const HelpOptions& options, const Session&) {
  const CommandText program = options.program->text();
  if (!options.markdown) {
    print_bytes(manual_page(program, version));
    return 0;
  }
  const auto command = std::find_if(program.commands.begin(), program.commands.end(),
                                    [&](const CommandText& each) { return each.word() == options.what; });
  if (options.what.empty()) {
    print_bytes(markdown_overview(program));
  } else if (command != program.commands.end()) {
    print_bytes(markdown_page(*command));
  } else {
    throw InputError(fmt::format("there is no command '{}'", options.what));
  }
  return 0;
}

}  // namespace

void add_completion_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("completion", "Print a script that lets a shell complete commands and options");
  HelpOptions& options = add_command(command, session, print_completion);
  options.program = app;
  command.add_option("SHELL", options.what, "Which shell").required().one_of(shell_names());
  command.footer(
      "Examples:\n  hdpsim completion bash >~/.local/share/bash-completion/completions/hdpsim\n"
      "  hdpsim completion zsh >~/.zfunc/_hdpsim\n"
      "  hdpsim completion fish >~/.config/fish/completions/hdpsim.fish");
}

void add_manual_command(Command app, Session& session) {
  const Command command = app.add_subcommand("manual", "Print the manual page of the program");
  command.hide();  // for those who build and package it
  HelpOptions& options = add_command(command, session, print_manual);
  options.program = app;
  command.add_option("COMMAND", options.what, "Only the page of this command, with --markdown");
  command.add_flag("--markdown", options.markdown, "In Markdown; without a command: what commands there are");
  command.footer("Example:\n  hdpsim manual | man -l -");
}

}  // namespace hdpsim::app
