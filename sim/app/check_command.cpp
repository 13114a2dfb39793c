#include <fmt/format.h>

#include <algorithm>

#include "sim/app/check_file.h"
#include "sim/app/command.h"

namespace hdpsim::app {
namespace {

struct CheckOptions {
  std::string file;
  std::string kind;
};

int check_command(const CheckOptions& options, const Session& session) {
  const auto& names = file_kind_names();
  std::optional<FileKind> kind;
  const auto named = std::find(names.begin(), names.end(), options.kind);
  if (named != names.end()) kind = static_cast<FileKind>(named - names.begin());
  Catalog catalog(session.data_folder);
  const CheckedFile checked = check_file(options.file, kind, catalog);
  std::string text = fmt::format("{}: {}: fine\n", options.file, checked.summary);
  for (const std::string& line : checked.notes) text += fmt::format("  note: {}\n", line);
  print(text);
  return 0;
}

}  // namespace

void add_check_command(Command app, Session& session) {
  const Command command = app.add_subcommand("check", "List every problem of an input file, and do nothing else");
  CheckOptions& options = add_command(command, session, check_command);
  command
      .add_option("FILE", options.file,
                  "A study, plan, cluster, model, profile, validation set, samples of kernels, file of lengths or of "
                  "prices, or "
                  "steps of a scheduler")
      .required();
  command.add_option("--kind", options.kind, "What it is, if the file does not show it")
      .one_of(file_kind_names())
      .type_name("KIND");
  command.footer("Example:\n  hdpsim check configs/studies/tiny.yaml");
}

}  // namespace hdpsim::app
