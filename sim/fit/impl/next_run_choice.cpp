#include "sim/fit/impl/next_run_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/fit/impl/posterior.h"
#include "sim/run/refusals.h"
#include "sim/run/runner.h"

namespace hdpsim {
namespace {

using Slopes = std::vector<std::vector<double>>;

std::vector<FitCoordinate> coordinates_of(const FittedPoint& point) {
  std::vector<FitCoordinate> coordinates;
  for (const ParameterScale& scale : point.scales) coordinates.push_back(scale.coordinate());
  return coordinates;
}

std::vector<double> values_at(const FittedPoint& point, const std::vector<double>& at) {
  std::vector<double> values;
  for (std::size_t i = 0; i < at.size(); ++i) values.push_back(point.scales[i].value(at[i]));
  return values;
}

// What is fitted of one profile says nothing of another.
void require_profile(const std::string& asked, const std::string& path, const FittedPoint& point) {
  if (asked == point.start.name) return;
  throw InputError(
      {path, 0, 0},
      fmt::format("its profile is {}, and the fit is one of {}: no row says anything of it", asked, point.start.name),
      fmt::format("give it the profile {}, from which the fit starts", point.start.name));
}

Slopes slopes_of(const StepModel& model, const FittedPoint& point) {
  std::vector<std::size_t> all(model.figures().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return residual_slopes(
      [&](const std::vector<double>& at) {
        std::vector<double> residuals = model.predicted(point.parameters, values_at(point, at), all);
        for (std::size_t i = 0; i < all.size(); ++i) residuals[i] = log_ratio(model.figures()[i], residuals[i]);
        return residuals;
      },
      coordinates_of(point), point.fit.at);
}

/// The runs of a study, and the logarithms of their mean step times by parameters.
class AskedStudy {
 public:
  AskedStudy(const std::string& path, const FittedPoint& point, const NextReading& reading)
      : path_(path), point_(point), reading_(reading) {
    runs_ = simulated(point.fit.at);
    std::vector<const Run*> pointers;
    for (const Run& run : runs_) pointers.push_back(&run);
    require_one_that_ran(pointers);
    std::erase_if(runs_, [](const Run& run) { return run.is_refused(); });
  }

  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

  [[nodiscard]] Slopes slopes() const {
    return residual_slopes([&](const std::vector<double>& at) { return log_steps(at); }, coordinates_of(point_),
                           point_.fit.at);
  }

 private:
  // A run that is refused only with other parameters has no slope along them.
  [[nodiscard]] std::vector<double> log_steps(const std::vector<double>& at) const {
    const std::vector<Run> moved = simulated(at);
    std::vector<double> steps;
    for (const Run& run : runs_) {
      const auto same = std::find_if(moved.begin(), moved.end(), [&](const Run& other) {
        return !other.is_refused() && other.info.point == run.info.point && other.info.plan == run.info.plan;
      });
      steps.push_back(std::log((same == moved.end() ? run : *same).metrics.step_time_s.mean));
    }
    return steps;
  }

  [[nodiscard]] std::vector<Run> simulated(const std::vector<double>& at) const {
    Catalog catalog(reading_.data_folder, [&](DeviceProfile& profile) {
      if (profile.name == point_.start.name) {
        profile = with_values(std::move(profile), point_.parameters, values_at(point_, at));
      }
    });
    const Study study = load_study(path_, {}, catalog);
    for (const StudyPoint& point : study.points) require_profile(point.spec.profile->name, path_, point_);
    auto runs = run_study(study, reading_.running);
    if (!runs) throw FitStopped();
    return std::move(*runs);
  }

  const std::string& path_;
  const FittedPoint& point_;
  const NextReading& reading_;
  std::vector<Run> runs_;  ///< At the fit, without those that were refused.
};

std::string title_of(const Run& run) {
  std::vector<std::string> parts;
  for (const auto& coordinate : run.info.coordinates) {
    parts.push_back(fmt::format("{} {}", coordinate.path, line_of(coordinate.value)));
  }
  parts.push_back(run.info.plan);
  return joined(parts, ", ");
}

double prior_deviation(const std::vector<double>& slopes, const FittedPoint& point) {
  double variance = 0;
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    variance += std::pow(slopes[i] * point.scales[i].coordinate().width, 2);
  }
  return std::sqrt(variance);
}

std::vector<StepKnowledge> known_steps(const AskedStudy& study, const Slopes& slopes, const Posterior& known,
                                       const FittedPoint& point) {
  std::vector<StepKnowledge> steps;
  for (const Run& run : study.runs()) {
    const std::vector<double>& slope = slopes[steps.size()];
    const double now = known.deviation_along(slope);
    steps.push_back({.run = title_of(run),
                     .step_time_s = run.metrics.step_time_s.mean,
                     .reach = interval_reach(now, prior_deviation(slope, point), point.fit.freedom),
                     .now = now,
                     .after_first = now,
                     .after_both = now});
  }
  return steps;
}

// The geometric mean of posterior over prior deviations.
double width_of_parameters(const Posterior& posterior, const FittedPoint& point) {
  double sum = 0;
  for (std::size_t i = 0; i < posterior.coordinates(); ++i) {
    sum += std::log(posterior.deviation(i) / point.scales[i].coordinate().width);
  }
  return std::exp(sum / static_cast<double>(posterior.coordinates()));
}

CandidateRun candidate(const StepModel& model, std::size_t figure, double width, double width_now) {
  const MeasuredFigure& what = model.figures()[figure];
  return {.name = model.name_of(figure),
          .quantity = what.quantity,
          .width = width,
          .share = width_now > 0 ? width / width_now : 1,
          .parameter = {},
          .place = {}};
}

void find_narrowed(const Posterior& known, const std::vector<double>& slopes, const FittedPoint& point,
                   CandidateRun& run) {
  const Posterior after = known.with_row(slopes);
  for (std::size_t i = 0; i < known.coordinates(); ++i) {
    const double share = after.deviation(i) / known.deviation(i);
    if (!run.parameter.empty() && share >= run.parameter_share) continue;
    run.parameter = point.parameters[i]->name;
    run.parameter_share = share;
  }
}

}  // namespace

double StepKnowledge::low(double deviation) const {
  return step_time_s * std::exp(-reach * deviation);
}

double StepKnowledge::high(double deviation) const {
  return step_time_s * std::exp(reach * deviation);
}

const CandidateRun* NextRuns::at_place(std::int64_t place) const {
  const auto found =
      std::find_if(runs.begin(), runs.end(), [&](const CandidateRun& run) { return run.place == place; });
  return found == runs.end() ? nullptr : &*found;
}

NextRuns next_runs(const NextRequest& request, const FittedPoint& point, const NextReading& reading) {
  const StepModel model({.sets = {{request.candidates, request.path}},
                         .data_folder = reading.data_folder,
                         .changes = reading.changes,
                         .running = reading.running});
  if (model.figures().empty()) {
    throw InputError({request.path, 0, 0}, "none of the candidates can be simulated", joined(model.left_out(), "; "));
  }
  require_profile(model.profile().name, request.path, point);
  NextRuns result;
  result.candidates = request.path;
  result.study = request.study;
  result.left_out = model.left_out();
  const Posterior known(point.fit);
  Slopes of_study;
  if (!request.study.empty()) {
    const AskedStudy study(request.study, point, reading);
    of_study = study.slopes();
    result.steps = known_steps(study, of_study, known, point);
  }
  const PosteriorWidth width = [&](const Posterior& posterior) {
    if (of_study.empty()) return width_of_parameters(posterior, point);
    double sum = 0;
    for (std::size_t i = 0; i < of_study.size(); ++i) {
      sum += result.steps[i].reach * posterior.deviation_along(of_study[i]);
    }
    return sum / static_cast<double>(of_study.size());
  };
  const Slopes slopes = slopes_of(model, point);
  const NextRows next = choose_next_rows(known, slopes, width);
  result.width = next.now;
  result.width_after = next.after;
  for (const std::size_t figure : next.order) {
    CandidateRun run = candidate(model, figure, next.after_each[figure], next.now);
    find_narrowed(known, slopes[figure], point, run);
    const auto chosen = std::find(next.chosen.begin(), next.chosen.end(), figure);
    if (chosen != next.chosen.end()) run.place = chosen - next.chosen.begin() + 1;
    result.runs.push_back(std::move(run));
  }
  const Posterior first = known.with_row(slopes[next.chosen.front()]);
  const Posterior both = next.chosen.size() > 1 ? first.with_row(slopes[next.chosen.back()]) : first;
  for (std::size_t i = 0; i < result.steps.size(); ++i) {
    result.steps[i].after_first = first.deviation_along(of_study[i]);
    result.steps[i].after_both = both.deviation_along(of_study[i]);
  }
  return result;
}

}  // namespace hdpsim
