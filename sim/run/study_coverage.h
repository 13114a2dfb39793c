#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/cost/coverage.h"
#include "sim/study/study.h"

namespace hdpsim {

/// What the runs of a study asked of their measured profiles. Published profiles are left out: no calibration of theirs
/// could be asked to cover more, and the evidence columns of the result give their share.
class StudyCoverage {
 public:
  /// Adds the coverage of one simulated cluster with this profile.
  void add(const std::shared_ptr<const DeviceProfile>& profile, const Coverage& coverage);

  /// Lines for the user, a few per profile: which operations and messages of the study lie outside the measured ranges,
  /// which parts were not measured at all, and what to do about it. Empty if everything is covered.
  [[nodiscard]] std::vector<std::string> warnings(const Study& study, const std::vector<Run>& runs) const;

 private:
  struct Asked {
    std::shared_ptr<const DeviceProfile> profile;
    Coverage coverage;
  };
  std::map<std::string, Asked> by_profile_;  // by name
};

}  // namespace hdpsim
