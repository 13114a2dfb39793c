#pragma once

#include <string_view>

#include "sim/cost/cost_model.h"
#include "sim/engine/timeline.h"

namespace hdpsim {

/// What the time of an activity is spent on: the glossary's words, which pages show too.
[[nodiscard]] std::string_view activity_meaning(Activity activity);
/// What that evidence is.
[[nodiscard]] std::string_view evidence_meaning(Evidence evidence);

}  // namespace hdpsim
