#include "sim/app/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "sim/base/printable.h"

namespace hdpsim::app {
namespace {

// Ranges of CLI11 let nan through.
CLI::Validator number() {
  const auto problem = [](const std::string& text) {
    return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no number" : std::string();
  };
  return {problem, ""};
}

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

// The long names of options that may be given several times and take assignments, KEY=VALUE, of all commands.
void add_assigning(const CLI::App& app, std::set<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    const bool assigns = option->get_type_name().find('=') != std::string::npos && option->get_expected_max() > 1;
    if (assigns) names.insert("--" + option->get_single_name());
  }
  for (const CLI::App* below : app.get_subcommands({})) add_assigning(*below, names);
}

// KEY=VALUE, and no file of that name.
bool is_assignment(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  std::error_code refused;
  return equals != std::string::npos && !key.empty() && !key.starts_with('-') &&
         key.find_first_of(" /") == std::string::npos && !std::filesystem::exists(word, refused);
}

// `--set A=1 B=2` as `--set A=1 --set B=2`: what is an assignment behind an option that takes them is no file.
std::vector<std::string> with_repeated_options(const std::vector<std::string>& arguments,
                                               const std::set<std::string>& assigning) {
  std::vector<std::string> result;
  const std::string* repeated = nullptr;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto option = assigning.find(word.substr(0, word.find('=')));
    if (option != assigning.end()) {
      repeated = &*option;
      result.push_back(word);
      const bool has_value_behind = word == *option && i + 1 < arguments.size();
      if (has_value_behind) result.push_back(arguments[++i]);
      continue;
    }
    if (repeated != nullptr && is_assignment(word)) {
      result.push_back(*repeated);
    } else {
      repeated = nullptr;
    }
    result.push_back(word);
  }
  return result;
}

}  // namespace

// ---- Option

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option Option::within(int lowest, int highest) const {
  option_->check(CLI::Range(lowest, highest));
  return *this;
}

Option Option::within(double lowest, double highest) const {
  option_->check(CLI::Range(lowest, highest));
  option_->check(number());
  return *this;
}

Option Option::not_negative() const {
  option_->check(CLI::NonNegativeNumber);
  option_->check(number());
  return *this;
}

Option Option::existing_file() const {
  option_->check(CLI::ExistingFile);
  return *this;
}

Option Option::existing_folder() const {
  option_->check(CLI::ExistingDirectory);
  return *this;
}

Option Option::existing_path() const {
  option_->check(CLI::ExistingPath);
  return *this;
}

Option Option::one_at_a_time() const {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::expected(int values) const {
  option_->expected(values);
  return *this;
}

Option Option::separated_by(char separator) const {
  option_->delimiter(separator);
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

// ---- Command

Command Command::add_subcommand(const std::string& name, const std::string& summary) const {
  return Command(app_->add_subcommand(name, summary));
}

void Command::require_subcommand() const {
  app_->require_subcommand(1);
}

void Command::footer(const std::string& text) const {
  app_->footer(text);
}

void Command::hide() const {
  app_->group("");
}

void Command::allow_extras() const {
  app_->allow_extras();
}

std::vector<std::string> Command::remaining() const {
  return app_->remaining();
}

void Command::when_chosen(std::function<void()> action) const {
  app_->callback(std::move(action));
}

Option Command::add_option(const std::string& name, std::string& value, const std::string& help) const {
  return Option(app_->add_option(name, value, help));
}

Option Command::add_option(const std::string& name, std::vector<std::string>& values, const std::string& help) const {
  return Option(app_->add_option(name, values, help));
}

Option Command::add_option(const std::string& name, std::vector<double>& values, const std::string& help) const {
  return Option(app_->add_option(name, values, help));
}

Option Command::add_option(const std::string& name, std::int64_t& value, const std::string& help) const {
  return Option(app_->add_option(name, value, help));
}

Option Command::add_option(const std::string& name, double& value, const std::string& help) const {
  return Option(app_->add_option(name, value, help));
}

Option Command::add_option(const std::string& name, std::function<void(const std::string&)> read,
                           const std::string& help) const {
  const std::string said = name.substr(name.find("--"));  // the long name, behind the short one if there is one
  const auto take = [read = std::move(read), said](const std::string& text) {
    try {
      read(text);
    } catch (const WrongValue& error) {
      throw CLI::ValidationError(said, error.what());
    }
  };
  return Option(app_->add_option_function<std::string>(name, take, help));
}

Option Command::add_flag(const std::string& name, bool& value, const std::string& help) const {
  return Option(app_->add_flag(name, value, help));
}

Option Command::option(const std::string& name) const {
  return Option(app_->get_option(name));
}

std::vector<Option> Command::options() const {
  std::vector<Option> all;
  for (CLI::Option* option : app_->get_options()) {
    if (option != app_->get_help_ptr()) all.emplace_back(option);
  }
  return all;
}

CommandText Command::text() const {
  return command_text(*app_, "");
}

// ---- CommandLine

CommandLine::CommandLine(const std::string& name, const std::string& summary)
    : app_(std::make_unique<CLI::App>(summary, name)) {}

CommandLine::~CommandLine() = default;

void CommandLine::version_flag(const std::string& name, const std::string& text) {
  app_->set_version_flag(name, text);
}

std::optional<std::string> CommandLine::parse(std::vector<std::string> arguments) {
  std::set<std::string> assigning;
  add_assigning(*app_, assigning);
  arguments = with_repeated_options(arguments, assigning);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app_->parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    std::ostringstream asked;
    std::ostringstream mistakes;
    // Its exceptions for --help and --version have exit code 0; all others are mistakes on the command line.
    if (app_->exit(error, asked, mistakes) == 0) return asked.str();
    const std::string advice = mistakes.str().substr(std::string_view(error.what()).size());
    throw WrongCommandLine(printable(error.what()) + advice);
  }
}

}  // namespace hdpsim::app
