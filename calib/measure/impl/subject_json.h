#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "calib/measure/subject.h"
#include "sim/document/json.h"

namespace hdpsim::calib {

/// With its keys in a fixed order, so that equal subjects have equal texts.
[[nodiscard]] Json json_of(const Subject& subject);
/// The subject of a JSON value; empty if it is none. Throws what the JSON library throws for values of a wrong type.
[[nodiscard]] std::optional<Subject> subject_from(const Json& json);

}  // namespace hdpsim::calib
