#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/explanation.h"
#include "sim/results/format.h"
#include "sim/run/explain.h"

namespace hdpsim {

/// A line of an explanation; those of depth 1 are examples for the line above them.
struct ExplanationLine {
  int depth = 0;
  std::string text;
};

/// What decides how long the step takes, without what would help.
[[nodiscard]] std::vector<ExplanationLine> lines_of(const Explanation& plan);

/// Activities whose time differs by at least half a per cent of `step`, the largest difference first: what `to` has
/// more than `from`.
[[nodiscard]] std::vector<std::pair<Activity, Duration>> differences(const Breakdown& from, const Breakdown& to,
                                                                     Duration step);

/// The explanations for people (table) or as JSON, schema `hdpsim.explanation/1`: each plan, then the differences of
/// the others to the first. `title` names the point and the study.
[[nodiscard]] std::string formatted(const std::string& title, const std::vector<Explanation>& plans, Format format);

/// The same for plans of a study, as explain() has explained them for this choice. As text it ends with what its
/// speed-ups are over.
[[nodiscard]] std::string explained(const Study& study, const std::vector<Run>& runs, const ExplainChoice& choice,
                                    std::vector<Explanation> plans, Format format);

}  // namespace hdpsim
