#pragma once

#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The quantity of a point that deviates most from the usual values of clusters, models and data towards longer steps:
/// the most likely cause of a step that is too long to be simulated.
struct Outsize {
  Position position;  ///< Position of its value, or of the part of the study that contains it.
  std::string key;    ///< "data.context".
  double times = 1;   ///< Ratio to the usual value.

  /// The problem to report when something ("step 3 of 'static'") of the point does not fit, for the reason `why`.
  [[nodiscard]] Diagnostic problem(std::string_view something, std::string_view why) const;
  /// InputError with that problem and its line.
  [[noreturn]] void fail(std::string_view something, std::string_view why) const;
};

/// `study` is the study from which the point was read, with its cluster in full.
[[nodiscard]] Outsize outsize_of(const Value& study, const PointSpec& spec);

}  // namespace hdpsim
