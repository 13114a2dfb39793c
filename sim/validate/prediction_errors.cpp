#include "sim/validate/prediction_errors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "sim/analysis/confidence.h"
#include "sim/validate/published_figure.h"

namespace hdpsim {
namespace {

bool counts(const ValidationRow& row) {
  return row.predicted && !row.fitted;
}

bool is_of(const ValidationRow& row, Quantity quantity) {
  return quantity_of(row.quantity) == quantity;
}

bool is_of_memory(const ValidationRow& row) {
  const std::optional<Quantity> quantity = quantity_of(row.quantity);
  return quantity && quantity_unit(*quantity) == "GB";
}

// A time, or a rate that stands for one.
bool is_of_step(const ValidationRow& row) {
  const std::optional<Quantity> quantity = quantity_of(row.quantity);
  return quantity && (*quantity == Quantity::step_time || is_rate(*quantity));
}

// log(published / predicted) of the time that a figure stands for.
double error_of(const ValidationRow& row) {
  return -std::log(1 + row.time_error());
}

// A speed-up is a ratio, and no rate of a time that it stands for.
double error_of_ratio(const ValidationRow& row) {
  return std::log(row.published / *row.predicted);
}

void add_pairs(const std::vector<const ValidationRow*>& plans, std::vector<PredictionError>& errors) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (std::size_t k = i + 1; k < plans.size(); ++k) {
      if (plans[i]->run != plans[k]->run) continue;
      errors.push_back({ErrorOf::speedup, plans[i]->run, plans[i]->set, error_of(*plans[i]) - error_of(*plans[k])});
    }
  }
}

void add_steps_and_speedups(const std::vector<ValidationRow>& rows, std::vector<PredictionError>& errors) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const ValidationRow*>> jobs;
  for (const ValidationRow& row : rows) {
    if (!counts(row)) continue;
    const bool is_of_plans = is_of(row, Quantity::speedup) && !row.over_study;
    if (is_of_plans) errors.push_back({ErrorOf::speedup, row.run, row.set, error_of_ratio(row)});
    if (!is_of_step(row)) continue;
    errors.push_back({ErrorOf::step_time, row.run, row.set, error_of(row)});
    if (!row.job.empty()) jobs[{row.set, row.job, row.kind()}].push_back(&row);
  }
  for (const auto& [job, plans] : jobs) add_pairs(plans, errors);
}

void add_memory(const std::vector<ValidationRow>& rows, std::vector<PredictionError>& errors) {
  std::set<std::string> published;
  for (const ValidationRow& row : rows) {
    if (row.predicted && is_of_memory(row)) published.insert(row.set);
  }
  for (const ValidationRow& row : rows) {
    if (!row.predicted) continue;
    const RunKind kind = kind_for(ErrorOf::memory, row.run);
    if (is_of_memory(row)) {
      if (!row.fitted) errors.push_back({ErrorOf::memory, kind, row.set, error_of_ratio(row)});
    } else if (!published.contains(row.set) && row.memory_use > 1) {
      errors.push_back({ErrorOf::memory, kind, row.set, -std::log(row.memory_use)});
    }
  }
}

using Key = std::tuple<ErrorOf, Workload, std::string, std::string, std::string>;

// By figure, kind and set.
std::map<Key, std::vector<double>> by_set(const std::vector<PredictionError>& errors) {
  std::map<Key, std::vector<double>> sets;
  for (const PredictionError& each : errors) {
    sets[{each.of, each.kind.workload, each.kind.stack, each.kind.device, each.set}].push_back(each.error);
  }
  return sets;
}

/// Shares of sets within intervals.
struct KeptOut {
  double sum = 0;
  double sets = 0;
  [[nodiscard]] double share() const { return sets > 0 ? sum / sets : 0; }
};

bool is_left_out(const ErrorRow& row, const ErrorRow& judged, LeftOut what) {
  switch (what) {
    case LeftOut::set:
      return row.set == judged.set;
    case LeftOut::stack:
      return row.kind.stack == judged.kind.stack;
    case LeftOut::device:
      return row.kind.device == judged.kind.device;
  }
  return true;
}

