#include "sim/fit/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/fit/fit_figures.h"
#include "sim/fit/impl/next_report.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_rows_told = 10;
constexpr double standard_errors = 2;  // from so many on, rows tell two values apart

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string range(double low, double high) {
  return fmt::format("{:.4g} to {:.4g}", low, high);
}

std::string remarks(const ReportedParameter& parameter) {
  std::string text;
  if (!parameter.fitted.determined) text += "  not determined by the rows";
  if (parameter.at_limit) text += "  at the end of its range";
  return text;
}

// Which parameters the rows say nothing of.
std::string undetermined(const FitResult& result) {
  const std::vector<FittedParameter>& all = result.profile.provenance.fit->parameters;
  std::vector<std::string> names;
  for (const FittedParameter& parameter : all) {
    if (!parameter.determined) names.push_back(parameter.name);
  }
  if (names.empty()) return {};
  return fmt::format("the rows determine {} of {} parameters; the prior decides {}\n", all.size() - names.size(),
                     all.size(), joined(names, ", "));
}

std::string parameter_table(const FitResult& result) {
  std::string text = fmt::format("  {:<20}  {:>10}  {:>10}  {:<4}  {:<22}  {:<22}\n", "parameter", "start", "fitted",
                                 "", "90 % interval", "believed before");
  for (const ReportedParameter& parameter : reported_parameters(result)) {
    const FittedParameter& p = parameter.fitted;
    text += fmt::format("  {:<20}  {:>10.4g}  {:>10.4g}  {:<4}  {:<22}  {:<22}{}\n", p.name, p.start, p.value,
                        parameter.unit, range(p.p5, p.p95), range(p.prior_p5, p.prior_p95), remarks(parameter));
  }
  text += "x: times the starting profile's figure, but kernel_slowdown is the factor itself\n";
  text += undetermined(result);
  for (const ConfoundedPair& pair : result.confounded) {
    text += fmt::format("the rows do not tell {} and {} apart: correlation {:+.2f}\n", pair.first, pair.second,
                        pair.correlation);
  }
  return text;
}

std::string error_line(std::string_view what, const FitErrors& errors) {
  if (errors.rows == 0) return {};
  const auto tau = [](const std::optional<double>& value) { return value ? fmt::format("{:.2f}", *value) : ""; };
  return fmt::format("  {:<32}  {:>5}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}\n", what, errors.rows, percent(errors.mean),
                     percent(errors.median), percent(errors.worst), tau(errors.ranking), tau(errors.order));
}

std::string error_table(const FitResult& result) {
  return fmt::format("\n  {:<32}  {:>5}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}\n", "errors", "rows", "mean", "median",
                     "worst", "ranking", "order") +
         error_line("fitted rows, before", result.before) + error_line("fitted rows, after", result.after) +
         error_line(fmt::format("the same, held out by {}", result.grouped_by), result.cross_validated) +
         error_line("rows of --holdout, before", result.held_out_before) +
         error_line("rows of --holdout, after", result.held_out_after) +
         "ranking: Kendall's tau between measured and predicted order of the plans of one job; order: of all rows\n";
}

std::string unexplained_rows(const FitResult& result) {
  std::vector<const FitRow*> rows;
  for (const FitRow& row : result.rows) {
    if (row.unexplained) rows.push_back(&row);
  }
  if (rows.empty()) return {};
  std::string text = fmt::format("\nno parameter explains {} of {} rows, such as\n", rows.size(), result.after.rows);
  std::stable_sort(rows.begin(), rows.end(), [](const FitRow* a, const FitRow* b) {
    return std::abs(std::log(a->after / a->measured)) > std::abs(std::log(b->after / b->measured));
  });
  for (std::size_t i = 0; i < std::min(rows.size(), most_rows_told); ++i) {
    text += fmt::format("  {}  {}: measured {:.4g}, predicted {:.4g} {}\n", rows[i]->name, rows[i]->quantity,
                        rows[i]->measured, rows[i]->after, rows[i]->unit);
  }
  return text;
}

