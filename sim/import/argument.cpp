#include "sim/import/argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/document.h"
#include "sim/document/limits.h"
#include "sim/document/repeated_keys.h"
#include "sim/import/impl/config_format.h"
#include "sim/import/impl/foreign_formats.h"
#include "sim/import/impl/megatron_dialects.h"
#include "sim/import/impl/megatron_rules.h"
#include "sim/import/impl/shell_builtins.h"
#include "sim/import/shell_script.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_listed = 20;  // of commands between which to choose

std::string with_dashes(std::string text) {
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string name_of(const ShellText& word) {
  return word.text.substr(0, word.text.find('='));
}

// Programs that use a model and do not train it, by parts of their names.
constexpr std::array<std::string_view, 5> other_uses = {"generate", "inference", "server", "evaluat", "convert"};

bool is_other_use(const ShellText& word) {
  if (word.text.starts_with("--")) return is_of_inference(name_of(word));
  if (!word.text.ends_with(".py")) return false;
  const std::string program = word.text.substr(word.text.find_last_of('/') + 1);
  return std::any_of(other_uses.begin(), other_uses.end(),
                     [&](std::string_view use) { return program.find(use) != std::string::npos; });
}

bool uses_model(const std::vector<ShellText>& words) {
  return !words.empty() && !says_words(words.front().text) &&
         std::any_of(words.begin(), words.end(), [](const ShellText& word) {
           const std::string name = with_dashes(name_of(word));
           return std::find(signs_of_training.begin(), signs_of_training.end(), name) != signs_of_training.end();
         });
}

// `megatron sft` of ms-swift, which takes the number of its processes from the environment.
bool is_swift(const std::vector<ShellText>& words) {
  constexpr std::array<std::string_view, 3> trainings = {"sft", "pt", "rlhf"};
  const auto found =
      std::find_if(words.begin(), words.end(), [](const ShellText& word) { return word.text == "megatron"; });
  return found != words.end() && found + 1 != words.end() &&
         std::find(trainings.begin(), trainings.end(), (found + 1)->text) != trainings.end();
}

bool trains(const std::vector<ShellText>& words) {
  if (is_swift(words)) return uses_model(words);
  return uses_model(words) && std::none_of(words.begin(), words.end(), is_other_use);
}

// Commands that have a model's shape. Neighbours that begin with an argument are one: a file that only lists arguments.
std::vector<std::vector<ShellText>> model_commands(const ShellScript& script) {
  std::vector<std::vector<ShellText>> joined;
  bool goes_on = false;
  for (const ShellCommand& command : script.commands) {
    std::vector<ShellText> words = command.words;
    const bool is_list = !words.empty() && words.front().text.starts_with("--");
    if (is_list && goes_on) {
      for (ShellText& word : words) joined.back().push_back(std::move(word));
    } else {
      joined.push_back(std::move(words));
    }
    goes_on = is_list;
  }
  std::erase_if(joined, [](const auto& words) { return !uses_model(words); });
  return joined;
}

bool is_script(const ShellText& word) {
  constexpr std::array<std::string_view, 4> endings = {".sh", ".bash", ".slurm", ".sbatch"};
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view end) { return word.text.ends_with(end); });
}

// Why no command trains: one generates text, or starts another framework.
void report_no_training(const std::vector<std::vector<ShellText>>& with_model, const std::string& file,
                        const ShellScript& script, Diagnostics& diagnostics) {
  if (!with_model.empty()) {
    const auto& words = with_model.front();
    const ShellText& word = *std::find_if(words.begin(), words.end(), is_other_use);
    return diagnostics.unsupported(script.position(file, word),
                                   fmt::format("'{}' is of a program that uses a model and does not train it",
                                               word.text.substr(0, word.text.find('='))),
                                   "what is imported trains");
  }
  for (const ShellCommand& command : script.commands) {
    for (const ShellText& word : command.words) {
      const auto foreign = foreign_command(word.text);
      if (!foreign || config_format_named(foreign->name) != nullptr) continue;
      return diagnostics.unsupported(
          script.position(file, word),
          fmt::format("this looks like {} ('{}'), which is not imported", foreign->name, foreign->sign), foreign->way);
    }
  }
  for (const ShellCommand& command : script.commands) {
    const auto inner = std::find_if(command.words.begin(), command.words.end(), is_script);
    if (inner == command.words.end()) continue;
    return diagnostics.error(script.position(file, *inner),
                             fmt::format("no command of this file trains a model; it runs {}", inner->text),
                             fmt::format("import {}: --var 1=VALUE is its first argument", inner->text));
  }
  diagnostics.error(
      {file, 0, 0}, "no command of this file trains a model",
      fmt::format("a command has {}; other formats: .log, .yaml, .toml", joined(signs_of_training, ", ")));
}

class ScriptArguments {
 public:
  ScriptArguments(const std::string& file, const ShellScript& script) : file_(file), script_(script) {}

  ArgumentList of(const std::vector<ShellText>& words) {
    const std::size_t program = program_of(words);
    for (std::size_t i = 0; i < words.size(); ++i) add(words[i], i < program);
    list_.job = launched_job({words.begin(), words.begin() + static_cast<std::ptrdiff_t>(program)}, script_.directives);
    if (program < words.size() && is_program(words[program])) list_.program = value(words[program]);
    if (is_swift(words)) take_swift(words);
    return std::move(list_);
  }

