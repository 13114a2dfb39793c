#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/python/bindings.h"
#include "sim/python/interruptible.h"
#include "sim/study/new_study.h"

// The native half of the package: the part that needs the simulator. Users see hdpsim/__init__.py.
namespace hdpsim::python {
namespace {

namespace py = pybind11;

void check(const StudySource& source) {
  const py::gil_scoped_release no_gil;
  Catalog catalog(source.data_folder);
  (void)source.load(catalog);
}

const std::vector<std::pair<std::string, NewStudyPart>>& kinds() {
  static const std::vector<std::pair<std::string, NewStudyPart>> all = {{"clusters", NewStudyPart::cluster},
                                                                        {"models", NewStudyPart::model},
                                                                        {"profiles", NewStudyPart::profile},
                                                                        {"lengths", NewStudyPart::lengths},
                                                                        {"plans", NewStudyPart::plans}};
  return all;
}

// What a study can name without a file of its own.
std::vector<std::string> names(const std::string& kind, const std::string& data_folder) {
  std::vector<std::string> known;
  for (const auto& [name, part] : kinds()) {
    Catalog catalog(data_folder);
    if (name == kind) return NewStudy(catalog).names_of(part);
    known.push_back(name);
  }
  throw py::value_error("there are no names of '" + kind + "'; " + suggestion(kind, known));
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
  } catch (const QuantityOverflow& error) {
    raise("InputError", py::make_tuple(error.what(), py::list()));
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
  py::register_local_exception_translator(translate);  // other modules throw what is theirs

  py::class_<StudySource>(module, "StudySource")
      .def(py::init([](std::string name, std::optional<std::string> text, std::vector<std::string> overrides,
                       std::vector<std::string> without, std::string data_folder, bool keeps_order) {
             return StudySource{std::move(name),    std::move(text),        std::move(overrides),
                                std::move(without), std::move(data_folder), keeps_order};
           }),
           py::arg("name"), py::arg("text"), py::arg("overrides"), py::arg("without"), py::arg("data_folder"),
           py::arg("keeps_order"));

  py::class_<RunOptions>(module, "RunOptions")
      .def(py::init([](std::size_t jobs, std::string out, bool resume,
                       std::function<void(std::int64_t, std::int64_t)> progress) {
             return RunOptions{jobs, std::move(out), resume, std::move(progress)};
           }),
           py::arg("jobs"), py::arg("out"), py::arg("resume"), py::arg("progress"));

  module.def(
      "study_text", [](const py::object& study) { return study_text(study); }, py::arg("study"));
  module.def("names", &names, py::arg("kind"), py::arg("data_folder"));
  module.def("check", &check, py::arg("source"));
  bind_run(module);
  bind_tune(module);
  bind_replay(module);
  bind_decide(module);
  bind_compare(module);
  bind_steps(module);
  bind_plan(module);
  bind_planner(module);
}

}  // namespace hdpsim::python