std::string support(const FitResult& result) {
  const TriedValue& best = result.tried.front();
  if (result.tried.size() < 2) return {};
  const TriedValue& next = result.tried[1];
  const double errors = next.excess_deviation > 0 ? next.excess / next.excess_deviation : 0;
  if (errors < standard_errors) {
    return fmt::format("the rows do not tell {}={} and {} apart: their errors differ by {:.1f} standard errors\n",
                       result.tried_key, best.value, next.value, errors);
  }
  return fmt::format("the rows support {}={}: the next, {}, is further off by {:.1f} standard errors\n",
                     result.tried_key, best.value, next.value, errors);
}

std::string tried_table(const FitResult& result) {
  if (result.tried.empty()) return {};
  std::string text = fmt::format("\n  {:<32}  {:>12}  {:>16}  {:>24}\n", result.tried_key, "error, after",
                                 "cross-validated", "beyond the best, in ln");
  for (const TriedValue& tried : result.tried) {
    text += fmt::format("  {:<32}  {:>12}  {:>16}  {:>24}\n", tried.value, percent(tried.error_after),
                        percent(tried.error_cross_validated),
                        fmt::format("{:.4f} +- {:.4f}", tried.excess, tried.excess_deviation));
  }
  return text + support(result) +
         fmt::format("the fit above is that with {}={}\n", result.tried_key, result.tried.front().value);
}

std::string table(const FitResult& result) {
  const StepFit& fit = *result.profile.provenance.fit;
  std::string text = fmt::format("{}: {} rows, from {}; {} iterations{}\n\n", fit.set, result.after.rows, fit.start,
                                 result.iterations, result.converged ? "" : ", which did not settle");
  text += parameter_table(result) + error_table(result) + unexplained_rows(result) + tried_table(result);
  for (const std::string& reason : result.left_out) text += fmt::format("left out: {}\n", reason);
  if (result.next) text += next_table(*result.next, result.scale);
  return text;
}

std::string json(const FitResult& result) {
  const StepFit& fit = *result.profile.provenance.fit;
  const auto errors = [](const FitErrors& of) { return of.rows > 0 ? fit_error_figures().json(of) : Json(); };
  Json document = {{"schema", "hdpsim.fit/1"},
                   {"set", fit.set},
                   {"start", fit.start},
                   {"source", fit.source},
                   {"grouped_by", result.grouped_by},
                   {"iterations", result.iterations},
                   {"converged", result.converged},
                   {"residual_deviation", result.scale},
                   {"parameters", fit_parameter_figures().json_list(reported_parameters(result))},
                   {"confounded", Json::array()},
                   {"errors",
                    {{"before", errors(result.before)},
                     {"after", errors(result.after)},
                     {"cross_validated", errors(result.cross_validated)},
                     {"held_out_before", errors(result.held_out_before)},
                     {"held_out_after", errors(result.held_out_after)}}},
                   {"rows", fit_row_figures().json_list(result.rows)},
                   {"left_out", result.left_out}};
  for (const ConfoundedPair& pair : result.confounded) {
    document["confounded"].push_back({{"parameters", {pair.first, pair.second}}, {"correlation", pair.correlation}});
  }
  if (!result.tried.empty()) {
    document["tried"] = {{"key", result.tried_key}, {"values", tried_value_figures().json_list(result.tried)}};
  }
  if (result.next) document["next"] = next_json(*result.next);
  return json_page(document);
}

}  // namespace

std::string misfit_warning(const FitResult& result) {
  const auto is_far = [](const FitRow& row) { return std::abs(std::log(row.after / row.measured)) > std::log(2.0); };
  const auto far = std::count_if(result.rows.begin(), result.rows.end(), is_far);
  if (2 * far <= std::ssize(result.rows)) return {};
  return fmt::format(
      "warning: the fitted profile misses {} of {} rows by more than a factor of 2: are the unit of their times, the "
      "model and the mesh right?",
      far, result.rows.size());
}

std::string formatted(const FitResult& result, Format format) {
  switch (format) {
    case Format::table:
      return table(result);
    case Format::csv:
      return fit_row_figures().csv(result.rows);
    case Format::json:
      return json(result);
  }
  return {};
}

}  // namespace hdpsim
