#include "sim/study/cut_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "sim/base/first_problems.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"

namespace hdpsim {
namespace {

bool has_layers_of_few_keys(const Transformer& model) {
  const auto sees_few = [](const Layer& layer) { return layer.linear || most_keys(layer) > 0; };
  return sees_few(model) || std::any_of(model.others.begin(), model.others.end(), sees_few);
}

std::set<TokenCut> cuts_of(const Plan& plan) {
  std::set<TokenCut> cuts;
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    if (micro_batch.group.size() > 1) cuts.insert(micro_batch.cut);
  }
  return cuts;
}

}  // namespace

std::string servers_problem(const Transformer& model, const Recipe& recipe) {
  if (has_layers_of_few_keys(model)) return fmt::format("{} has layers that do not see all tokens before", model.name);
  if (model.moe || !model.others.empty() || !has_mlp(model) || !mixes_tokens(model)) {
    return fmt::format("not all layers of {} have attention and a dense MLP", model.name);
  }
  return recipe.recompute == Recompute{} ? "" : "backward recomputes activations, write recompute: none";
}

std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const PointSpec& point) {
  if (cut == TokenCut::per_document) return std::nullopt;
  if (cut == TokenCut::served) {
    const std::string problem = servers_problem(point.model, point.recipe);
    if (problem.empty()) return std::nullopt;
    return CutProblem{fmt::format("ranks cannot attend for each other: {}", problem), "use another plan"};
  }
  const KeyExchange exchange = point.recipe.key_exchange;
  if (exchange == KeyExchange::all_to_all) {
    return CutProblem{"with cp_comm_type: a2a ranks compute their heads of all tokens, whoever holds these",
                      "write cp_cut: per_document, or another cp_comm_type"};
  }
  if (cut == TokenCut::dispatch && exchange == KeyExchange::ring) {
    return CutProblem{"keys of dispatched chunks do not pass around a ring",
                      "write cp_comm_type: group_cast, or all_gather"};
  }
  if (!cut && exchange != KeyExchange::all_gather) {
    return CutProblem{"the adaptive cut is known with all keys gathered alone", "write cp_comm_type: all_gather"};
  }
  if (!has_layers_of_few_keys(point.model)) return std::nullopt;
  return CutProblem{fmt::format("{} has layers that do not see all tokens before, which are cut per document alone",
                                point.model.name),
                    "write cp_cut: per_document"};
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
