#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hdpsim {

/// The timeline files of one step: its prediction and its runs, in the order in which they ran.
struct StepFiles {
  std::filesystem::path predicted;
  std::vector<std::filesystem::path> measured;
};

/// The steps of one plan.
struct TimelineSet {
  std::string name;  ///< The folder that holds it, if a folder of several was given; otherwise empty.
  std::vector<StepFiles> steps;
};

/// The timelines that a user names: a folder of `hdpsim execute`, with those of one plan or with a folder for each of
/// several; or timeline files, whose first lines say whether they are predictions, and of which plan and step. Two
/// given files belong together whatever they say. InputError for a file that is not a timeline, for a prediction
/// without a measurement and for a measurement without one prediction.
[[nodiscard]] std::vector<TimelineSet> find_timelines(const std::vector<std::string>& paths);

}  // namespace hdpsim
