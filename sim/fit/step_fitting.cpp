#include "sim/fit/step_fitting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "sim/base/text.h"
#include "sim/fit/impl/fit_errors.h"
#include "sim/fit/impl/next_run_choice.h"
#include "sim/fit/impl/row_choice.h"
#include "sim/fit/impl/step_model.h"
#include "sim/fit/robust_fit.h"
#include "sim/profile/physical_parameters.h"
#include "sim/profile/profile_file.h"

namespace hdpsim {
namespace {

using Parameters = std::vector<const PhysicalParameter*>;

Parameters chosen_parameters(const std::vector<std::string>& names, const DeviceProfile& profile) {
  Parameters chosen;
  Diagnostics problems;
  const std::vector<std::string> known = fit_parameter_names();
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      problems.error({"--fit", 0, 0}, fmt::format("there is no parameter '{}'", name), suggestion(name, known));
    } else if (!fit_parameter(name).start(profile)) {
      problems.error({"--fit", 0, 0},
                     fmt::format("the profile {} has nothing for '{}' to start from", profile.name, name),
                     "give the profile this part, or leave the parameter out");
    } else if (std::find(chosen.begin(), chosen.end(), &fit_parameter(name)) == chosen.end()) {
      chosen.push_back(&fit_parameter(name));
    }
  }
  problems.throw_if_any();
  if (!names.empty()) return chosen;
  for (const PhysicalParameter& parameter : fit_parameters()) {
    if (parameter.start(profile)) chosen.push_back(&parameter);
  }
  return chosen;
}

