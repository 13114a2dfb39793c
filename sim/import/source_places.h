#pragma once

#include <map>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/import/imported_study.h"

namespace hdpsim {

/// The problems that a reader found in the text of an imported study, which was read under `name`, at the places of the
/// file that it was made of: each at the argument that states the study's key, or at the file as a whole where it
/// follows from no argument. Problems of other files stay where they are.
[[nodiscard]] Diagnostics at_source(const ImportedStudy& study, const std::string& name, const Diagnostics& problems);

}  // namespace hdpsim
