#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/app/command_text.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hdpsim::app {

/// What an option's reader throws for a value that it does not take. The message need not name the option.
struct WrongValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A command line that the program does not understand; the text is for the user.
struct WrongCommandLine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A handle of an option, a flag or a positional argument, on which it is declared; calls return the handle. It is
/// valid as long as its CommandLine.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required() const;
  /// The placeholder of the value in help texts: `FILE`.
  Option type_name(const std::string& name) const;
  /// The only values that are taken.
  Option one_of(const std::vector<std::string>& values) const;
  Option within(int lowest, int highest) const;
  Option within(double lowest, double highest) const;
  Option not_negative() const;
  Option existing_file() const;
  Option existing_folder() const;
  Option existing_path() const;
  /// An occurrence takes one value; what follows is an argument of its own.
  Option one_at_a_time() const;
  /// An occurrence takes so many values.
  Option expected(int values) const;
  /// An occurrence may list several values with this between them.
  Option separated_by(char separator) const;
  Option needs(Option other) const;
  Option excludes(Option other) const;
  bool operator==(const Option&) const = default;

 private:
  CLI::Option* option_;
};

/// A handle of a command, on which its options and the commands below it are declared. It is valid as long as its
/// CommandLine.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  [[nodiscard]] Command add_subcommand(const std::string& name, const std::string& summary) const;
  /// One of the commands below must be given.
  void require_subcommand() const;
  /// Text behind the options in help: notes, and command lines below a line `Example:` or `Examples:`.
  void footer(const std::string& text) const;
  /// Neither help texts nor manual pages list the command.
  void hide() const;
  /// Takes arguments that are not declared; `remaining` returns them.
  void allow_extras() const;
  [[nodiscard]] std::vector<std::string> remaining() const;
  /// Called once the command line has been read, if it names this command.
  void when_chosen(std::function<void()> action) const;

  // A name is `--long`, `-s,--long`, or a word for a positional argument. The value must live as long as the
  // CommandLine.
  Option add_option(const std::string& name, std::string& value, const std::string& help) const;
  Option add_option(const std::string& name, std::vector<std::string>& values, const std::string& help) const;
  Option add_option(const std::string& name, std::vector<double>& values, const std::string& help) const;
  Option add_option(const std::string& name, std::int64_t& value, const std::string& help) const;
  Option add_option(const std::string& name, double& value, const std::string& help) const;
  /// `read` is given the text and throws WrongValue if it does not like it.
  Option add_option(const std::string& name, std::function<void(const std::string&)> read,
                    const std::string& help) const;
  Option add_flag(const std::string& name, bool& value, const std::string& help) const;

  /// The option with this name, which has been declared.
  [[nodiscard]] Option option(const std::string& name) const;
  /// What has been declared so far, but for --help.
  [[nodiscard]] std::vector<Option> options() const;
  /// All of its help and that of the commands below, without hidden ones.
  [[nodiscard]] CommandText text() const;

 private:
  CLI::App* app_;
};

/// The command line of the program. Declarations and reading are CLI11's, which no other source includes.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& summary);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// The command that all others are below.
  [[nodiscard]] Command top() const { return Command(app_.get()); }
  /// Adds a flag that prints `text` and ends.
  void version_flag(const std::string& name, const std::string& text);
  /// Reads the arguments behind the program's name; several assignments may follow one option that takes them (--set
  /// A=1 B=2). Returns the text of --help or --version if asked for. Throws WrongCommandLine.
  std::optional<std::string> parse(std::vector<std::string> arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace hdpsim::app