// To six digits, as people read it.
double rounded(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

/// A fit of one set by one profile.
class StepFitter {
 public:
  StepFitter(const FitRequest& request, const StudyChanges& changes)
      : request_(request),
        changes_(changes),
        running_{.jobs = request.jobs, .version = request.version, .stop = request.stop},
        model_({.sets = request.sets, .data_folder = request.data_folder, .changes = changes, .running = running_}),
        parameters_(chosen_parameters(request.parameters, model_.profile())) {
    choose();
    for (const PhysicalParameter* parameter : parameters_) {
      scales_.emplace_back(*parameter, model_.profile(), figures_of(fitted_));
      coordinates_.push_back(scales_.back().coordinate());
    }
  }

  FitResult run() {
    request_.tell(fmt::format("{} parameters to {} rows", parameters_.size(), fitted_.size()));
    const RobustFit fit = robust_fit(
        [&](const std::vector<double>& at) {
          std::vector<double> residuals = residuals_at(at, fitted_);
          if (evaluations_++ % (parameters_.size() + 1) == 0) {
            request_.tell(fmt::format("simulated the rows {} times, mean |ln(predicted / measured)| {:.3f}",
                                      evaluations_, mean_size(residuals)));
          }
          return residuals;
        },
        coordinates_);
    FitResult result;
    result.iterations = fit.iterations;
    result.converged = fit.converged;
    result.scale = fit.scale;
    result.left_out = model_.left_out();
    add_rows(fit, result);
    cross_validate(fit, result);
    add_errors(result);
    add_profile(fit, result);
    if (request_.next) {
      request_.tell(fmt::format("what each run of {} would tell", request_.next->path));
      result.next = next_runs(*request_.next, {fit, parameters_, scales_, model_.profile()},
                              {request_.data_folder, changes_, running_});
    }
    return result;
  }

 private:
  void choose() {
    const std::vector<bool> held = held_out_rows(rows_of_all(), request_.holdout, request_.seed);
    for (std::size_t i = 0; i < model_.figures().size(); ++i) {
      (held[model_.place_of(i)] ? held_out_ : fitted_).push_back(i);
    }
    if (model_.figures().empty()) {
      throw InputError({request_.sets.front().path, 0, 0},
                       fmt::format("{} has no measured step to fit to", names_of(request_.sets)),
                       "a column step_time_s or tokens_per_s_per_gpu has them");
    }
    require_agreement(model_, fitted_);
  }

  [[nodiscard]] std::size_t rows_of_all() const {
    std::size_t rows = 0;
    for (const FitSource& source : model_.sets()) rows += source.set.cases.size();
    return rows;
  }

  [[nodiscard]] std::vector<const MeasuredFigure*> figures_of(const std::vector<std::size_t>& indices) const {
    std::vector<const MeasuredFigure*> figures;
    figures.reserve(indices.size());
    for (const std::size_t index : indices) figures.push_back(&model_.figures()[index]);
    return figures;
  }

  [[nodiscard]] std::vector<double> values_at(const std::vector<double>& at) const {
    std::vector<double> values;
    for (std::size_t i = 0; i < at.size(); ++i) values.push_back(scales_[i].value(at[i]));
    return values;
  }

  [[nodiscard]] std::vector<double> residuals_at(const std::vector<double>& at,
                                                 const std::vector<std::size_t>& indices) const {
    std::vector<double> residuals = model_.predicted(parameters_, values_at(at), indices);
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      residuals[i] = log_ratio(model_.figures()[indices[i]], residuals[i]);
    }
    return residuals;
  }

  static double mean_size(const std::vector<double>& residuals) {
    double sum = 0;
    for (const double residual : residuals) sum += std::abs(residual);
    return sum / static_cast<double>(residuals.size());
  }

  // The fitted rows first, then those held out.
  void add_rows(const RobustFit& fit, FitResult& result) const {
    std::vector<std::size_t> all = fitted_;
    all.insert(all.end(), held_out_.begin(), held_out_.end());
    const std::vector<double> before = model_.predicted({}, {}, all);
    const std::vector<double> after = model_.predicted(parameters_, values_at(fit.at), all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const MeasuredFigure& figure = model_.figures()[all[i]];
      FitRow row{.name = model_.name_of(all[i]),
                 .quantity = figure.quantity,
                 .unit = figure.unit,
                 .group = {},
                 .measured = figure.measured,
                 .before = before[i],
                 .after = after[i],
                 .cross_validated = {},
                 .held_out = i >= fitted_.size()};
      row.unexplained = !row.held_out && is_outlier(log_ratio(figure, after[i]), fit.scale);
      result.rows.push_back(std::move(row));
    }
  }

  void cross_validate(const RobustFit& fit, FitResult& result) const {
    const RowGroups groups = groups_of(figures_of(fitted_));
    result.grouped_by = groups.by;
    for (std::size_t i = 0; i < fitted_.size(); ++i) result.rows[i].group = groups.names[i];
    const std::size_t folds = *std::max_element(groups.folds.begin(), groups.folds.end()) + 1;
    for (std::size_t fold = 0; fold < folds && folds > 1; ++fold) {
      request_.tell(fmt::format("cross-validation by {}, fold {} of {}", groups.by, fold + 1, folds));
      std::vector<std::size_t> others;
      std::vector<std::size_t> out;
      for (std::size_t i = 0; i < fitted_.size(); ++i) (groups.folds[i] == fold ? out : others).push_back(i);
      const RobustFit of_fold = robust_fit(
          [&](const std::vector<double>& at) { return linear_residuals(fit, at, others); }, coordinates_, most_linear);
      std::vector<std::size_t> figures;
      figures.reserve(out.size());
      for (const std::size_t i : out) figures.push_back(fitted_[i]);
      const std::vector<double> predicted = model_.predicted(parameters_, values_at(of_fold.at), figures);
      for (std::size_t k = 0; k < out.size(); ++k) result.rows[out[k]].cross_validated = predicted[k];
    }
  }

  // Residuals around a fit, to first order.
  static std::vector<double> linear_residuals(const RobustFit& fit, const std::vector<double>& at,
                                              const std::vector<std::size_t>& rows) {
    std::vector<double> residuals;
    for (const std::size_t row : rows) {
      double residual = fit.residuals[row];
      for (std::size_t i = 0; i < at.size(); ++i) residual += fit.jacobian[row][i] * (at[i] - fit.at[i]);
      residuals.push_back(residual);
    }
    return residuals;
  }

  void add_errors(FitResult& result) const {
    std::vector<std::string> jobs;
    for (const auto* part : {&fitted_, &held_out_}) {
      for (const std::size_t index : *part) jobs.push_back(model_.case_of(index).job);
    }
    const auto of = [&](bool held_out, std::optional<double> (*prediction)(const FitRow&)) {
      return errors_of(result.rows, jobs,
                       [&](const FitRow& row) { return row.held_out == held_out ? prediction(row) : std::nullopt; });
    };
    const auto before = [](const FitRow& row) { return std::optional(row.before); };
    const auto after = [](const FitRow& row) { return std::optional(row.after); };
    result.before = of(false, before);
    result.after = of(false, after);
    result.cross_validated = of(false, [](const FitRow& row) { return row.cross_validated; });
    result.held_out_before = of(true, before);
    result.held_out_after = of(true, after);
  }

  // What the rows are, and what was changed in all of them.
  [[nodiscard]] std::string source_of_rows() const {
    std::string source;
    for (const FitSource& one : model_.sets()) source += (source.empty() ? "" : "; ") + one.set.source;
    if (changes_.set.empty()) return source;
    return fmt::format("{}; fitted with {}", source, joined(changes_.set, ", "));
  }

  void add_profile(const RobustFit& fit, FitResult& result) const {
    const DeviceProfile& start = model_.profile();
    result.profile = with_values(start, parameters_, values_at(fit.at));
    StepFit record{.start = fmt::format("{} ({})", start.name, profile_label_name(start.provenance.label)),
                   .set = names_of(model_.sets()),
                   .source = source_of_rows(),
                   .error_before = rounded(result.before.mean),
                   .error_after = rounded(result.after.mean),
                   .error_cross_validated = rounded(result.cross_validated.mean),
                   .parameters = {},
                   .rows = {}};
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const FitCoordinate& c = coordinates_[i];
      const auto value = [&](double at) { return rounded(scales_[i].value(std::clamp(at, c.least, c.most))); };
      const bool determined = fit.deviations[i] < undetermined_share * c.width;
      const double reach = interval_reach(fit.deviations[i], c.width, fit.freedom) * fit.deviations[i];
      record.parameters.push_back({.name = std::string(parameters_[i]->name),
                                   .start = value(c.start),
                                   .value = value(fit.at[i]),
                                   .p5 = value(fit.at[i] - reach),
                                   .p95 = value(fit.at[i] + reach),
                                   .prior_p5 = value(c.start - prior_reach() * c.width),
                                   .prior_p95 = value(c.start + prior_reach() * c.width),
                                   .determined = determined,
                                   .correlations = {}});
      for (std::size_t j = 0; j < i; ++j) {
        record.parameters.back().correlations.push_back(rounded(fit.correlations[i][j]));
      }
      result.at_limit.push_back(fit.at[i] <= c.least || fit.at[i] >= c.most);
      for (std::size_t j = 0; j < i; ++j) {
        if (std::abs(fit.correlations[i][j]) <= confounded_correlation) continue;
        result.confounded.push_back(
            {std::string(parameters_[j]->name), std::string(parameters_[i]->name), fit.correlations[i][j]});
      }
    }
    if (const auto& earlier = start.provenance.fit; earlier && earlier->set == record.set) record.rows = earlier->rows;
    for (const FitRow& row : result.rows) {
      const FittedRow fitted{row.quantity, row.name};
      const bool is_known = std::find(record.rows.begin(), record.rows.end(), fitted) != record.rows.end();
      if (!row.held_out && !is_known) record.rows.push_back(fitted);
    }
    Provenance& provenance = result.profile.provenance;
    provenance.label = ProfileLabel::fitted;
    provenance.fit = std::move(record);
  }

  static constexpr int most_linear = 50;  // iterations of a fit that simulates nothing

  const FitRequest& request_;
  const StudyChanges& changes_;
  RunnerOptions running_;
  StepModel model_;
  Parameters parameters_;
  std::vector<std::size_t> fitted_;  ///< Figures, in the order of the model.
  std::vector<std::size_t> held_out_;
  std::vector<ParameterScale> scales_;
  std::vector<FitCoordinate> coordinates_;
  std::size_t evaluations_ = 0;
};

