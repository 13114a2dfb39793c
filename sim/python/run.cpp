#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "sim/base/atomic_file.h"
#include "sim/base/printable.h"
#include "sim/python/bindings.h"
#include "sim/python/columns.h"
#include "sim/python/interruptible.h"
#include "sim/python/study_source.h"
#include "sim/report/format.h"
#include "sim/report/study_output.h"
#include "sim/report/study_report.h"
#include "sim/run/runner.h"
#include "sim/run/study_coverage.h"
#include "sim/study/not_modelled.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

/// A study that has been run.
class Result {
 public:
  Result(Study study, std::vector<Run> runs, std::vector<std::string> notes)
      : study_(std::move(study)), runs_(std::move(runs)), notes_(std::move(notes)) {}

  [[nodiscard]] py::dict columns(const std::string& name) const {
    const auto table = static_cast<ResultTable>(table_named(name, result_table_names()));
    return columns_of([&](TableSink& sink) { write_table(table, runs_, sink); });
  }
  [[nodiscard]] std::string text(Format format) const { return formatted(runs_, study_.resolved, version, format); }
  [[nodiscard]] std::string study() const { return to_yaml(study_.resolved); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  void page(const std::string& path) const {
    interruptible([&](const auto& stop) {
      const auto page = study_page(study_, runs_, version, {.stop = stop});
      if (page) write_file(path, *page);
      return page.has_value();
    });
  }

 private:
  Study study_;
  std::vector<Run> runs_;
  std::vector<std::string> notes_;
};

/// Runs a study as `hdpsim study` does. Empty if it was interrupted. Needs no GIL.
class StudyRun {
 public:
  StudyRun(Study study, const RunOptions& options, const InputFiles& inputs, std::function<bool()> stop)
      : study_(std::move(study)), options_(options), stop_(std::move(stop)) {
    if (options_.out.empty()) return;
    folder_.emplace(options_.out, output_use("run", result_file_names()), &inputs);
    store_.emplace(folder_->folder("runs"), &*folder_);
    if (options_.resume) folder_->keep("runs");
  }

  std::unique_ptr<Result> result() {
    StudyCoverage coverage;
    std::vector<std::string> notes;
    auto runs = run_study(
        study_, {.jobs = options_.jobs,
                 .store = store_ ? &*store_ : nullptr,
                 .resume = options_.resume,
                 .damaged = [&](const Diagnostic& part) { notes.push_back(damage_text(part)); },
                 .version = version,
                 .stop = stop_,
                 .report = [this](const Progress& progress) { report(progress); },
                 .cover = [&](const PointSpec& point, const Coverage& part) { coverage.add(point.profile, part); }});
    if (!runs) return nullptr;
    for (std::string& warning : cold_step_warnings(study_)) notes.push_back(std::move(warning));
    for (std::string& warning : coverage.warnings(study_, *runs)) notes.push_back(std::move(warning));
    if (folder_) {
      folder_->remove_earlier();
      const auto note = [&](const std::string& text) { notes.push_back(text); };
      if (!write_report(*folder_, study_, *runs, version, {.stop = stop_, .note = note})) return nullptr;
      write_results(*folder_, study_, *runs, version);
      if (std::string removed = folder_->removed_text(); !removed.empty()) notes.push_back(std::move(removed));
    }
    return std::make_unique<Result>(std::move(study_), std::move(*runs), std::move(notes));
  }

 private:
  void report(const Progress& progress) const {
    options_.report(static_cast<std::int64_t>(progress.steps_done), static_cast<std::int64_t>(progress.steps));
  }

  Study study_;
  const RunOptions& options_;
  std::function<bool()> stop_;
  std::optional<OutputFolder> folder_;
  std::optional<RunStore> store_;
};

std::unique_ptr<Result> run(const StudySource& source, const RunOptions& options) {
  return interruptible([&](const auto& stop) {
    const InputFiles inputs;
    Catalog catalog(source.data_folder);
    return StudyRun(source.load(catalog), options, inputs, stop).result();
  });
}

}  // namespace

void bind_run(py::module_& module) {
  py::class_<Result>(module, "Result")
      .def("columns", &Result::columns, py::arg("table"))
      .def("table", [](const Result& result) { return printable_lines(result.text(Format::table)); })
      .def("json", [](const Result& result) { return result.text(Format::json); })
      .def("page", &Result::page, py::arg("path"))
      .def_property_readonly("study", &Result::study)
      .def_property_readonly("notes", &Result::notes);
  module.def("run", &run, py::arg("source"), py::arg("options"));
}

}  // namespace hdpsim::python
