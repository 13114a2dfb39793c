#include "sim/tune/tune.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>

#include "sim/base/output_folder.h"
#include "sim/base/printable.h"
#include "sim/python/bindings.h"
#include "sim/python/interruptible.h"
#include "sim/tune/tune_report.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

/// A study that has been tuned.
class Tuning {
 public:
  Tuning(Study study, TuneResult result) : study_(std::move(study)), result_(std::move(result)) {}

  [[nodiscard]] py::dict columns() const {
    return columns_of(
        [&](TableSink& sink) { candidate_figures().write(ranked_candidates(result_, study_.tune.price), sink); });
  }
  [[nodiscard]] std::string table() const { return printable_lines(tune_table(result_, study_.tune.price)); }
  [[nodiscard]] std::string json() const { return tune_json(result_, study_.tune.price, study_.resolved, version); }
  [[nodiscard]] std::string best() const { return to_yaml(result_.winner); }
  [[nodiscard]] std::string study() const { return to_yaml(study_.resolved); }
  void write(OutputFolder& folder) const { write_tuning(folder, result_, study_, version); }

 private:
  Study study_;
  TuneResult result_;
};

std::unique_ptr<Tuning> tuning(const StudySource& source, const RunOptions& options,
                               const std::function<bool()>& stop) {
  const InputFiles inputs;
  Catalog catalog(source.data_folder);
  Study study = source.load(catalog);
  std::optional<OutputFolder> folder;
  if (!options.out.empty()) {
    folder.emplace(options.out, output_use("tune", tuning_file_names()), &inputs);
    (void)folder->file(journal_name);
  }
  auto result =
      hdpsim::tune(study, tuning_root(source.document(), source.overrides), catalog,
                   {.jobs = options.jobs,
                    .kept = {options.out, options.resume},
                    .version = version,
                    .stop = stop,
                    .report = [&](const TuneProgress& progress) { options.report(progress.done(), progress.most()); }});
  if (!result) return nullptr;
  auto tuned = std::make_unique<Tuning>(std::move(study), std::move(*result));
  if (folder) {
    folder->remove_earlier();
    tuned->write(*folder);
  }
  return tuned;
}

}  // namespace

void bind_tune(py::module_& module) {
  py::class_<Tuning>(module, "Tuning")
      .def("columns", &Tuning::columns)
      .def("table", &Tuning::table)
      .def("json", &Tuning::json)
      .def_property_readonly("best", &Tuning::best)
      .def_property_readonly("study", &Tuning::study);
  module.def(
      "tune",
      [](const StudySource& source, const RunOptions& options) {
        return interruptible([&](const auto& stop) { return tuning(source, options, stop); });
      },
      py::arg("source"), py::arg("options"));
}

}  // namespace hdpsim::python
