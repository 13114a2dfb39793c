#include "sim/app/command.h"
#include "sim/app/signals.h"
#include "sim/tasks/task_file.h"
#include "sim/tasks/task_report.h"

namespace hdpsim::app {
namespace {

struct TasksOptions {
  std::string path;
  std::vector<std::string> overrides;
  std::string out;
  Format format = Format::table;
};

std::string formatted(const TaskFile& file, const std::vector<TaskComparison>& comparisons, Format format) {
  switch (format) {
    case Format::table:
      break;
    case Format::csv:
      return tasks_csv(comparisons);
    case Format::json:
      return tasks_json(comparisons, file.document, version);
  }
  return tasks_table(file.name, comparisons);
}

void write_tasks(const TasksOptions& options, const Session& session, const TaskFile& file,
                 const std::vector<TaskComparison>& comparisons) {
  OutputFolder folder(options.out, {"tasks", session.command_line, {"tasks.json", "tasks.csv", "tasks.html"}},
                      &session.inputs);
  folder.remove_earlier();
  folder.write("tasks.csv", tasks_csv(comparisons));
  folder.write("tasks.html", tasks_page(file.name, comparisons));
  folder.write("tasks.json", tasks_json(comparisons, file.document, version));
  tell_removed(folder);
}

int tasks_command(const TasksOptions& options, const Session& session) {
  Catalog catalog(session.data_folder);
  const TaskFile file = load_task_file(options.path, options.overrides, catalog);
  catch_stop_signals();
  std::vector<TaskComparison> comparisons;
  for (const TaskCase& each : file.cases) {
    if (is_stopped()) return stopped_exit();
    comparisons.push_back(compare_policies(each));
  }
  if (!options.out.empty()) write_tasks(options, session, file, comparisons);
  print(formatted(file, comparisons, options.format), options.format);
  return 0;
}

}  // namespace

void add_tasks_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("tasks", "Compare how tasks that share modules of many modalities get their GPUs");
  TasksOptions& options = add_command(command, session, tasks_command);
  command.add_option("FILE", options.path, "A file of modules and tasks").required().existing_file();
  add_set(command, options.overrides, "the file");
  command
      .add_option("--out", options.out,
                  "Write tasks.json, with the waves of every plan, tasks.csv and tasks.html there")
      .type_name("FOLDER");
  add_format(command, options.format);
  command.footer(
      "`hdpsim keys --of tasks` has the keys of the file, configs/tasks has examples.\n"
      "Examples:\n"
      "  hdpsim tasks configs/tasks/clip.yaml\n"
      "  hdpsim tasks configs/tasks/clip.yaml --set cluster.gpus=16 --format json");
}

}  // namespace hdpsim::app
