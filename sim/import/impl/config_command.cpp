#include "sim/import/impl/config_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/import/impl/shell_builtins.h"

namespace hdpsim {
namespace {

/// A program that trains, and the format of its arguments.
struct TrainingProgram {
  std::string_view name;  ///< A word of a command, or its beginning if it ends in `*`.
  std::string_view format;
  std::string_view subcommands = {};  ///< One of them follows; empty: none has to.
};
constexpr std::string_view of_trainer = "HuggingFace's TrainingArguments";
constexpr auto training_programs = std::to_array<TrainingProgram>({
    {"llamafactory-cli", "LLaMA-Factory", "train"},
    {"axolotl", "axolotl", "train"},
    {"axolotl.cli.train", "axolotl"},
    {"trl", of_trainer, "sft dpo kto grpo rloo reward orpo cpo gkd"},
    {"swift", "ms-swift", "sft pt rlhf"},
    {"verl.trainer.*", "verl"},
    {"recipe.*", "verl"},
    {"openrlhf.cli.train_*", "OpenRLHF"},
});

// Arguments that tell whose a Python program is, where its name does not.
constexpr auto telling_arguments = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"--finetuning_type", "LLaMA-Factory"},
    {"--sft_type", "ms-swift"},
    {"--per_device_train_batch_size", of_trainer},
    {"--per-device-train-batch-size", of_trainer},
    {"--model_name_or_path", of_trainer},
});

bool is_called(std::string_view word, std::string_view name) {
  if (!name.ends_with('*')) return word == name;
  return word.starts_with(name.substr(0, name.size() - 1)) && !word.ends_with(".yaml");
}

bool is_data_program(std::string_view word) {
  constexpr std::array<std::string_view, 5> others = {"generation", "preprocess", "merge", "eval", "server"};
  return std::any_of(others.begin(), others.end(),
                     [&](std::string_view other) { return word.find(other) != std::string_view::npos; });
}

/// Where the program of a command is, and what it is.
struct FoundProgram {
  std::size_t at = 0;      ///< Its word.
  std::size_t behind = 0;  ///< The first of its arguments.
  std::string_view format;
};

std::optional<FoundProgram> program_by_name(const std::vector<ShellText>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const TrainingProgram& program : training_programs) {
      if (!is_called(words[i].text, program.name) || is_data_program(words[i].text)) continue;
      if (program.subcommands.empty()) return FoundProgram{i, i + 1, program.format};
      const auto known = words_in(program.subcommands);
      const bool trains =
          i + 1 < words.size() && std::find(known.begin(), known.end(), words[i + 1].text) != known.end();
      if (trains) return FoundProgram{i, i + 2, program.format};
    }
  }
  return std::nullopt;
}

bool is_configuration_file(std::string_view word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
}

