#include <fmt/format.h>

#include <algorithm>

#include "sim/app/command.h"
#include "sim/base/diagnostic.h"
#include "sim/study/key_page.h"

namespace hdpsim::app {
namespace {

struct KeysOptions {
  std::vector<std::string> paths;
  std::string format = "text";
};

bool is_below(std::string_view path, std::string_view wanted) {
  return path == wanted || (path.starts_with(wanted) && path[wanted.size()] == '.');
}

// The key or the section at that path.
std::vector<StudyKey> keys_below(const std::string& wanted) {
  std::vector<StudyKey> found;
  std::vector<std::string> known;
  for (const StudyKey& each : all_study_keys()) {
    if (is_below(each.path, wanted)) found.push_back(each);
    known.push_back(each.path);
  }
  if (found.empty()) throw InputError(fmt::format("no key '{}' is declared", wanted), suggestion(wanted, known));
  return found;
}

int print_keys(const KeysOptions& options, const Session& /*session*/) {
  if (options.format == "schema") {
    print_bytes(key_schema());
  } else if (options.format == "markdown") {
    print_bytes(key_page());
  } else if (options.paths.empty()) {
    print(key_text(all_study_keys()));
  } else {
    for (const std::string& path : options.paths) print(key_text(keys_below(path)));
  }
  return 0;
}

}  // namespace

void add_keys_command(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("keys", "Explain the keys of a study: values, default and meaning");
  KeysOptions& options = add_command(*command, session, print_keys);
  command->add_option("KEY", options.paths, "A key or a section: mesh.zero, mesh (default: all)");
  command
      ->add_option("--format", options.format,
                   "What to print: text, the reference page of all keys in Markdown, or their JSON schemas")
      ->check(CLI::IsMember({"text", "markdown", "schema"}))
      ->type_name("FORMAT");
  command->footer("Example:\n  hdpsim keys mesh.zero mesh.recompute");
}

}  // namespace hdpsim::app
