#include <fmt/format.h>

#include <algorithm>

#include "sim/app/command.h"
#include "sim/app/key_page.h"
#include "sim/base/diagnostic.h"
#include "sim/study/override.h"

namespace hdpsim::app {
namespace {

struct KeysOptions {
  std::vector<std::string> paths;
  std::string of = keyed_file_names().front();
  std::string format = "text";
};

// The key or the section at that path.
std::vector<StudyKey> keys_below(const std::string& wanted, KeyedFile file) {
  std::vector<StudyKey> found;
  std::vector<std::string> known;
  for (const StudyKey& each : keys_of(file)) {
    if (is_at_or_below(each.path, wanted)) found.push_back(each);
    known.push_back(each.path);
  }
  if (found.empty()) throw InputError(fmt::format("no key '{}' is declared", wanted), suggestion(wanted, known));
  return found;
}

int print_keys(const KeysOptions& options, const Session& /*session*/) {
  const std::vector<std::string>& names = keyed_file_names();
  const auto file = static_cast<KeyedFile>(std::find(names.begin(), names.end(), options.of) - names.begin());
  if (options.format == "schema") {
    print_bytes(key_schema(file));
  } else if (options.format == "markdown") {
    print_bytes(key_page(file));
  } else if (options.paths.empty()) {
    print(key_text(keys_of(file)));
  } else {
    for (const std::string& path : options.paths) {
      print(key_text(keys_below(file == KeyedFile::study ? present_path(path) : path, file)));
    }
  }
  return 0;
}

}  // namespace

void add_keys_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("keys", "Explain the keys of a study, a cluster or another file: values, default and meaning");
  KeysOptions& options = add_command(command, session, print_keys);
  command.add_option("KEY", options.paths, "A key or a section: mesh.zero, mesh (default: all)");
  command.add_option("--of", options.of, "Whose keys (default: study)").one_of(keyed_file_names()).type_name("FILE");
  command
      .add_option("--format", options.format,
                  "What to print: text, the reference page of all keys in Markdown, or their JSON schemas")
      .one_of({"text", "markdown", "schema"})
      .type_name("FORMAT");
  command.footer("Example:\n  hdpsim keys mesh.zero training.recompute\n  hdpsim keys --of cluster node.nics");
}

}  // namespace hdpsim::app