  [[nodiscard]] ArgumentValue value(const ShellText& word) const {
    ArgumentValue value{word.text, script_.position(file_, word), word.unset()};
    if (word.is_known()) return value;
    const ShellUnknown& unknown = word.unknowns.front();
    value.variable = unknown.kind == ShellUnknown::Kind::not_set ? unknown.what.substr(1) : unknown.holder;
    value.why = unknown.why;
    if (word.text.empty() && unknown.place != ShellText::nowhere) {
      value.position = script_.position(file_, unknown.place);
    }
    return value;
  }

 private:
  void take_swift(const std::vector<ShellText>& words) {
    list_.is_of_swift = true;
    const auto own = std::find_if(script_.commands.begin(), script_.commands.end(), [&](const ShellCommand& command) {
      return !command.words.empty() && command.words.front().begin == words.front().begin;
    });
    const auto count = [&](const char* name) -> std::optional<std::int64_t> {
      const ShellText* text = nullptr;
      if (const auto set = script_.variables.find(name); set != script_.variables.end()) text = &set->second;
      if (own != script_.commands.end()) {
        if (const auto set = own->environment.find(name); set != own->environment.end()) text = &set->second;
      }
      return text == nullptr || !text->is_known() ? std::nullopt : parse_count(text->text).value;
    };
    if (const auto each = count("NPROC_PER_NODE")) list_.job.per_node = *each;
    if (list_.job.per_node && !list_.job.nodes) list_.job.nodes = count("NNODES").value_or(1);
  }

  static bool is_program(const ShellText& word) { return word.text.ends_with(".py"); }

  // The place of the Python program, which the arguments of training follow; 0 if no word is one.
  static std::size_t program_of(const std::vector<ShellText>& words) {
    const auto found = std::find_if(words.begin(), words.end(), is_program);
    return found == words.end() ? 0 : static_cast<std::size_t>(found - words.begin());
  }

  void add(const ShellText& word, bool is_launcher) {
    if (!word.text.starts_with("--") || word.text.size() < 3) return add_value(word);
    const std::size_t equals = word.text.find('=');
    Argument argument;
    argument.written = word.text.substr(0, equals);
    argument.position = script_.position(file_, word);
    argument.is_launcher = is_launcher;
    list_.arguments.push_back(std::move(argument));
    if (equals == std::string::npos) return;
    list_.arguments.back().values.push_back(value(word.part(equals + 1, word.text.size())));
  }

  // Words before the first argument are the command itself.
  void add_value(const ShellText& word) {
    if (!list_.arguments.empty() && !word.text.ends_with(".py")) list_.arguments.back().values.push_back(value(word));
  }

  std::string file_;
  const ShellScript& script_;
  ArgumentList list_;
};

std::optional<std::size_t> chosen_command(const std::vector<std::vector<ShellText>>& commands, const std::string& file,
                                          const ShellScript& script, std::optional<int> command,
                                          Diagnostics& diagnostics) {
  const std::size_t number = command ? static_cast<std::size_t>(*command) : 1;
  if (number >= 1 && number <= commands.size() && (command || commands.size() == 1)) return number - 1;
  for (std::size_t i = 0; i < std::min(commands.size(), most_listed); ++i) {
    diagnostics.error(script.position(file, commands[i].front()),
                      fmt::format("command {} of {} that train a model", i + 1, commands.size()),
                      fmt::format("--command {} takes this one", i + 1));
  }
  return std::nullopt;
}

}  // namespace

ArgumentList arguments_of_script(const std::string& file, const std::string& text,
                                 const std::map<std::string, std::string>& variables, std::optional<int> command,
                                 Diagnostics& diagnostics) {
  Diagnostics found;
  const ShellScript script = read_shell_script(file, text, variables, found);
  const auto with_model = model_commands(script);
  auto commands = with_model;
  std::erase_if(commands, [](const auto& words) { return !trains(words); });
  const bool counts = text.find("$#") != std::string::npos && variables.count("1") == 0;
  if (found.empty() && with_model.empty() && counts) {
    found.error({file, 0, 0}, "the script counts its arguments, nobody gives them, and it starts no training",
                "--args 'A B C' gives all of them, as its command line does");
  } else if (found.empty() && commands.empty()) {
    report_no_training(with_model, file, script, found);
  }
  const auto which = found.empty() ? chosen_command(commands, file, script, command, found) : std::nullopt;
  diagnostics.append(found);
  if (!which) return {};
  ScriptArguments reader(file, script);
  ArgumentList list = reader.of(commands[*which]);
  list.notes = script.notes;
  const auto size = script.variables.find("WORLD_SIZE");
  if (size != script.variables.end()) list.world_size = reader.value(size->second);
  return list;
}

void report_missing_arguments(const ArgumentList& list, Diagnostics& diagnostics) {
  std::map<int, const ArgumentValue*> missing;
  for (const Argument& argument : list.arguments) {
    const ArgumentRule* rule = rule_of(argument.written);
    if (rule == nullptr || rule->role == ArgumentRule::Role::idle) continue;
    for (const ArgumentValue& value : argument.values) {
      const bool is_number = !value.variable.empty() && value.variable.size() <= 2 &&
                             value.variable.find_first_not_of("0123456789") == std::string::npos;
      if (value.text.empty() && !value.unset.empty() && is_number) missing.emplace(std::stoi(value.variable), &value);
    }
  }
  if (missing.empty()) return;
  std::vector<std::string> names;
  names.reserve(missing.size());
  for (const auto& [number, value] : missing) names.push_back(fmt::format("${}", number));
  diagnostics.error(missing.begin()->second->position,
                    fmt::format("the script takes arguments that nobody gives: {}", joined(names, ", ")),
                    "--args 'A B C' gives all of them, as its command line does; --var 3=VALUE gives one");
}

}  // namespace hdpsim
