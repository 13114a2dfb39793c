#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/python/bindings.h"
#include "sim/python/interruptible.h"
#include "sim/python/plan.h"
#include "sim/run/live_planner.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

bool has_plan(const Study& study, const std::string& name) {
  return std::any_of(study.plans.begin(), study.plans.end(), [&](const StudyPlan& plan) { return plan.name == name; });
}

// The study with the plan of that name. If it has none, `alone` is what changes it to one that has that plan alone.
Study with_plan(StudySource source, const std::string& name, const std::vector<std::string>& alone) {
  Catalog catalog(source.data_folder);
  if (!name.empty()) {
    Study study = source.load(catalog);
    if (has_plan(study, name)) return study;
  }
  source.overrides.insert(source.overrides.end(), alone.begin(), alone.end());
  return source.load(catalog);
}

std::unique_ptr<LivePlanner> make_live(const StudySource& source, const std::string& name,
                                       const std::vector<std::string>& alone, std::int64_t point,
                                       std::optional<std::int64_t> waves) {
  const py::gil_scoped_release no_gil;
  Study study = with_plan(source, name, alone);
  const std::string plan = has_plan(study, name) ? name : study.plans.front().name;
  return std::make_unique<LivePlanner>(std::move(study), point, plan, waves, version);
}

std::pair<PlanHandle, double> plan(LivePlanner& planner, const std::vector<std::int64_t>& lengths,
                                   const std::vector<SequenceName>& ids, std::optional<std::int64_t> step) {
  const py::gil_scoped_release no_gil;
  LivePlan live = planner.plan(lengths, ids, step);
  return {PlanHandle{std::make_shared<const PlanDocument>(std::move(live.document))}, live.estimate_s};
}

}  // namespace

void bind_planner(py::module_& module) {
  py::class_<LivePlanner>(module, "LivePlanner")
      .def(py::init(&make_live), py::arg("source"), py::arg("name"), py::arg("alone"), py::arg("point"),
           py::arg("waves"))
      .def("plan", &plan, py::arg("lengths"), py::arg("ids"), py::arg("step"))
      .def("held", &LivePlanner::held)
      .def("state", &LivePlanner::state)
      .def("set_state", &LivePlanner::set_state, py::arg("text"))
      .def_property_readonly("holds_back", &LivePlanner::holds_back)
      .def_property_readonly("policy", &LivePlanner::policy)
      .def_property_readonly("ranks", [](const LivePlanner& planner) { return planner.point().spec.mesh.hdp; })
      .def_property_readonly("capacity", [](const LivePlanner& planner) { return planner.point().spec.capacity; })
      .def_property_readonly("context", [](const LivePlanner& planner) { return planner.point().spec.batch.context; });
}

}  // namespace hdpsim::python
