#pragma once

#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The quantity of a point that is farthest from what clusters, models and data usually have, towards longer steps:
/// where a step that is too long to be simulated most likely comes from.
struct Outsize {
  Position position;  ///< Of its value, or of the part of the study that it belongs to.
  std::string key;    ///< "data.context".
  double times = 1;   ///< What is usual.

  /// The user's problem that something ("step 3 of 'static'") of the point does not fit, for the reason `why`.
  [[nodiscard]] Diagnostic problem(std::string_view something, std::string_view why) const;
};

/// `study` is what the point was read from, with its cluster in full.
[[nodiscard]] Outsize outsize_of(const Value& study, const PointSpec& spec);

}  // namespace hdpsim