PublishedErrors others_of(const ErrorRow& judged, const PublishedErrors& all, LeftOut what) {
  std::vector<ErrorRow> rows;
  for (const ErrorRow& row : all.rows()) {
    if (!is_left_out(row, judged, what)) rows.push_back(row);
  }
  return PublishedErrors(std::move(rows));
}

// The share of a set's figures within the interval that the others make.
KeptOut kept_out_of(const ErrorRow& row, const std::vector<double>& errors, const PublishedErrors& others) {
  const std::optional<KindErrors> known = others.of(row.of, row.kind);
  if (!known) return {};
  const FactorRange range = known->spread.range(Confidence::share);
  const auto inside = std::count_if(errors.begin(), errors.end(), [&](double error) {
    return std::exp(error) >= range.least && std::exp(error) <= range.most;
  });
  return {static_cast<double>(inside) / static_cast<double>(errors.size()), 1};
}

// Calls `use` with every row of the sums, and the share of its figures that the others cover.
template <class Use>
void for_each_kept_out(const std::vector<PredictionError>& errors, const PublishedErrors& all, LeftOut what,
                       const Use& use) {
  const std::map<Key, std::vector<double>> sets = by_set(errors);
  auto of_set = sets.begin();
  for (const ErrorRow& row : all.rows()) use(row, kept_out_of(row, (of_set++)->second, others_of(row, all, what)));
}

}  // namespace

std::vector<PredictionError> prediction_errors(const std::vector<ValidationRow>& rows) {
  std::vector<PredictionError> errors;
  add_steps_and_speedups(rows, errors);
  add_memory(rows, errors);
  return errors;
}

PublishedErrors summed_up(const std::vector<PredictionError>& errors) {
  std::vector<ErrorRow> rows;
  for (const auto& [key, of_set] : by_set(errors)) {
    const auto& [of, workload, stack, device, set] = key;
    rows.push_back({.of = of,
                    .kind = {workload, stack, device},
                    .set = set,
                    .figures = std::ssize(of_set),
                    .errors = of == ErrorOf::speedup ? unsigned_set_errors(of_set) : set_errors(of_set)});
  }
  return PublishedErrors(std::move(rows));
}

std::vector<KindTrust> trust_by_kind(const std::vector<PredictionError>& errors) {
  const PublishedErrors all = summed_up(errors);
  std::vector<KindTrust> kinds;
  std::vector<KeptOut> kept_out;
  for_each_kept_out(errors, all, LeftOut::set, [&](const ErrorRow& row, const KeptOut& covered) {
    if (kinds.empty() || kinds.back().of != row.of || kinds.back().kind != row.kind) {
      kinds.push_back(
          {.of = row.of, .kind = row.kind, .range = all.of(row.of, row.kind)->spread.range(Confidence::share)});
      kept_out.emplace_back();
    }
    kinds.back().sets += 1;
    kinds.back().figures += row.figures;
    kept_out.back().sum += covered.sum;
    kept_out.back().sets += covered.sets;
  });
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].covered = kept_out[i].share();
  return kinds;
}

double covered_share(ErrorOf figure, const std::vector<PredictionError>& errors, LeftOut left_out) {
  KeptOut all;
  for_each_kept_out(errors, summed_up(errors), left_out, [&](const ErrorRow& row, const KeptOut& covered) {
    if (row.of != figure) return;
    all.sum += covered.sum;
    all.sets += covered.sets;
  });
  return all.share();
}

UnlikelyRun least_likely_run(const std::vector<ValidationRow>& rows) {
  const PublishedErrors all = summed_up(prediction_errors(rows));
  UnlikelyRun least;
  for (const ValidationRow& row : rows) {
    if (!row.predicted) continue;
    const auto others = all.without(row.set).of(ErrorOf::memory, row.run);
    if (!others) continue;
    const double fits = others->spread.probability_up_to(1 / row.memory_use);
    if (fits < least.fits) least = {row.set, row.case_name, fits};
  }
  return least;
}

}  // namespace hdpsim
