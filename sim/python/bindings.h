#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/base/output_folder.h"

namespace hdpsim::python {

/// The use for which the module opens a folder for writing.
[[nodiscard]] inline OutputUse output_use(const char* function, std::vector<std::string> names) {
  return {"study", std::string("Python, hdpsim.") + function, std::move(names)};
}

// The bindings of each command: a function of its name and the class of its result.
void bind_run(pybind11::module_& module);
void bind_tune(pybind11::module_& module);
void bind_replay(pybind11::module_& module);
/// What a policy of Python plans for.
void bind_steps(pybind11::module_& module);

}  // namespace hdpsim::python
