#pragma once

#include <memory>

#include "sim/plan/plan_document.h"

namespace hdpsim::python {

/// A plan that Python objects share; none changes it.
using SharedPlan = std::shared_ptr<const PlanDocument>;

struct PlanHandle {
  SharedPlan document;
  const PlanDocument* operator->() const { return document.get(); }
};

}  // namespace hdpsim::python
