#include "sim/study/sharing_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "sim/base/check.h"
#include "sim/base/first_problems.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {
namespace {

template <class Choice>
std::string_view name_of(const std::vector<std::pair<std::string, Choice>>& words, const Choice& choice) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.second == choice; });
  HDPSIM_CHECK(found != words.end(), "choice {} of {} has no word", found - words.begin(), words.size());
  return found->first;
}

bool is_allowed(const SharingChoice& sharing, PointSpec point) {
  point.recipe.key_exchange = sharing.exchange;
  return sharing_form(sharing.exchange).problem(point.model, point.recipe).empty() && !cut_problem(sharing.cut, point);
}

}  // namespace

const std::vector<std::pair<std::string, KeyExchange>>& key_exchange_words() {
  static const auto words = [] {
    std::vector<std::pair<std::string, KeyExchange>> all;
    for (const KeyExchange exchange : all_key_exchanges()) {
      const std::string_view word = sharing_form(exchange).word();
      if (!word.empty()) all.emplace_back(word, exchange);
    }
    return all;
  }();
  return words;
}

std::string_view word_of(KeyExchange exchange) {
  return name_of(key_exchange_words(), exchange);
}

const std::vector<std::pair<std::string, std::optional<TokenCut>>>& cut_words() {
  static const auto words = [] {
    std::vector<std::pair<std::string, std::optional<TokenCut>>> all;
    for (const TokenCut cut : {TokenCut::per_document, TokenCut::per_pack, TokenCut::dispatch}) {
      all.emplace_back(token_cut_words().at(static_cast<std::size_t>(cut)), cut);
    }
    all.emplace_back("adaptive", std::nullopt);
    return all;
  }();
  return words;
}

std::string_view word_of(std::optional<TokenCut> cut) {
  return name_of(cut_words(), cut);
}

std::string key_exchange_sentence() {
  std::vector<std::string> each;
  for (const auto& [word, exchange] : key_exchange_words()) {
    each.push_back(fmt::format("`{}`, {}", word, sharing_form(exchange).sentence()));
  }
  return fmt::format("how the ranks of a group share a sequence: {}", fmt::join(each, "; "));
}

std::optional<KeyExchange> first_that_serves(const Transformer& model, const Recipe& recipe) {
  for (const auto& [word, exchange] : key_exchange_words()) {
    if (sharing_form(exchange).problem(model, recipe).empty()) return exchange;
  }
  return std::nullopt;
}

std::vector<SharingChoice> allowed_sharings(const PointSpec& point) {
  std::vector<SharingChoice> allowed;
  for (const auto& [name, exchange] : key_exchange_words()) {
    const SharingForm& form = sharing_form(exchange);
    if (!form.is_tried()) continue;
    const std::ptrdiff_t first = std::ssize(allowed);
    for (const auto& [word, cut] : cut_words()) {
      if (is_allowed({exchange, cut}, point)) allowed.push_back({exchange, cut});
    }
    const auto usual = std::find(allowed.begin() + first, allowed.end(), SharingChoice{exchange, form.usual_cut()});
    if (usual != allowed.end()) std::rotate(allowed.begin() + first, usual, usual + 1);
  }
  return allowed;
}

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
