#include <pybind11/stl.h>

#include <memory>
#include <utility>

#include "sim/base/printable.h"
#include "sim/compare/result_comparison.h"
#include "sim/python/bindings.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

/// Results of studies that are compared with the first of them.
class ComparedResults {
 public:
  explicit ComparedResults(const std::vector<std::string>& paths) : results_(read_results(paths)) {}

  [[nodiscard]] py::dict columns() const {
    return columns_of([&](TableSink& sink) { write_compared_runs(results_, sink); });
  }
  [[nodiscard]] std::string table() const { return printable_lines(results_table(results_)); }
  [[nodiscard]] std::string json() const { return results_json(results_); }
  [[nodiscard]] std::string page() const { return results_page(results_); }
  /// By result but the first: (path, value in the first, value here) of the keys that differ.
  [[nodiscard]] std::vector<std::vector<std::tuple<std::string, std::string, std::string>>> changed() const {
    std::vector<std::vector<std::tuple<std::string, std::string, std::string>>> all;
    for (std::size_t i = 1; i < results_.size(); ++i) {
      auto& keys = all.emplace_back();
      for (const ChangedKey& key : changed_keys(results_[0], results_[i])) {
        keys.emplace_back(key.path, key.first, key.here);
      }
    }
    return all;
  }

 private:
  std::vector<WrittenResult> results_;
};

}  // namespace

void bind_compare(py::module_& module) {
  py::class_<ComparedResults>(module, "ComparedResults")
      .def(py::init<const std::vector<std::string>&>(), py::arg("paths"))
      .def("columns", &ComparedResults::columns)
      .def("table", &ComparedResults::table)
      .def("json", &ComparedResults::json)
      .def("page", &ComparedResults::page)
      .def("changed", &ComparedResults::changed);
}

}  // namespace hdpsim::python
