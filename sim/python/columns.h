#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/results/csv.h"

namespace hdpsim::python {

/// A table as a dictionary of lists, one per column: text, whole numbers, floats, True and False as such, None for
/// missing values. Needs the GIL.
[[nodiscard]] pybind11::dict columns_of(const std::function<void(TableSink&)>& write);

/// Index of a table; ValueError with the names of all tables if there is none of this name.
[[nodiscard]] std::size_t table_named(const std::string& name, const std::vector<std::string>& names);

}  // namespace hdpsim::python
