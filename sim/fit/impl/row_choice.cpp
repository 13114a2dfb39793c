#include "sim/fit/impl/row_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/random.h"
#include "sim/study/step_log.h"

namespace hdpsim {

void choose_rows(ValidationSet& set, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  Diagnostics problems;
  std::vector<bool> kept(set.cases.size());
  for (const std::string& text : texts) {
    bool found = false;
    for (std::size_t row = 0; row < set.cases.size(); ++row) {
      if (set.cases[row].name.find(text) == std::string::npos) continue;
      kept[row] = true;
      found = true;
    }
    if (!found) {
      problems.error({"--rows", 0, 0}, fmt::format("no row of {} has '{}' in its name", set.name, text),
                     fmt::format("the first is called '{}'", set.cases.front().name));
    }
  }
  problems.throw_if_any();
  std::vector<ValidationCase> chosen;
  for (std::size_t row = 0; row < kept.size(); ++row) {
    if (kept[row]) chosen.push_back(std::move(set.cases[row]));
  }
  set.cases = std::move(chosen);
}

std::vector<bool> held_out_rows(std::size_t rows, double share, std::uint64_t seed) {
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  RandomStream random(seed, "fit.holdout");
  for (std::size_t left = rows; left > 1; --left) {
    std::swap(order[left - 1], order[static_cast<std::size_t>(random.below(left))]);
  }
  std::vector<bool> held_out(rows);
  const auto count = static_cast<std::size_t>(std::lround(share * static_cast<double>(rows)));
  for (std::size_t i = 0; i < count; ++i) held_out[order[i]] = true;
  return held_out;
}

RowGroups groups_of(const std::vector<const MeasuredFigure*>& figures) {
  const std::vector<std::pair<std::string, std::string MeasuredFigure::*>> ways = {
      {"model", &MeasuredFigure::model}, {"mesh", &MeasuredFigure::mesh}, {"size", &MeasuredFigure::size}};
  RowGroups groups;
  for (const auto& [by, text] : ways) {
    std::map<std::string, std::size_t> numbers;
    groups = {by, {}, {}};
    for (const MeasuredFigure* figure : figures) {
      groups.names.push_back(figure->*text);
      groups.folds.push_back(numbers.try_emplace(figure->*text, numbers.size()).first->second % most_folds);
    }
    if (numbers.size() > 1) return groups;
  }
  groups.by = "row";
  for (std::size_t i = 0; i < figures.size(); ++i) {
    groups.names[i] = fmt::format("row {}", i + 1);
    groups.folds[i] = i % most_folds;
  }
  return groups;
}

void require_agreement(const StepModel& model, const std::vector<std::size_t>& figures) {
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> jobs;
  for (const std::size_t index : figures) {
    jobs[{model.figures()[index].identity, model.figures()[index].quantity}].push_back(index);
  }
  Diagnostics problems;
  for (const auto& [job, rows] : jobs) {
    const auto less = [&](std::size_t a, std::size_t b) {
      return model.figures()[a].measured < model.figures()[b].measured;
    };
    const MeasuredFigure& least = model.figures()[*std::min_element(rows.begin(), rows.end(), less)];
    const MeasuredFigure& most = model.figures()[*std::max_element(rows.begin(), rows.end(), less)];
    if (most.measured <= most_spread * least.measured) continue;
    problems.error(model.set().cases[most.row].study.position,
                   fmt::format("rows contradict each other: '{}' and '{}' are the same job with {} of {:g} and {:g}",
                               model.set().cases[least.row].name, model.set().cases[most.row].name, most.quantity,
                               least.measured, most.measured),
                   "leave out the one that was disturbed, or add the column that tells the jobs apart");
  }
  problems.throw_if_any();
}

}  // namespace hdpsim
