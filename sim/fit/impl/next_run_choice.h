#pragma once

#include <string>
#include <vector>

#include "sim/fit/impl/step_model.h"
#include "sim/fit/next_runs.h"
#include "sim/fit/robust_fit.h"

namespace hdpsim {

/// A fit, for those who ask what further rows would add to it.
struct FittedPoint {
  const RobustFit& fit;
  const std::vector<const PhysicalParameter*>& parameters;
  const std::vector<ParameterScale>& scales;  ///< Of the parameters.
  const DeviceProfile& start;                 ///< The profile from which it started.
};

/// How the candidates and the study are read and simulated.
struct NextReading {
  std::string data_folder;
  StudyChanges changes;  ///< Of every candidate.
  RunnerOptions running;
};

/// Which of the candidates would narrow most what is asked, by the posterior of the fit to first order: slopes of
/// candidates and study are differences of simulated steps, as the fit takes them, and a candidate's noise is that of
/// the fit's rows. FitStopped. InputError: none of the candidates can be run; candidates or study have another profile
/// than the fit.
[[nodiscard]] NextRuns next_runs(const NextRequest& request, const FittedPoint& point, const NextReading& reading);

}  // namespace hdpsim
