#pragma once

#include <pybind11/pybind11.h>

namespace hdpsim::python {

// What the module has of each command: a function of its name and the class of its result.
void bind_run(pybind11::module_& module);
void bind_tune(pybind11::module_& module);
void bind_replay(pybind11::module_& module);

}  // namespace hdpsim::python
