#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/app/command.h"
#include "sim/base/atomic_file.h"
#include "sim/import/imported_study.h"
#include "sim/study/study.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

struct ImportCommand {
  std::vector<std::string> files;
  std::string out;
  std::vector<std::string> variables;
  std::string arguments;        // of the script, with blanks between them
  std::int64_t gpus = 0;        // 0: the file says it
  std::int64_t vocabulary = 0;  // 0: the file says it
  std::int64_t context = 0;     // 0: the file says it
  std::int64_t command = 0;     // 0: there is one
  ImportOptions options;
  bool force = false;
};

ImportOptions options_of(const ImportCommand& command) {
  ImportOptions options = command.options;
  if (command.gpus > 0) options.gpus = command.gpus;
  if (command.vocabulary > 0) options.vocabulary = command.vocabulary;
  if (command.context > 0) options.context = command.context;
  if (command.command > 0) options.command = static_cast<int>(command.command);
  std::istringstream arguments(command.arguments);
  std::string argument;
  for (int i = 1; arguments >> argument; ++i) options.variables.insert_or_assign(std::to_string(i), argument);
  for (const std::string& each : command.variables) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError(fmt::format("--var {} states no value", each), "write --var NAME=VALUE");
    }
    options.variables.insert_or_assign(each.substr(0, equals), each.substr(equals + 1));
  }
  return options;
}

void require_free(const fs::path& file, bool force) {
  std::error_code unknown;
  if (force || !fs::exists(fs::symlink_status(file, unknown))) return;
  throw InputError(fmt::format("{} is there already", file.string()), "--force replaces it");
}

// The study is read as `hdpsim study` will read it, for which its model has to be there. Of a study that cannot run
// nothing stays.
void write_checked(const ImportedStudy& study, const std::string& out, Catalog& catalog) {
  std::error_code ignored;
  const bool is_new = study.model && !fs::exists(study.model_file, ignored);
  if (study.model) write_file(study.model_file.string(), *study.model);
  try {
    (void)parse_study(out, study.text, {}, catalog);
  } catch (const InputError& error) {
    if (is_new) fs::remove(study.model_file, ignored);
    note("the study that follows from the file cannot run, and is not written:");
    throw InputError(at_source(study, out, error.diagnostics()));
  }
  remove_left_overs(out);
  write_file(out, study.text);
}

int run_import(const ImportCommand& command, const Session& session) {
  require_free(command.out, command.force);
  Catalog catalog(session.data_folder);
  const ImportedStudy study = import_study(command.files, command.out, options_of(command), catalog);
  if (study.model) require_free(study.model_file, command.force);
  session.inputs.require_none_at(command.out);
  if (study.model) session.inputs.require_none_at(study.model_file);
  write_checked(study, command.out, catalog);
  const std::string told = text_of(study.notes);
  note(told.substr(0, told.find_last_not_of('\n') + 1));
  note(fmt::format("wrote {}{}; next: hdpsim study {} --out {}", command.out,
                   study.model ? " and " + study.model_file.string() : "", command.out,
                   fs::path(command.out).stem().string()));
  return 0;
}

}  // namespace

void add_import_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("import", "Turn a training configuration of another framework into a study");
  ImportCommand& options = add_command(command, session, run_import);
  command
      .add_option("FILE", options.files,
                  "A script, a log, a configuration as YAML, JSON or TOML; several, if they belong together")
      .required();
  command.add_option("--out", options.out, "The study to write, a YAML file").required().type_name("STUDY");
  command.add_option("--cluster", options.options.cluster, "The cluster: a shipped one, or a file").type_name("NAME");
  command
      .add_option("--model", options.options.model_name,
                  "The model, in place of what the file says: a shipped one, or a HuggingFace config.json")
      .type_name("NAME");
  add_count(command, "--gpus", options.gpus, "Number of GPUs of the job, in place of what the file says");
  add_count(command, "--vocab-size", options.vocabulary, "Entries of the tokenizer, before they are padded");
  add_count(command, "--context", options.context, "Tokens of a sequence, in place of what the file says");
  command.add_option("--var", options.variables, "Give a variable of the script this value, may be repeated")
      .type_name("NAME=VALUE")
      .one_at_a_time();
  command.add_option("--args", options.arguments, "Arguments of the script, as its command line has them")
      .type_name("'A B C'");
  command.add_option("--command", options.command, "Which of several training commands to take, counted from 1")
      .type_name("N")
      .within(1, 1000);
  command.add_flag("--force", options.force, "Replace files that are there");
  command.footer(
      "A shell script that starts a training: torchrun, deepspeed, accelerate launch, llamafactory-cli train, axolotl\n"
      "train, trl sft, swift sft, megatron sft, verl.trainer.main_ppo, openrlhf.cli.train_sft and their kin. A YAML "
      "or\n"
      "JSON file is known by its keys: LLaMA-Factory, axolotl, HuggingFace's TrainingArguments and TRL, Accelerate,\n"
      "DeepSpeed, verl, NeMo (megatron_gpt_config.yaml), or arguments of Megatron-LM. .toml is torchtitan's, .log and\n"
      ".out are logs of Megatron-LM (.gz is decompressed). A file that another one names is read beside it. Of RL the\n"
      "training of the actor alone is simulated. Listed are keys that the study cannot express, with their likely\n"
      "effect, unknown ones, those without effect on a step's time and memory, and what is assumed.\n"
      "Examples:\n  hdpsim import pretrain.sh --out mine.yaml --cluster h100-rail\n"
      "  hdpsim import train.yaml ds_z3.json accelerate.yaml --out mine.yaml\n"
      "  hdpsim import grpo.sh --out mine.yaml --model qwen3-32b --args '8 2'\n"
      "  hdpsim import llama3_8b.toml --out mine.yaml --gpus 64\n"
      "  hdpsim import pretrain.sh --out mine.yaml --vocab-size 128256 --var NNODES=16");
}

}  // namespace hdpsim::app
