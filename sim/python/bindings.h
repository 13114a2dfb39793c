#pragma once

#include <pybind11/pybind11.h>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/output_folder.h"
#include "sim/document/document.h"
#include "sim/document/journal.h"
#include "sim/results/csv.h"
#include "sim/study/study.h"

namespace hdpsim::python {

/// The use for which the module opens a folder for writing files of these names and a journal.
[[nodiscard]] inline OutputUse output_use(const char* function, std::vector<std::string> names) {
  names.emplace_back(journal_name);
  return {"study", std::string("Python, hdpsim.") + function, std::move(names)};
}

// The bindings of each command: a function of its name and the class of its result.
void bind_run(pybind11::module_& module);
void bind_tune(pybind11::module_& module);
void bind_replay(pybind11::module_& module);
void bind_decide(pybind11::module_& module);
void bind_compare(pybind11::module_& module);
/// What a policy of Python plans for.
void bind_steps(pybind11::module_& module);
/// Plans and what each rank holds of them.
void bind_plan(pybind11::module_& module);
/// What plans the batches of a live run.
void bind_planner(pybind11::module_& module);

/// A study built in Python, as the YAML that a user would have written. Accepts dictionaries, lists, tuples, text,
/// paths, numbers (also NumPy's), True, False and None. TypeError with its place for anything else,
/// InputError for what is nested too deeply or too large (limits.h).
[[nodiscard]] std::string study_text(const pybind11::handle& study);

/// A table as a dictionary of lists, one per column: text, whole numbers, floats, True and False as such, None for
/// missing values. Needs the GIL.
[[nodiscard]] pybind11::dict columns_of(const std::function<void(TableSink&)>& write);

/// Index of a table; ValueError with the names of all tables if there is none of this name.
[[nodiscard]] std::size_t table_named(const std::string& name, const std::vector<std::string>& names);

/// A study as Python names it.
struct StudySource {
  std::string name;                 ///< Path of the file, or the name of the text in messages.
  std::optional<std::string> text;  ///< Empty: the file is read.
  std::vector<std::string> overrides;
  std::vector<std::string> without;
  std::string data_folder;
  bool keeps_order = false;  ///< Catalog::keep_order_of_files().

  /// Loads the study. InputError as for load_study().
  [[nodiscard]] Study load(Catalog& catalog) const {
    if (keeps_order) catalog.keep_order_of_files();
    if (text) return parse_study(name, *text, overrides, catalog, without);
    return load_study(name, overrides, catalog, without);
  }

  /// The study as written, without the overrides.
  [[nodiscard]] Value document() const {
    Diagnostics none;
    return text ? parse_document(name, *text, none) : load_document(name, none);
  }
};

}  // namespace hdpsim::python
