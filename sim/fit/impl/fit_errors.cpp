#include "sim/fit/impl/fit_errors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/analysis/kendall_tau.h"
#include "sim/analysis/uncertainty.h"
#include "sim/validate/validation_summary.h"

namespace hdpsim {
namespace {

double cross_validated_size(const FitRow& row) {
  return std::abs(std::log(row.cross_validated.value_or(row.after) / row.measured));
}

}  // namespace

FitErrors errors_of(const std::vector<FitRow>& rows, const std::vector<std::string>& jobs,
                    const std::function<std::optional<double>(const FitRow&)>& prediction) {
  std::vector<double> sizes;
  std::vector<double> measured;
  std::vector<double> predicted;
  std::vector<RankedPair> ranked;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::optional<double> value = prediction(rows[i]);
    if (!value) continue;
    sizes.push_back(std::abs(*value / rows[i].measured - 1));
    measured.push_back(rows[i].measured);
    predicted.push_back(*value);
    if (!jobs[i].empty()) ranked.push_back({jobs[i] + " " + rows[i].quantity, rows[i].measured, *value});
  }
  FitErrors errors;
  errors.rows = std::ssize(sizes);
  if (sizes.empty()) return errors;
  for (const double size : sizes) errors.mean += size / static_cast<double>(sizes.size());
  errors.median = median(sizes);
  errors.worst = *std::max_element(sizes.begin(), sizes.end());
  errors.ranking = kendall_tau(ranked);
  errors.order = kendall_tau(measured, predicted);
  return errors;
}

void compare_errors(const FitResult& best, const FitResult& other, TriedValue& tried) {
  std::map<std::string, std::pair<double, double>> groups;  // sum, rows
  for (std::size_t i = 0; i < best.rows.size() && i < other.rows.size(); ++i) {
    if (best.rows[i].held_out) continue;
    auto& [sum, rows] = groups[best.rows[i].group];
    sum += cross_validated_size(other.rows[i]) - cross_validated_size(best.rows[i]);
    ++rows;
  }
  const auto count = static_cast<double>(groups.size());
  double squares = 0;
  for (const auto& [group, of] : groups) tried.excess += of.first / of.second / count;
  for (const auto& [group, of] : groups) squares += std::pow(of.first / of.second - tried.excess, 2);
  if (count > 1) tried.excess_deviation = std::sqrt(squares / (count * (count - 1)));
}

}  // namespace hdpsim
