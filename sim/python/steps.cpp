#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/plan_file.h"
#include "sim/plan/scheduler_output.h"
#include "sim/python/bindings.h"
#include "sim/study/study_point.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

/// The batches and the pool of the first point of a study, for those who plan its steps themselves.
class Steps {
 public:
  explicit Steps(const StudySource& source) : study_(load(source)) {
    const StudyPoint& point = study_.points.front();
    pool_ = planning_context(point.spec, point.make_world()->job());
  }

  [[nodiscard]] const PlanningContext& pool() const { return pool_; }
  [[nodiscard]] std::int64_t count() const { return study_.points.front().spec.steps; }

  [[nodiscard]] std::vector<std::int64_t> lengths(std::int64_t step) const {
    std::vector<std::int64_t> tokens;
    for (const Sequence& sequence : batch(step).sequences) tokens.push_back(sequence.tokens);
    return tokens;
  }

  /// The plan file of the groups that a policy makes of a step, as `hdpsim import-plan` reads them. InputError, with
  /// `where` as the name of the text, if they are wrong.
  [[nodiscard]] std::string plan(const std::string& policy, std::int64_t step, const std::string& where,
                                 const std::string& groups) const {
    const SchedulerContext context{.policy = policy,
                                   .first_step = step,
                                   .ranks = pool_.ranks,
                                   .capacity = pool_.capacity,
                                   .layers = pool_.layers,
                                   .batch = [this](std::int64_t number) { return batch(number); },
                                   .steps = count()};
    Diagnostics diagnostics;
    const SchedulerPlans read = read_scheduler_output(where, groups, false, context, diagnostics);
    diagnostics.throw_if_any();
    return plan_text(read.plans.front());
  }

 private:
  static Study load(const StudySource& source) {
    const py::gil_scoped_release no_gil;
    Catalog catalog(source.data_folder);
    return source.load(catalog);
  }

  [[nodiscard]] Batch batch(std::int64_t step) const { return study_.points.front().batches->step(step); }

  Study study_;
  PlanningContext pool_;
};

}  // namespace

void bind_steps(py::module_& module) {
  py::class_<Steps>(module, "Steps")
      .def(py::init<const StudySource&>(), py::arg("source"))
      .def_property_readonly("count", &Steps::count)
      .def_property_readonly("ranks", [](const Steps& steps) { return steps.pool().ranks; })
      .def_property_readonly("ranks_per_node", [](const Steps& steps) { return steps.pool().ranks_per_node; })
      .def_property_readonly("capacity", [](const Steps& steps) { return steps.pool().capacity; })
      .def_property_readonly("context", [](const Steps& steps) { return steps.pool().context; })
      .def_property_readonly("layers", [](const Steps& steps) { return steps.pool().layers; })
      .def_property_readonly("stages", [](const Steps& steps) { return steps.pool().stages; })
      .def("lengths", &Steps::lengths, py::arg("step"))
      .def("plan", &Steps::plan, py::arg("policy"), py::arg("step"), py::arg("where"), py::arg("groups"));
}

}  // namespace hdpsim::python
