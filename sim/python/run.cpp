#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "sim/base/printable.h"
#include "sim/python/bindings.h"
#include "sim/python/interruptible.h"
#include "sim/report/explanation_text.h"
#include "sim/report/study_report.h"
#include "sim/results/format.h"
#include "sim/results/result_files.h"
#include "sim/results/table.h"
#include "sim/run/best_static.h"
#include "sim/run/framework_notes.h"
#include "sim/run/ordered_work.h"
#include "sim/run/runner.h"
#include "sim/run/study_coverage.h"
#include "sim/study/study.h"
#include "sim/study/study_notes.h"
#include "sim/tune/tuned_baseline.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

/// A study that has been run.
class Result {
 public:
  Result(Study study, std::string data_folder, std::vector<Run> runs, std::vector<std::string> notes)
      : study_(std::move(study)),
        data_folder_(std::move(data_folder)),
        runs_(std::move(runs)),
        notes_(std::move(notes)) {}

  [[nodiscard]] py::dict columns(const std::string& name) const {
    const auto table = static_cast<ResultTable>(table_named(name, result_table_names()));
    return columns_of([&](TableSink& sink) { write_table(table, runs_, sink); });
  }
  [[nodiscard]] std::string text(Format format) const {
    if (format != Format::table) return formatted(runs_, study_.resolved, version, format);
    const Catalog catalog(data_folder_);
    return formatted(runs_, study_.resolved, version, format, advice(catalog, [] { return false; }));
  }
  [[nodiscard]] std::string study() const { return to_yaml(study_.resolved); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  /// The report page as one text of HTML.
  [[nodiscard]] std::string page() const {
    return *interruptible([&](const auto& stop) {
      const Catalog catalog(data_folder_);
      return study_page(
          study_, runs_, version,
          {.jobs = one_a_processor(), .stop = stop, .catalog = &catalog, .advice = advice(catalog, stop)});
    });
  }

  /// The text and the JSON of `hdpsim explain`.
  [[nodiscard]] std::pair<std::string, std::string> explain(const ExplainChoice& choice) const {
    const py::gil_scoped_release no_gil;
    (void)chosen_plans(study_, choice);
    (void)chosen_point(study_, choice.point);
    const Catalog catalog(data_folder_);
    const auto explanation = hdpsim::explain(study_, runs_, choice, {.catalog = catalog, .jobs = one_a_processor()});
    const auto as = [&](Format format) { return explained(study_, runs_, choice, explanation, format); };
    return {printable_lines(as(Format::table)), as(Format::json)};
  }

 private:
  // The warnings of the table and of the notes of the page.
  [[nodiscard]] RunAdvice advice(const Catalog& catalog, const std::function<bool()>& stop) const {
    return advice_in_need(study_, runs_, {.catalog = catalog, .jobs = one_a_processor(), .stop = stop});
  }

  Study study_;
  std::string data_folder_;
  std::vector<Run> runs_;
  std::vector<std::string> notes_;
};

/// Runs a study as `hdpsim study` does. Empty if it was interrupted. Needs no GIL.
class StudyRun {
 public:
  StudyRun(const StudySource& source, Catalog& catalog, const RunOptions& options, const InputFiles& inputs,
           std::function<bool()> stop)
      : study_(source.load(catalog)),
        data_folder_(source.data_folder),
        root_(tuning_root(source.document(), source.overrides, source.without)),
        catalog_(catalog),
        options_(options),
        stop_(std::move(stop)) {
    if (options_.out.empty()) return;
    folder_.emplace(options_.out, output_use("run", result_file_names()), &inputs);
    (void)folder_->file(journal_name);
  }

  std::unique_ptr<Result> result() {
    StudyCoverage coverage;
    std::vector<std::string> notes;
    const JournalFolder kept{options_.out, options_.resume,
                             [&](const Diagnostic& part) { notes.push_back(damage_text(part)); }};
    Journal journal = kept.open(runs_title());
    const RunnerOptions how{.jobs = options_.jobs,
                            .journal = &journal,
                            .version = version,
                            .stop = stop_,
                            .report = [this](const Progress& progress) { report(progress); },
                            .cover = [&](const auto& profile, const Coverage& part) { coverage.add(profile, part); }};
    auto runs = run_study(study_, how);
    if (!runs || !compare_with_best_static(study_, catalog_, how, *runs)) return nullptr;
    const BaselineRun baselines{{.jobs = options_.jobs, .version = version, .stop = stop_}, &journal};
    if (!compare_with_tuned(study_, root_, catalog_, baselines, *runs)) return nullptr;
    for (std::string& line : study_notes(study_)) notes.push_back(std::move(line));
    for (std::string& line : framework_notes(study_)) notes.push_back(std::move(line));
    for (std::string& warning : coverage.warnings(study_, *runs)) notes.push_back(std::move(warning));
    if (folder_) {
      folder_->remove_earlier();
      const auto note = [&](const std::string& text) { notes.push_back(text); };
      const StudyReportOptions report{
          .jobs = options_.jobs, .stop = stop_, .note = note, .catalog = &catalog_, .advice = advice_of(*runs)};
      if (!write_report(*folder_, study_, *runs, version, report)) return nullptr;
      write_results(*folder_, study_, *runs, version);
      if (std::string removed = folder_->removed_text(); !removed.empty()) notes.push_back(std::move(removed));
    }
    return std::make_unique<Result>(std::move(study_), data_folder_, std::move(*runs), std::move(notes));
  }

 private:
  // The notes of the report.
  [[nodiscard]] RunAdvice advice_of(const std::vector<Run>& runs) const {
    return advice_in_need(study_, runs, {.catalog = catalog_, .jobs = options_.jobs, .stop = stop_});
  }

  void report(const Progress& progress) const {
    options_.report(static_cast<std::int64_t>(progress.steps_done), static_cast<std::int64_t>(progress.steps));
  }

  Study study_;
  std::string data_folder_;
  Value root_;
  Catalog& catalog_;
  const RunOptions& options_;
  std::function<bool()> stop_;
  std::optional<OutputFolder> folder_;
};

std::unique_ptr<Result> run(const StudySource& source, const RunOptions& options) {
  return interruptible([&](const auto& stop) {
    const InputFiles inputs;
    Catalog catalog(source.data_folder);
    return StudyRun(source, catalog, options, inputs, stop).result();
  });
}

}  // namespace

void bind_run(py::module_& module) {
  py::class_<Result>(module, "Result")
      .def("columns", &Result::columns, py::arg("table"))
      .def("table", [](const Result& result) { return printable_lines(result.text(Format::table)); })
      .def("json", [](const Result& result) { return result.text(Format::json); })
      .def("page", &Result::page)
      .def(
          "explain",
          [](const Result& result, std::int64_t point, std::string plan, std::int64_t step) {
            return result.explain({point, std::move(plan), step});
          },
          py::arg("point"), py::arg("plan"), py::arg("step"))
      .def_property_readonly("study", &Result::study)
      .def_property_readonly("notes", &Result::notes);
  module.def("run", &run, py::arg("source"), py::arg("options"));
}

}  // namespace hdpsim::python
