#include "sim/replay/replay.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>

#include "sim/base/output_folder.h"
#include "sim/base/printable.h"
#include "sim/python/bindings.h"
#include "sim/python/interruptible.h"
#include "sim/replay/replay_choice.h"
#include "sim/replay/replay_report.h"
#include "sim/replay/window_table.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

/// The rows of a replay's tables.
struct ReplayRows {
  std::vector<StepRow> steps;
  std::vector<WindowRow> windows;
};

/// A study that has been replayed.
class Replay {
 public:
  Replay(Study study, ReplayResult result, ReplayRows rows)
      : study_(std::move(study)), result_(std::move(result)), rows_(std::move(rows)) {}

  [[nodiscard]] py::dict columns(const std::string& table) const {
    const bool windows = table_named(table, {"steps", "windows"}) == 1;
    return columns_of([&](TableSink& sink) { windows ? write_windows(sink) : write_steps(sink); });
  }
  [[nodiscard]] std::string table() const { return printable_lines(replay_table(result_)); }
  [[nodiscard]] std::string json() const { return replay_json(result_, study_.resolved, version); }
  [[nodiscard]] std::string study() const { return to_yaml(study_.resolved); }
  [[nodiscard]] std::string page() const { return replay_page(result_); }
  void write(OutputFolder& folder) const { write_replay(folder, result_, study_, version); }

 private:
  void write_steps(TableSink& sink) const {
    const StepTable table(result_.plans);
    StepTable::write_header(sink);
    for (const StepRow& row : rows_.steps) table.write(row, sink);
  }
  void write_windows(TableSink& sink) const {
    write_window_header(sink);
    for (const WindowRow& row : rows_.windows) write_window(row, result_.plans[row.plan], sink);
  }

  Study study_;
  ReplayResult result_;
  ReplayRows rows_;
};

std::unique_ptr<Replay> replayed(StudySource source, const ReplayChoice& choice, const RunOptions& options,
                                 const std::function<bool()>& stop) {
  const InputFiles inputs;
  Catalog catalog(source.data_folder);
  source.overrides = overrides_of(choice, source.overrides);
  Study study = source.load(catalog);
  const StudyPoint& point = choose(study, choice);
  const auto refused = leave_out_refused(study, point, options.jobs, stop);
  if (!refused) return nullptr;
  std::optional<OutputFolder> folder;
  if (!options.out.empty()) {
    folder.emplace(options.out, output_use("replay", replay_file_names()), &inputs);
    (void)folder->file(journal_name);
    for (const std::string& name : replay_growing_names()) (void)folder->file(name);
  }
  ReplayRows rows;
  auto result =
      hdpsim::replay(study, point,
                     {.steps = point.spec.steps,
                      .jobs = options.jobs,
                      .kept = {options.out, options.resume},
                      .refused = *refused,
                      .version = version,
                      .stop = stop,
                      .report = [&](const ReplayProgress& progress) { options.report(progress.done, progress.steps); },
                      .row = [&](const StepRow& row) { rows.steps.push_back(row); },
                      .window = [&](const WindowRow& row) { rows.windows.push_back(row); }});
  if (!result) return nullptr;
  result->best_static = best_static_share(study, point, catalog, options.jobs, stop);
  if (stop()) return nullptr;
  auto replay = std::make_unique<Replay>(std::move(study), std::move(*result), std::move(rows));
  if (folder) {
    folder->remove_earlier();
    replay->write(*folder);
  }
  return replay;
}

}  // namespace

void bind_replay(py::module_& module) {
  py::class_<ReplayChoice>(module, "ReplayChoice")
      .def(py::init([](std::string trace, std::string column, std::vector<std::string> plans, std::int64_t steps,
                       std::int64_t point) {
             return ReplayChoice{std::move(trace), std::move(column), std::move(plans), steps, point};
           }),
           py::arg("trace"), py::arg("column"), py::arg("plans"), py::arg("steps"), py::arg("point"));
  py::class_<Replay>(module, "Replay")
      .def("columns", &Replay::columns, py::arg("table"))
      .def("table", &Replay::table)
      .def("json", &Replay::json)
      .def("page", &Replay::page)
      .def_property_readonly("study", &Replay::study);
  module.def(
      "replay",
      [](const StudySource& source, const ReplayChoice& choice, const RunOptions& options) {
        return interruptible([&](const auto& stop) { return replayed(source, choice, options, stop); });
      },
      py::arg("source"), py::arg("choice"), py::arg("options"));
}

}  // namespace hdpsim::python
