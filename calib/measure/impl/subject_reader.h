#pragma once

#include <optional>

#include "calib/measure/subject.h"
#include "sim/document/document.h"

namespace hdpsim::calib {

/// The subject of a value as subject_text() writes it. Empty if there is anything wrong with it, all of which is
/// reported with its place.
[[nodiscard]] std::optional<Subject> read_subject(const Value& value, Diagnostics& diagnostics);

}  // namespace hdpsim::calib
