#include "sim/study/study_choice.h"

#include <fmt/format.h>

#include <algorithm>

namespace hdpsim {

std::size_t chosen_plan(const Study& study, const std::string& name) {
  std::vector<std::string> names;
  for (const StudyPlan& plan : study.plans) names.push_back(plan.name);
  if (name.empty() && names.size() == 1) return 0;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  if (name.empty()) throw InputError("the study has several plans: choose one with --plan", suggestion("", names));
  throw InputError(fmt::format("the study has no plan '{}'", name), suggestion(name, names));
}

const StudyPoint& chosen_point(const Study& study, std::int64_t point) {
  if (point >= 0 && point < std::ssize(study.points)) return study.points[static_cast<std::size_t>(point)];
  throw InputError(fmt::format("there is no point {}: the study has {}, counted from 0", point, study.points.size()));
}

}  // namespace hdpsim
