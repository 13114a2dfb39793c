#pragma once

#include "sim/base/diagnostic.h"
#include "sim/document/document.h"
#include "sim/study/point.h"

namespace hdpsim {

/// Reports, at its place in the study, everything that a pipeline whose stages go round the GPUs (is_streamed()) does
/// not serve, and that there are fewer micro-batches than GPUs.
void check_streamed(const Value& study, const PointSpec& point, Diagnostics& diagnostics);

}  // namespace hdpsim
