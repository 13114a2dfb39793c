#include "sim/import/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/document/document.h"
#include "sim/import/impl/config_command.h"
#include "sim/import/impl/config_format.h"
#include "sim/import/impl/foreign_formats.h"

namespace hdpsim {
namespace {

/// A file, or the arguments of a command, that says something of a training.
struct ConfigDocument {
  const ConfigFormat* format = nullptr;
  std::string file;
  Value root;
};

std::string name_in(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

/// The documents of a training: those that are given, and those that they name.
class ConfigDocuments {
 public:
  ConfigDocuments(const ImportOptions& options, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {}

  void add(const ConfigText& given) {
    diagnostics_.add_source(given.file, given.text);
    Value root = parse_document(given.file, given.text, diagnostics_);
    const auto known = foreign_document(root);
    const ConfigFormat* format = known ? config_format_named(known->name) : nullptr;
    if (format != nullptr) {
      documents_.push_back({format, given.file, std::move(root)});
    } else if (diagnostics_.empty()) {
      diagnostics_.error({given.file, 0, 0}, "this is no configuration of a training that is known here",
                         known ? known->way : std::string());
    }
  }

  // What a command states replaces what its file does, if that is of the same program.
  void add(ConfigCommand& command, const std::string& file) {
    for (const Value& named : command.files) read_named(named);
    const auto same = std::find_if(documents_.begin(), documents_.end(), [&](const ConfigDocument& document) {
      return document.format == command.format && !document.format->is_part;
    });
    if (same == documents_.end()) {
      documents_.push_back({command.format, file, std::move(command.arguments)});
    } else {
      fill_in(command.arguments, same->root);
      same->root = std::move(command.arguments);
    }
  }

  // Files that others name are read to the end of the chain.
  std::vector<ConfigDocument> take() {
    for (std::size_t i = 0; i < documents_.size() && i < most_documents; ++i) {
      const Value root = documents_[i].root;
      for (const std::string_view key : words_in(documents_[i].format->files_named)) read_named_by(root, key);
    }
    std::stable_sort(documents_.begin(), documents_.end(), [](const ConfigDocument& a, const ConfigDocument& b) {
      return !a.format->is_part && b.format->is_part;
    });
    return std::move(documents_);
  }

 private:
  static constexpr std::size_t most_documents = 16;

  void read_named_by(const Value& root, std::string_view key) {
    Diagnostics none;
    const ConfigKeys keys(
        root, "", [](std::string_view) -> const KeyRule* { return nullptr; }, none);
    const Value* value = keys.at(key);
    if (value == nullptr || !value->is_scalar()) return;
    const bool is_file =
        value->text.ends_with(".json") || value->text.ends_with(".yaml") || value->text.ends_with(".yml");
    if (is_file) read_named(*value);
  }

  void read_named(const Value& named) {
    const std::string name = name_in(named.text);
    const bool is_there = std::any_of(documents_.begin(), documents_.end(),
                                      [&](const ConfigDocument& document) { return name_in(document.file) == name; });
    if (is_there) return;
    const auto found =
        options_.file_beside ? options_.file_beside(named.text, named.position.file) : std::optional<ConfigText>();
    if (found) return add(*found);
    diagnostics_.error(named.position,
                       fmt::format("'{}' is not there, and it says how the training is done", named.text),
                       fmt::format("hdpsim import {} .../{} reads both", named.position.file, name));
  }

  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<ConfigDocument> documents_;
};

void read_document(const ConfigDocument& document, TrainerRun& run, Diagnostics& diagnostics) {
  ConfigKeys keys(document.root, document.file, document.format->rule_of, diagnostics);
  document.format->read(keys, run);
  keys.note_rest();
  const ImportNotes notes = keys.take_notes();
  run.made.notes.insert(run.made.notes.end(), notes.begin(), notes.end());
}

TrainingRun read_documents(const std::vector<ConfigDocument>& documents, TrainerRun run, const ImportOptions& options,
                           Diagnostics& diagnostics) {
  if (documents.empty()) return {};
  run.framework = documents.front().format->name;
  for (const ConfigDocument& document : documents) read_document(document, run, diagnostics);
  return training_run_of(std::move(run), documents.front().file, options, diagnostics);
}

// What the words in front of a program, and the environment, say of the devices.
class Launch {
 public:
  Launch(const ConfigCommand& command, const ImportOptions& options, Diagnostics& diagnostics)
      : command_(command), options_(options), diagnostics_(diagnostics) {}

  void tell(TrainerRun& run) {
    count(command_.per_node, "processes of a node", run.per_node);
    count(command_.nodes, "nodes", run.nodes);
    if (run.per_node.value) return;
    if (const auto gpus = command_.job.gpus()) return run.gpus.set(*gpus, command_.position);
    if (command_.job.per_node) return run.gpus.set(*command_.job.per_node, command_.position);
    count(command_.visible, "visible devices", run.per_node);
    if (command_.format->spreads_layers && run.per_node.value_or(1) > 1 && !options_.gpus) refuse_spread(run);
  }

 private:
  void count(const std::optional<Value>& value, const char* what, Stated<std::int64_t>& stated) {
    if (!value || value->text.empty() || value->text.find_first_not_of("0123456789") != std::string::npos) return;
    const auto number = read_in<std::int64_t>(*value, what, trainer_ranges::gpus, diagnostics_);
    if (number) stated.set(*number, value->position);
  }

  void refuse_spread(const TrainerRun& run) {
    diagnostics_.unsupported(run.per_node.position,
                             fmt::format("without NPROC_PER_NODE one process spreads layers over {} GPUs, which cannot "
                                         "be simulated",
                                         *run.per_node.value),
                             "--gpus N takes them as N ranks, as NPROC_PER_NODE=N does");
  }

  const ConfigCommand& command_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool is_configuration(const std::string& file, const std::string& text) {
  Diagnostics none;
  const auto known = foreign_document(parse_document(file, text, none));
  return known && config_format_named(known->name) != nullptr;
}

TrainingRun read_configuration(const std::vector<ConfigText>& files, const ImportOptions& options,
                               Diagnostics& diagnostics) {
  Diagnostics found;
  ConfigDocuments documents(options, found);
  for (const ConfigText& file : files) documents.add(file);
  const auto all = documents.take();
  diagnostics.append(found);
  return found.empty() ? read_documents(all, {}, options, diagnostics) : TrainingRun{};
}

bool names_configuration(const std::string& text) {
  return names_config_program(text);
}

std::optional<TrainingRun> read_launched_configuration(const ConfigText& script, const std::vector<ConfigText>& more,
                                                       const ImportOptions& options, Diagnostics& diagnostics) {
  Diagnostics found;
  const ShellScript read = read_shell_script(script.file, script.text, options.variables, found);
  auto commands = config_commands(read, script.file);
  if (!found.empty() || commands.empty()) return std::nullopt;  // which the reader of scripts reports
  const std::size_t number = options.command ? static_cast<std::size_t>(*options.command) : 1;
  if (number > commands.size() || (!options.command && commands.size() > 1)) {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      diagnostics.error(commands[i].position,
                        fmt::format("command {} of {} that train a model", i + 1, commands.size()),
                        fmt::format("--command {} takes this one", i + 1));
    }
    return TrainingRun{};
  }
  ConfigCommand& command = commands[number - 1];
  ConfigDocuments documents(options, found);
  for (const ConfigText& file : more) documents.add(file);
  documents.add(command, script.file);
  const auto all = documents.take();
  diagnostics.append(found);
  if (!found.empty()) return TrainingRun{};
  TrainerRun run;
  run.program = command.program;
  run.made.notes = read.notes;
  Launch(command, options, diagnostics).tell(run);
  return read_documents(all, std::move(run), options, diagnostics);
}

}  // namespace hdpsim
