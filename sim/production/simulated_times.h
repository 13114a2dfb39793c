#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "sim/document/journal.h"
#include "sim/production/production_run.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Steps that were simulated, by what they are: the point and the plan, the batch, and the state of the devices. Shared
/// by runs that differ in what does not change a step: failures, data, how long the run is.
class SimulatedSteps {
 public:
  explicit SimulatedSteps(Journal journal = {});
  ~SimulatedSteps();
  [[nodiscard]] std::optional<TimedStep> find(const std::string& key) const;
  void keep(const std::string& key, const TimedStep& step);

 private:
  Journal journal_;
  std::map<std::string, TimedStep> steps_;
};

/// How steps are simulated.
struct TimedStepsOptions {
  std::size_t jobs = 1;
  std::function<bool()> stop = [] { return false; };
  std::function<void()> report = [] {};  ///< Called after each step that was simulated.
};

/// The steps of a plan of a point, simulated when they are asked for: those of several batches in a state at once, on
/// several threads. Devices that policies plan for are `faults` of a study that is otherwise the same, or not among its
/// nodes (StragglerAnswer::drop); others meet the plans that were made without them. With StragglerAnswer::relayout a
/// step that knows of some takes RelaidSteps::more_seconds() more than on usual devices. With Stragglers::batches, so
/// many batches, evenly spaced, are simulated in a state of slow or known devices; a step of any batch there takes as
/// long as on usual devices times the ratio of the sums of these. `study`, `point` of it, `catalog` and `known` must
/// outlive the result.
[[nodiscard]] std::unique_ptr<TimedSteps> make_simulated_times(const Study& study, const StudyPoint& point,
                                                               std::size_t plan, Catalog& catalog,
                                                               SimulatedSteps& known, const TimedStepsOptions& options);

}  // namespace hdpsim
