#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/python/columns.h"
#include "sim/python/study_text.h"
#include "sim/report/format.h"
#include "sim/report/output_file.h"
#include "sim/study/not_modelled.h"
#include "sim/study/runner.h"
#include "sim/study/study.h"
#include "sim/study/study_coverage.h"
#include "sim/study/study_output.h"
#include "sim/study/study_report.h"

// The native half of the package: what needs the simulator. hdpsim/__init__.py is what users see.
namespace hdpsim::python {
namespace {

namespace py = pybind11;

constexpr char version[] = HDPSIM_VERSION;

/// A study as Python names it.
struct StudySource {
  std::string name;                 ///< Path of the file, or what problems call the text.
  std::optional<std::string> text;  ///< Nothing: the file is read.
  std::vector<std::string> overrides;
  std::vector<std::string> without;
  std::string data_folder;

  [[nodiscard]] Study load() const {
    Catalog catalog(data_folder);
    if (text) return parse_study(name, *text, overrides, catalog, without);
    return load_study(name, overrides, catalog, without);
  }
};

/// Asks Python for Ctrl-C, which it keeps until somebody asks: in the thread that called, between two steps.
class Interrupt {
 public:
  bool operator()() {
    if (!raised_ && std::this_thread::get_id() == caller_) {
      const py::gil_scoped_acquire gil;
      raised_ = PyErr_CheckSignals() != 0;
    }
    return raised_;
  }
  /// The exception that Python has raised, if it has. Needs the GIL.
  void throw_if_raised() const {
    if (raised_) throw py::error_already_set();
  }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> raised_ = false;
};

struct RunOptions {
  std::size_t jobs = 1;
  std::string out;  ///< Empty: nothing is written.
  bool resume = false;
  std::function<void(std::size_t, std::size_t)> progress;  ///< Steps done and all; may be empty.
};

/// A study that has been run.
class Result {
 public:
  Result(Study study, std::vector<Run> runs, std::vector<std::string> notes)
      : study_(std::move(study)), runs_(std::move(runs)), notes_(std::move(notes)) {}

  [[nodiscard]] py::dict columns(const std::string& table) const { return columns_of(table_named(table), runs_); }
  [[nodiscard]] std::string text(Format format) const { return formatted(runs_, study_.resolved, version, format); }
  [[nodiscard]] std::string study() const { return to_yaml(study_.resolved); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  void page(const std::string& path) const {
    Interrupt interrupt;
    {
      const py::gil_scoped_release no_gil;
      const auto page = study_page(study_, runs_, version, {.stop = [&] { return interrupt(); }});
      if (page) write_file(path, *page);
    }
    interrupt.throw_if_raised();
  }

 private:
  static ResultTable table_named(const std::string& name) {
    const std::vector<std::string>& names = result_table_names();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<ResultTable>(found - names.begin());
    throw py::value_error("a result has no table '" + name + "'; " + suggestion(name, names));
  }

  Study study_;
  std::vector<Run> runs_;
  std::vector<std::string> notes_;
};

/// Runs a study as `hdpsim study` does. Nothing if it was interrupted. Needs no GIL.
class StudyRun {
 public:
  StudyRun(const StudySource& source, const RunOptions& options, Interrupt& interrupt)
      : study_(source.load()), options_(options), interrupt_(interrupt) {}

  std::unique_ptr<Result> result() {
    const std::optional<RunStore> store = make_store();
    const auto stop = [this] { return interrupt_(); };
    StudyCoverage coverage;
    auto runs = run_study(
        study_, {.jobs = options_.jobs,
                 .store = store ? &*store : nullptr,
                 .resume = options_.resume,
                 .version = version,
                 .stop = stop,
                 .report = [this](const Progress& progress) { report(progress); },
                 .cover = [&](const PointSpec& point, const Coverage& part) { coverage.add(point.profile, part); }});
    if (!runs) return nullptr;
    std::vector<std::string> notes = cold_step_warnings(study_);
    for (std::string& warning : coverage.warnings(study_, *runs)) notes.push_back(std::move(warning));
    if (!options_.out.empty()) {
      const auto note = [&](const std::string& text) { notes.push_back(text); };
      if (!write_report(options_.out, study_, *runs, version, {.stop = stop, .note = note})) return nullptr;
      write_results(options_.out, study_, *runs, version);
    }
    return std::make_unique<Result>(std::move(study_), std::move(*runs), std::move(notes));
  }

