#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace hdpsim::python {

/// A study put together in Python, as the YAML that a user would have written. Dictionaries, lists, tuples, text,
/// paths, numbers (NumPy's too), True, False and None. TypeError for anything else, which says where it is.
[[nodiscard]] std::string study_text(const pybind11::handle& study);

}  // namespace hdpsim::python
