#include "sim/validate/validation_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/analysis/kendall_tau.h"
#include "sim/analysis/metrics.h"
#include "sim/base/check.h"
#include "sim/validate/published_figure.h"

namespace hdpsim {
namespace {

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double median_or_zero(const std::vector<double>& values) {
  return values.empty() ? 0 : median(values);
}

/// What is collected of one set while its rows come.
struct Collected {
  std::int64_t rows = 0;
  std::int64_t fitted = 0;
  std::vector<double> errors;
  std::vector<double> time_errors;
  std::vector<RankedPair> ranked;
  std::map<std::string, StepsOfPlan> lines;
  std::map<std::string, std::int64_t> reasons;

  void add(const ValidationRow& row) {
    ++rows;
    if (!row.predicted) {
      ++reasons[row.not_predicted];
      return;
    }
    if (row.fitted) {
      ++fitted;
      return;
    }
    errors.push_back(row.error());
    time_errors.push_back(row.time_error());
    if (!row.job.empty()) ranked.push_back({row.job + " " + row.quantity, row.published, *row.predicted});
    if (!row.line.empty() && row.kind() == "step_time_s") {
      StepsOfPlan& steps = lines[row.line + " " + row.quantity];
      steps.published.push_back({row.micro_batches, row.published});
      steps.predicted.push_back({row.micro_batches, *row.predicted});
    }
  }

  [[nodiscard]] ValidationSummary summary(const std::string& set, const std::string& quantity) const {
    std::vector<double> sizes;
    sizes.reserve(errors.size());
    for (const double error : errors) sizes.push_back(std::abs(error));
    ValidationSummary result;
    result.set = set;
    result.quantity = quantity;
    result.rows = rows;
    result.predicted = std::ssize(errors);
    result.fitted = fitted;
    result.median_abs_error = median_or_zero(sizes);
    result.worst_abs_error = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
    result.mean_abs_error = mean(sizes);
    result.median_error = median_or_zero(time_errors);
    result.ranking = kendall_tau(ranked);
    std::vector<StepsOfPlan> plans;
    for (const auto& [name, steps] : lines) plans.push_back(steps);
    result.lines = line_errors(plans);
    for (const auto& [reason, count] : reasons) result.not_predicted.push_back(fmt::format("{} x {}", count, reason));
    return result;
  }
};

}  // namespace

double ValidationRow::error() const {
  HDPSIM_CHECK(predicted.has_value() && published > 0, "{} {} has no error", set, case_name);
  return *predicted / published - 1;
}

double ValidationRow::time_error() const {
  const std::optional<Quantity> known = quantity_of(quantity);
  return known && is_rate(*known) ? 1 / (1 + error()) - 1 : error();
}

std::string ValidationRow::kind() const {
  return quantity.substr(0, quantity.find(' '));
}

std::vector<ValidationSummary> summarize(const std::vector<ValidationRow>& rows) {
  std::vector<std::string> sets;
  std::map<std::string, std::vector<std::pair<std::string, Collected>>> kinds_of;
  for (const ValidationRow& row : rows) {
    const auto [kinds, is_new] = kinds_of.try_emplace(row.set);
    if (is_new) sets.push_back(row.set);
    auto& known = kinds->second;
    const std::string kind = row.kind();
    auto at = std::find_if(known.begin(), known.end(), [&](const auto& each) { return each.first == kind; });
    if (at == known.end()) at = known.insert(at, {kind, {}});
    at->second.add(row);
  }
  std::vector<ValidationSummary> summaries;
  for (const std::string& set : sets) {
    for (const auto& [kind, collected] : kinds_of.at(set)) summaries.push_back(collected.summary(set, kind));
  }
  return summaries;
}

}  // namespace hdpsim