 private:
  [[nodiscard]] std::optional<RunStore> make_store() const {
    if (options_.out.empty()) return std::nullopt;
    const std::filesystem::path runs = std::filesystem::path(options_.out) / "runs";
    prepare_folder(options_.out);
    prepare_folder(runs);
    return RunStore(runs);
  }

  void report(const Progress& progress) const {
    if (!options_.progress) return;
    const py::gil_scoped_acquire gil;
    options_.progress(progress.steps_done, progress.steps);
  }

  Study study_;
  const RunOptions& options_;
  Interrupt& interrupt_;
};

void check(const StudySource& source) {
  const py::gil_scoped_release no_gil;
  (void)source.load();
}

std::unique_ptr<Result> run(const StudySource& source, const RunOptions& options) {
  Interrupt interrupt;
  std::unique_ptr<Result> result;
  {
    const py::gil_scoped_release no_gil;
    result = StudyRun(source, options, interrupt).result();
  }
  interrupt.throw_if_raised();
  return result;
}

py::list problems_of(const InputError& error) {
  py::list problems;
  for (const Diagnostic& problem : error.diagnostics().sorted()) {
    const Position& at = problem.position;
    problems.append(py::make_tuple(at.file, at.line, at.column, problem.message, problem.help));
  }
  return problems;
}

// The exception classes are the package's own.
void raise(const char* name, const py::tuple& arguments) {
  const py::object type = py::module_::import("hdpsim").attr(name);
  PyErr_SetObject(type.ptr(), type(*arguments).ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(std::move(thrown));
  } catch (const InputError& error) {
    raise("InputError", py::make_tuple(error.what(), problems_of(error)));
  } catch (const MachineError& error) {
    raise("MachineError", py::make_tuple(error.what()));
  } catch (const std::system_error& error) {
    raise("MachineError", py::make_tuple(error.what()));
  } catch (const CheckFailure& error) {
    raise("Bug", py::make_tuple(error.what()));
  }
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.attr("version") = version;
  py::register_exception_translator(translate);

  py::class_<StudySource>(module, "StudySource")
      .def(py::init([](std::string name, std::optional<std::string> text, std::vector<std::string> overrides,
                       std::vector<std::string> without, std::string data_folder) {
             return StudySource{std::move(name), std::move(text), std::move(overrides), std::move(without),
                                std::move(data_folder)};
           }),
           py::arg("name"), py::arg("text"), py::arg("overrides"), py::arg("without"), py::arg("data_folder"));

  py::class_<Result>(module, "Result")
      .def("columns", &Result::columns, py::arg("table"))
      .def("table", [](const Result& result) { return result.text(Format::table); })
      .def("json", [](const Result& result) { return result.text(Format::json); })
      .def("page", &Result::page, py::arg("path"))
      .def_property_readonly("study", &Result::study)
      .def_property_readonly("notes", &Result::notes);

  module.def(
      "study_text", [](const py::object& study) { return study_text(study); }, py::arg("study"));
  module.def("check", &check, py::arg("source"));
  module.def(
      "run",
      [](const StudySource& source, std::size_t jobs, std::string out, bool resume,
         std::function<void(std::size_t, std::size_t)> progress) {
        return run(source, {jobs, std::move(out), resume, std::move(progress)});
      },
      py::arg("source"), py::arg("jobs"), py::arg("out"), py::arg("resume"), py::arg("progress"));
}

}  // namespace hdpsim::python
