#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace hdpsim::python {

/// A study built in Python, as the YAML that a user would have written. Accepts dictionaries, lists, tuples, text,
/// paths, numbers (also NumPy's), True, False and None. TypeError with its place for anything else,
/// InputError for what is nested too deeply or too large (limits.h).
[[nodiscard]] std::string study_text(const pybind11::handle& study);

}  // namespace hdpsim::python
