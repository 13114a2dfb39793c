#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/document/document.h"
#include "sim/study/study.h"

namespace hdpsim::python {

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
