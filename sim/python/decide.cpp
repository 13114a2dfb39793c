#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>

#include "sim/base/printable.h"
#include "sim/decide/decision_report.h"
#include "sim/python/bindings.h"
#include "sim/python/interruptible.h"
#include "sim/run/runner.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

/// What is to be decided: tokens, the days in which they have to be trained, or 0, and the most GPUs, or 0.
struct DecisionQuestion {
  double tokens = 0;
  double days = 0;
  std::int64_t most_gpus = 0;
  std::string prices;  ///< A file; empty: none.
};

/// A study of which it is known what training takes.
class Decisions {
 public:
  Decisions(Study study, DecisionResult result) : study_(std::move(study)), result_(std::move(result)) {}

  [[nodiscard]] py::dict columns() const {
    return columns_of([&](TableSink& sink) { write_decisions(result_, sink); });
  }
  [[nodiscard]] std::string table() const { return printable_lines(decision_table(result_)); }
  [[nodiscard]] std::string json() const { return decision_json(result_, study_.resolved, version); }
  [[nodiscard]] std::string page() const { return decision_page(result_); }
  [[nodiscard]] std::string study() const { return to_yaml(study_.resolved); }
  /// Of the search, by plan: the fewest GPUs, or empty.
  [[nodiscard]] py::dict smallest() const {
    py::dict found;
    for (const PlanSizes& plan : result_.search) {
      found[py::str(plan.plan)] = plan.smallest.gpus ? py::object(py::int_(*plan.smallest.gpus)) : py::none();
    }
    return found;
  }

 private:
  Study study_;
  DecisionResult result_;
};

std::unique_ptr<Decisions> decide(const StudySource& source, const DecisionQuestion& question,
                                  const RunOptions& options, const std::function<bool()>& stop) {
  Catalog catalog(source.data_folder);
  Study study = source.load(catalog);
  const auto days = question.days > 0 ? std::optional(question.days) : std::nullopt;
  DecisionResult result = asked_decision(study, question.tokens, days, question.prices);
  const RunnerOptions how{
      .jobs = options.jobs, .version = version, .stop = stop, .report = [&](const Progress& progress) {
        options.report(static_cast<std::int64_t>(progress.steps_done), static_cast<std::int64_t>(progress.steps));
      }};
  if (days) {
    const auto most = question.most_gpus > 0 ? std::optional(question.most_gpus) : std::nullopt;
    auto found = search_clusters(study, {question.tokens, *days, most}, result.prices, catalog, how);
    if (!found) return nullptr;
    result.search = std::move(*found);
  } else {
    auto runs = run_study(study, how);
    if (!runs) return nullptr;
    result.decisions = decisions_of(study, std::move(*runs), question.tokens, result.prices);
  }
  return std::make_unique<Decisions>(std::move(study), std::move(result));
}

}  // namespace

void bind_decide(py::module_& module) {
  py::class_<Decisions>(module, "Decisions")
      .def("columns", &Decisions::columns)
      .def("table", &Decisions::table)
      .def("json", &Decisions::json)
      .def("page", &Decisions::page)
      .def_property_readonly("smallest", &Decisions::smallest)
      .def_property_readonly("study", &Decisions::study);
  module.def(
      "decide",
      [](const StudySource& source, double tokens, double days, std::int64_t most_gpus, std::string prices,
         const RunOptions& options) {
        const DecisionQuestion question{tokens, days, most_gpus, std::move(prices)};
        return interruptible([&](const auto& stop) { return decide(source, question, options, stop); });
      },
      py::arg("source"), py::arg("tokens"), py::arg("days"), py::arg("most_gpus"), py::arg("prices"),
      py::arg("options"));
}

}  // namespace hdpsim::python
