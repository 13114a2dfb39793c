#pragma once

#include <string>
#include <vector>

#include "sim/study/study.h"

namespace hdpsim {

/// What the framework that a study names, or Megatron-LM where it names none, would refuse to run of its points and
/// plans: a line each. Plans are looked at over the first steps of a point, where their schedule or their groups can be
/// refused. Only presets of frameworks that run Megatron's pipelines are held to its rules.
[[nodiscard]] std::vector<std::string> framework_notes(const Study& study);

}  // namespace hdpsim
