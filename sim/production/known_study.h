#pragma once

#include <cstddef>
#include <vector>

#include "sim/production/production_run.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"

namespace hdpsim {

/// A plan of a point of a study.
struct ProducedPlan {
  const Study& study;
  const StudyPoint& point;
  std::size_t plan = 0;
};

/// A study of this plan and point alone, where policies know that these devices are slow: its `faults`.
[[nodiscard]] Study study_that_knows(const ProducedPlan& of, const std::vector<SlowDevice>& known, Catalog& catalog);

/// A study of this plan and point alone, without the nodes of these devices: on as many ranks as have room on the
/// others, and for which the policy has a plan. InputError, at `answer` of the stragglers, if there is none.
[[nodiscard]] Study study_without_nodes(const ProducedPlan& of, const std::vector<SlowDevice>& known, Catalog& catalog);

/// As faults of all steps.
[[nodiscard]] std::vector<Fault> faults_of(const std::vector<SlowDevice>& devices);

}  // namespace hdpsim
