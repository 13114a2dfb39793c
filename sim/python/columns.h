#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "sim/report/csv.h"

namespace hdpsim::python {

/// A table of a result as a dictionary of lists, one a column: text, whole numbers, floats, True and False as such,
/// None for what is not there. Needs the GIL.
[[nodiscard]] pybind11::dict columns_of(ResultTable table, const std::vector<Run>& runs);

}  // namespace hdpsim::python
