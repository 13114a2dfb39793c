#include "sim/study/cut_rules.h"

#include <fmt/format.h>

#include <set>

#include "sim/base/first_problems.h"

namespace hdpsim {
namespace {

std::set<TokenCut> cuts_of(const Plan& plan) {
  std::set<TokenCut> cuts;
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    if (micro_batch.group.size() > 1) cuts.insert(micro_batch.cut);
  }
  return cuts;
}

}  // namespace

std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const PointSpec& point) {
  const KeyExchange exchange = exchange_of(cut).value_or(point.recipe.key_exchange);
  return sharing_form(exchange).cut_problem(cut, point.model, point.recipe);
}

void check_cuts(const GivenPlans& plans, const PointSpec& point, Diagnostics& diagnostics) {
  FirstProblems wrong(diagnostics);
  for (const auto& [step, given] : plans.by_step) {
    for (const TokenCut cut : cuts_of(given.plan)) {
      const auto problem = cut_problem(cut, point);
      if (!problem) continue;
      const std::string& word = token_cut_words().at(static_cast<std::size_t>(cut));
      wrong.error({given.file, 0, 0}, fmt::format("its groups are cut '{}': {}", word, problem->message),
                  problem->help);
    }
  }
  if (wrong.count() > 0)
    wrong.finish({plans.by_step.begin()->second.file, 0, 0}, "cuts of plans that the study cannot have");
}

}  // namespace hdpsim