std::optional<FoundProgram> program_by_arguments(const std::vector<ShellText>& words) {
  const auto python = std::find_if(words.begin(), words.end(), [](const ShellText& word) {
    return word.text.ends_with(".py") && !is_data_program(word.text);
  });
  if (python == words.end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(python - words.begin());
  for (std::size_t i = at; i < words.size(); ++i) {
    const std::string_view name = std::string_view(words[i].text).substr(0, words[i].text.find('='));
    for (const auto& [argument, format] : telling_arguments) {
      if (name == argument) return FoundProgram{at, at + 1, format};
    }
    if (name.starts_with("actor_rollout_ref.")) return FoundProgram{at, at + 1, "verl"};
    if (name == "--config" && i + 1 < words.size() && is_configuration_file(words[i + 1].text)) {
      return FoundProgram{at, at + 1, of_trainer};
    }
  }
  return std::nullopt;
}

std::string with_lines(std::string_view text) {
  std::string name(text);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Takes the words of one command apart.
class CommandWords {
 public:
  CommandWords(const ShellScript& script, const std::string& file) : script_(script), file_(file) {}

  ConfigCommand take(const ShellCommand& command, const FoundProgram& program) {
    const auto& words = command.words;
    made_.format = config_format_named(program.format);
    made_.position = script_.position(file_, words[program.at]);
    for (std::size_t i = program.at; i < program.behind; ++i) {
      made_.program += (made_.program.empty() ? "" : " ") + words[i].text;
    }
    take_launcher({words.begin(), words.begin() + static_cast<std::ptrdiff_t>(program.at)});
    for (std::size_t i = program.behind; i < words.size(); ++i) take_word(words, i);
    take_environment(command);
    return std::move(made_);
  }

 private:
  [[nodiscard]] Value value_of(const ShellText& word) const {
    Value value = Value::scalar(word.text, script_.position(file_, word));
    if (word.is_known() || !word.text.empty()) return value;
    const ShellUnknown& unknown = word.unknowns.front();
    value.text =
        unknown.kind == ShellUnknown::Kind::not_set || unknown.holder.empty() ? unknown.what : "$" + unknown.holder;
    if (unknown.place != ShellText::nowhere) value.position = script_.position(file_, unknown.place);
    return value;
  }

  void take_launcher(const std::vector<ShellText>& words) {
    made_.job = launched_job(words, script_.directives);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i].text;
      const auto joined_to = [&](std::string_view name) -> std::optional<Value> {
        if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=') {
          return value_of(words[i].part(name.size() + 1, word.size()));
        }
        if (word == name && i + 1 < words.size()) return value_of(words[i + 1]);
        return std::nullopt;
      };
      for (const char* name : {"--config_file", "--config-file"}) {
        if (const auto file = joined_to(name)) made_.files.push_back(*file);
      }
      for (const char* name : {"--nproc_per_node", "--nproc-per-node"}) {
        if (const auto count = joined_to(name)) made_.per_node = count;
      }
      if (const auto count = joined_to("--nnodes")) made_.nodes = count;
    }
  }

  void take_word(const std::vector<ShellText>& words, std::size_t& i) {
    const ShellText& word = words[i];
    const std::size_t equals = word.text.find('=');
    if (word.text.starts_with("--") && word.text.size() > 2) {
      take_option(words, i);
    } else if (!word.text.starts_with('-') && equals != std::string::npos && equals > 0) {
      const std::size_t plus = word.text.find_first_not_of('+');
      set(with_lines(word.text.substr(plus, equals - plus)), value_of(word.part(equals + 1, word.text.size())));
    } else if (is_configuration_file(word.text)) {
      made_.files.push_back(value_of(word));
    }
  }

  // `--name`, `--name value`, `--name=value`, `--name a b`.
  void take_option(const std::vector<ShellText>& words, std::size_t& i) {
    const ShellText& word = words[i];
    const std::size_t equals = word.text.find('=');
    const std::string name = with_lines(word.text.substr(2, equals == std::string::npos ? equals : equals - 2));
    const Position at = script_.position(file_, word);
    if (equals != std::string::npos) return set(name, value_of(word.part(equals + 1, word.text.size())));
    std::vector<Value> values;
    while (i + 1 < words.size() && !is_option(words[i + 1].text)) values.push_back(value_of(words[++i]));
    if (values.size() == 1) return set(name, std::move(values.front()));
    Value value = values.empty() ? Value::scalar("true", at) : Value::sequence(at);
    if (!values.empty()) value.items = std::move(values);
    set(name, std::move(value));
  }

  // A word that begins with a dash is an option, unless it is a number; `a.b=c` is an override.
  static bool is_option(const std::string& word) {
    if (word.starts_with("--")) return true;
    if (word.size() > 1 && word[0] == '-')
      return std::isdigit(static_cast<unsigned char>(word[1])) == 0 && word[1] != '.';
    const std::size_t equals = word.find('=');
    return equals != std::string::npos && word.find('.') < equals && word.find_first_of(" /{[") > equals;
  }

  // Dots in names are levels.
  void set(const std::string& path, Value value) {
    Value* map = &made_.arguments;
    std::size_t begin = 0;
    for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
      const std::string key = path.substr(begin, dot - begin);
      Value* inner = map->find(key);
      if (inner == nullptr || !inner->is_map()) {
        map->set(key, Value::map(value.position));
        inner = map->find(key);
      }
      map = inner;
      begin = dot + 1;
    }
    const Position at = value.position;
    map->set(path.substr(begin), std::move(value));
    for (Value::Entry& entry : map->entries) {
      if (entry.key == path.substr(begin)) entry.position = at;
    }
  }

  // NPROC_PER_NODE and the like, in front of the command or set before.
  void take_environment(const ShellCommand& command) {
    const auto find = [&](const char* name) -> const ShellText* {
      const auto own = command.environment.find(name);
      if (own != command.environment.end()) return &own->second;
      const auto set = script_.variables.find(name);
      return set == script_.variables.end() ? nullptr : &set->second;
    };
    const ShellText* each = find("NPROC_PER_NODE");
    const ShellText* visible = find("CUDA_VISIBLE_DEVICES");
    if (!made_.per_node && each != nullptr && each->is_known()) made_.per_node = value_of(*each);
    if (visible != nullptr && visible->is_known() && !visible->text.empty()) {
      const auto commas = std::count(visible->text.begin(), visible->text.end(), ',');
      made_.visible = Value::scalar(std::to_string(commas + 1), script_.position(file_, *visible));
    }
    const ShellText* nodes = find("NNODES");
    if (!made_.nodes && nodes != nullptr && nodes->is_known()) made_.nodes = value_of(*nodes);
  }

  const ShellScript& script_;
  const std::string& file_;
  ConfigCommand made_;
};

}  // namespace

std::vector<ConfigCommand> config_commands(const ShellScript& script, const std::string& file) {
  std::vector<ConfigCommand> found;
  for (const ShellCommand& command : script.commands) {
    if (command.words.empty() || says_words(command.words.front().text)) continue;
    auto program = program_by_name(command.words);
    if (!program) program = program_by_arguments(command.words);
    if (program) found.push_back(CommandWords(script, file).take(command, *program));
  }
  return found;
}

bool names_config_program(const std::string& text) {
  const auto is_in = [&](std::string_view name) {
    return text.find(name.substr(0, name.find('*'))) != std::string::npos;
  };
  return std::any_of(training_programs.begin(), training_programs.end(),
                     [&](const auto& each) { return is_in(each.name); }) ||
         std::any_of(telling_arguments.begin(), telling_arguments.end(),
                     [&](const auto& each) { return is_in(each.first); }) ||
         is_in("actor_rollout_ref.") || is_in("--config");
}

}  // namespace hdpsim