FitResult fit_with(const FitRequest& request, const StudyChanges& changes) {
  return StepFitter(request, changes).run();
}

FitResult best_of(const FitRequest& request) {
  std::vector<std::pair<TriedValue, FitResult>> tries;
  for (const std::string& value : request.tried_values) {
    request.tell(fmt::format("{}={}", request.tried_key, value));
    StudyChanges changes = request.changes;
    changes.set.push_back(fmt::format("{}={}", request.tried_key, value));
    FitResult result = fit_with(request, changes);
    TriedValue tried;
    tried.value = value;
    tried.error_after = result.after.mean;
    tried.error_cross_validated = result.cross_validated.rows > 0 ? result.cross_validated.mean : result.after.mean;
    tries.emplace_back(std::move(tried), std::move(result));
  }
  std::stable_sort(tries.begin(), tries.end(), [](const auto& a, const auto& b) {
    return a.first.error_cross_validated < b.first.error_cross_validated;
  });
  for (std::size_t i = 1; i < tries.size(); ++i) compare_errors(tries.front().second, tries[i].second, tries[i].first);
  FitResult best = std::move(tries.front().second);
  best.tried_key = request.tried_key;
  for (auto& [tried, result] : tries) best.tried.push_back(std::move(tried));
  return best;
}

}  // namespace

std::optional<FitResult> fit_to_steps(const FitRequest& request) {
  FitRequest chosen = request;
  choose_rows(chosen.sets, request.rows);
  try {
    return chosen.tried_values.empty() ? fit_with(chosen, chosen.changes) : best_of(chosen);
  } catch (const FitStopped&) {
    return std::nullopt;
  }
}

}  // namespace hdpsim
