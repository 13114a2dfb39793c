#include "sim/validate/step_lines.h"

#include <iterator>

#include "sim/analysis/uncertainty.h"

namespace hdpsim {

// With x = m / T and y = 1 / T the relative error is a x + c y - 1, which makes the normal equations those of a plane
// through the origin.
std::optional<StepLine> line_through(const std::vector<StepOfPlan>& steps) {
  double xx = 0;
  double xy = 0;
  double yy = 0;
  double x_sum = 0;
  double y_sum = 0;
  for (const StepOfPlan& step : steps) {
    const double x = step.micro_batches / step.seconds;
    const double y = 1 / step.seconds;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x_sum += x;
    y_sum += y;
  }
  constexpr double alike = 1e-9;  // of the largest determinant that such sums can have
  const double determinant = xx * yy - xy * xy;
  if (!(determinant > alike * xx * yy)) return std::nullopt;
  return StepLine{(x_sum * yy - y_sum * xy) / determinant, (y_sum * xx - x_sum * xy) / determinant};
}

std::optional<LineErrors> line_errors(const std::vector<StepsOfPlan>& plans) {
  std::vector<double> errors;
  std::vector<double> published_rests;
  std::vector<double> predicted_rests;
  for (const StepsOfPlan& plan : plans) {
    const auto published = line_through(plan.published);
    const auto predicted = line_through(plan.predicted);
    const bool rises = published && predicted && published->per_micro_batch > 0 && predicted->per_micro_batch > 0;
    if (!rises) continue;
    errors.push_back(predicted->per_micro_batch / published->per_micro_batch - 1);
    published_rests.push_back(published->rest());
    predicted_rests.push_back(predicted->rest());
  }
  if (errors.empty()) return std::nullopt;
  return LineErrors{.plans = std::ssize(errors),
                    .micro_batch_error = median(errors),
                    .published_rest = median(published_rests),
                    .predicted_rest = median(predicted_rests)};
}

}  // namespace hdpsim
