#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/import/impl/launched_job.h"
#include "sim/import/import_note.h"

namespace hdpsim {

/// A value of an argument.
struct ArgumentValue {
  std::string text;
  Position position;
  std::string unset;          ///< What of it the file does not say: `$1`; empty: it is known.
  std::string variable = {};  ///< Which variable of the file would say it; may be empty.
  std::string why = {};       ///< What it depends on, for people; may be empty.
};

/// An argument of Megatron-LM as a file states it.
struct Argument {
  std::string written;  ///< As in the file, for people: `--num-layers`, `num_layers`.
  Position position;
  std::vector<ArgumentValue> values;
  bool is_switch = false;    ///< A key of YAML with a truth for its value.
  bool is_on = true;         ///< That truth.
  bool is_launcher = false;  ///< It precedes the program: an argument of torchrun.
};

/// The arguments of the training run that a file starts or describes, in their order.
struct ArgumentList {
  std::vector<Argument> arguments;
  std::optional<ArgumentValue> program;     ///< The Python program that a script starts.
  std::optional<ArgumentValue> world_size;  ///< The script's variable WORLD_SIZE.
  LaunchedJob job = {};                     ///< What starts the program on many devices says of their number.
  bool is_of_swift = false;                 ///< Of ms-swift's `megatron sft`, which passes them on.
  bool states_defaults = false;             ///< Every argument is listed, with its default where the user set none.
  ImportNotes notes;
};

/// The arguments of the command of a shell script that trains: the one with `--num-layers`, `--hidden-size` or
/// `--micro-batch-size`. Where there are several, `command` says which, from 1; otherwise they are reported. The value
/// of a name of `variables` is that, whatever the script says.
[[nodiscard]] ArgumentList arguments_of_script(const std::string& file, const std::string& text,
                                               const std::map<std::string, std::string>& variables,
                                               std::optional<int> command, Diagnostics& diagnostics);

/// The arguments of a YAML or JSON file: a map of them with dashes or underscores, or one below `args` or
/// `MODEL_ARGS`, with sections or without. Keys without a value count as absent. `${NAME}` in a value is replaced by
/// the value of that name in `variables`. Files of other programs are refused by their names.
[[nodiscard]] ArgumentList arguments_of_document(const std::string& file, const std::string& text,
                                                 const std::map<std::string, std::string>& variables,
                                                 Diagnostics& diagnostics);

/// Reports, as one problem, arguments of the script itself (`$3`) that arguments of the training need and nobody gives.
void report_missing_arguments(const ArgumentList& list, Diagnostics& diagnostics);

/// Whether a text is the log of a run of Megatron-LM, which prints all of its arguments between `--- arguments ---` and
/// `--- end of arguments ---` as `name .... value`.
[[nodiscard]] bool has_argument_block(std::string_view text);

/// The lines of a log up to the end of its first list of arguments; the whole file if it has none. A file whose name
/// ends in .gz is decompressed. Reported is a log whose list ends beyond largest_yaml_bytes.
[[nodiscard]] std::optional<std::string> read_log_head(const std::string& file, Diagnostics& diagnostics);

/// The arguments that a log lists, without those that are None. Lines of other ranks between them are skipped.
[[nodiscard]] ArgumentList arguments_of_log(const std::string& file, std::string_view text);

}  // namespace hdpsim
