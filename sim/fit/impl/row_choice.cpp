#include "sim/fit/impl/row_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/random.h"
#include "sim/base/text.h"
#include "sim/validate/step_log.h"

namespace hdpsim {

void choose_rows(std::vector<FitSource>& sets, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  const auto has = [](const ValidationCase& one, const std::string& text) {
    return one.name.find(text) != std::string::npos;
  };
  Diagnostics problems;
  for (const std::string& text : texts) {
    const bool found = std::any_of(sets.begin(), sets.end(), [&](const FitSource& source) {
      return std::any_of(source.set.cases.begin(), source.set.cases.end(),
                         [&](const ValidationCase& one) { return has(one, text); });
    });
    if (found) continue;
    problems.error({"--rows", 0, 0}, fmt::format("no row of {} has '{}' in its name", names_of(sets), text),
                   fmt::format("the first is called '{}'", sets.front().set.cases.front().name));
  }
  problems.throw_if_any();
  for (FitSource& source : sets) {
    std::erase_if(source.set.cases, [&](const ValidationCase& one) {
      return std::none_of(texts.begin(), texts.end(), [&](const std::string& text) { return has(one, text); });
    });
  }
  std::erase_if(sets, [](const FitSource& source) { return source.set.cases.empty(); });
}

std::string names_of(const std::vector<FitSource>& sets) {
  std::vector<std::string> names;
  names.reserve(sets.size());
  for (const FitSource& source : sets) names.push_back(source.set.name);
  return joined(names, ", ");
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
    const auto measured = [&](std::size_t figure) { return model.figures()[figure].measured; };
    const auto less = [&](std::size_t a, std::size_t b) { return measured(a) < measured(b); };
    const std::size_t least = *std::min_element(rows.begin(), rows.end(), less);
    const std::size_t most = *std::max_element(rows.begin(), rows.end(), less);
    if (measured(most) <= most_spread * measured(least)) continue;
    problems.error(model.case_of(most).study.position,
                   fmt::format("rows contradict each other: '{}' and '{}' are the same job with {} of {:g} and {:g}",
                               model.name_of(least), model.name_of(most), model.figures()[most].quantity,
                               measured(least), measured(most)),
                   "leave out the one that was disturbed, or add a column that distinguishes the jobs");
  }
  problems.throw_if_any();
}

}  // namespace hdpsim
