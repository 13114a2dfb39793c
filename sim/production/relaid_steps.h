#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sim/production/known_study.h"
#include "sim/relayout/relayout.h"

namespace hdpsim {

/// What the steps of a plan take more where its pipelines are laid out around the slow devices that are known
/// (relaid()): the difference of RelayoutJob::seconds to usual devices in the usual layout. Where nothing fits in
/// memory, the layout stays as it was.
class RelaidSteps {
 public:
  /// InputError, at `answer` of the study's stragglers, if the plan cannot be laid out anew (relayout_problem()).
  /// `first` is its first step. All must outlive it.
  RelaidSteps(const ProducedPlan& of, const PointStep& first);

  [[nodiscard]] double more_seconds(const DeviceState& state);
  /// From one layout to another; states move on a network without other traffic.
  [[nodiscard]] Adaptation adapt(const std::vector<SlowDevice>& before, const std::vector<SlowDevice>& now);

 private:
  [[nodiscard]] const Relayout& layout_for(const std::vector<SlowDevice>& known);

  const StudyPoint& point_;
  RelayoutJob job_;
  double layer_bytes_ = 0;
  double usual_s_ = 0;
  std::map<std::vector<SlowDevice>, Relayout> layouts_;
};

}  // namespace hdpsim
