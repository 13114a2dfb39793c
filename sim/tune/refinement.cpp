#include "sim/tune/refinement.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/study/override.h"

namespace hdpsim {
namespace {

constexpr double near_best_of_plan = 0.1;
// Candidates of a plan whose exchanges are tried, those between two looks at the best bound, and those whose cuts and
// levels are.
constexpr std::size_t most_refined = 12;
constexpr std::size_t refined_at_a_time = 4;
constexpr std::size_t few = 3;
// A smaller share of the step is not worth another exchange.
constexpr double worth_sharing = 0.01;
constexpr std::int64_t all_levels = 4;
constexpr std::int64_t shards_all = 3;

bool names(const TuneOptions& tune, std::string_view path) {
  return std::any_of(tune.space.begin(), tune.space.end(), [&](const auto& each) { return each.path == path; });
}

bool has_pipeline(const Candidate& candidate) {
  const Value* mesh = candidate.study.find("mesh");
  const Value* pp = mesh == nullptr ? nullptr : mesh->find("pp");
  return pp != nullptr && pp->text != "1";
}

void choose(const std::string& key, std::string_view word, Candidate& candidate) {
  const Value value = Value::scalar(std::string(word));
  const std::string path = "mesh." + key;
  Diagnostics found;
  set_path(candidate.study, path, value, found);
  found.throw_if_any();
  candidate.choices.push_back({path, value});
  candidate.text += fmt::format(", {} {}", key, word);
}

}  // namespace

Refinement::Refinement(const Study& study, const std::vector<Candidate>& space) {
  const PointSpec& spec = study.points.at(0).spec;
  own_ = {spec.recipe.key_exchange, spec.cut};
  own_zero_ = spec.recipe.zero;
  const bool names_sharing = names(study.tune, "mesh.cp_comm_type") || names(study.tune, "mesh.cp_cut");
  if (!names_sharing) sharings_ = allowed_sharings(spec);
  if (!names(study.tune, "mesh.zero")) levels_ = all_levels;
  for (std::size_t i = 0; i < space.size(); ++i) {
    origins_.push_back({i, own_, own_zero_});
    plan_of_.push_back(space[i].plan);
    plans_.insert(space[i].plan);
  }
}

std::vector<Candidate> Refinement::next(const std::vector<Candidate>& space, const Known& known) {
  while (stage_ != Stage::done) {
    const Stage stage = stage_;
    if (stage == Stage::memory) try_sharding_all(space, known);
    for (const std::string& plan : plans_) {
      if (stage == Stage::exchanges) try_exchanges(plan, known);
      if (stage == Stage::cuts) try_cuts(plan, known);
      if (stage == Stage::sharding) try_levels(plan, known);
    }
    const bool again = stage == Stage::exchanges && !asked_.empty();
    if (!again) stage_ = static_cast<Stage>(static_cast<int>(stage) + 1);
    if (!asked_.empty()) return asked_of(space);
  }
  return {};
}

std::string Refinement::identity() const {
  std::string text = fmt::format("levels of zero: {}\n", levels_);
  for (const auto& [exchange, cut] : sharings_) text += fmt::format("{} {}\n", word_of(exchange), word_of(cut));
  return text;
}

// Its candidates that can run.
std::vector<std::size_t> Refinement::of_plan(const std::string& plan, const Known& known) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < origins_.size(); ++i) {
    if (known[i].can_run && plan_of_[origins_[i].base] == plan) found.push_back(i);
  }
  return found;
}

std::vector<std::size_t> Refinement::best_of(const std::string& plan, const Known& known) const {
  std::vector<std::size_t> found = of_plan(plan, known);
  std::stable_sort(found.begin(), found.end(),
                   [&](std::size_t a, std::size_t b) { return known[a].bound_s < known[b].bound_s; });
  found.resize(std::min(few, found.size()));
  return found;
}

void Refinement::ask(std::size_t base, const SharingChoice& sharing, std::int64_t zero) {
  const auto cut = sharing.cut ? static_cast<std::size_t>(*sharing.cut) : token_cut_words().size();
  const bool is_own = sharing == own_ && zero == own_zero_;
  if (is_own || !seen_.emplace(base, sharing.exchange, cut, zero).second) return;
  asked_.push_back({base, sharing, zero});
}

void Refinement::try_sharding_all(const std::vector<Candidate>& space, const Known& known) {
  for (std::size_t i = 0; levels_ > 0 && i < space.size(); ++i) {
    if (!known[i].can_run && !has_pipeline(space[i])) ask(i, own_, shards_all);
  }
}

void Refinement::try_exchanges(const std::string& plan, const Known& known) {
  const std::vector<std::size_t> best = best_of(plan, known);
  if (sharings_.empty() || best.empty()) return;
  const auto alone_s = [&](std::size_t i) { return known[i].bound_s - known[i].sharing_s; };
  std::vector<std::size_t> waiting = of_plan(plan, known);
  std::erase_if(waiting, [&](std::size_t i) {
    const bool is_near = alone_s(i) <= (1 + near_best_of_plan) * known[best.front()].bound_s;
    const bool shares = known[i].sharing_s > worth_sharing * known[i].bound_s;
    return origins_[i].is_refined || origins_[i].sharing != own_ || !is_near || !shares;
  });
  std::stable_sort(waiting.begin(), waiting.end(),
                   [&](std::size_t a, std::size_t b) { return alone_s(a) < alone_s(b); });
  std::size_t& refined = refined_[plan];
  waiting.resize(std::min({waiting.size(), refined_at_a_time, most_refined - refined}));
  refined += waiting.size();
  for (const std::size_t i : waiting) {
    origins_[i].is_refined = true;
    for (std::size_t at = 0; at < sharings_.size(); ++at) {
      const bool is_first = at == 0 || sharings_[at].exchange != sharings_[at - 1].exchange;
      if (is_first) ask(origins_[i].base, sharings_[at], origins_[i].zero);
    }
  }
}

void Refinement::try_cuts(const std::string& plan, const Known& known) {
  for (const std::size_t i : best_of(plan, known)) {
    const Origin& origin = origins_[i];
    if (known[i].sharing_s <= worth_sharing * known[i].bound_s) continue;
    for (const SharingChoice& sharing : sharings_) {
      if (sharing.exchange == origin.sharing.exchange) ask(origin.base, sharing, origin.zero);
    }
  }
}

void Refinement::try_levels(const std::string& plan, const Known& known) {
  for (const std::size_t i : best_of(plan, known)) {
    for (std::int64_t zero = 0; zero < levels_; ++zero) ask(origins_[i].base, origins_[i].sharing, zero);
  }
}

std::vector<Candidate> Refinement::asked_of(const std::vector<Candidate>& space) {
  std::vector<Candidate> made;
  for (const Origin& origin : asked_) {
    Candidate& candidate = made.emplace_back(space[origin.base]);
    const auto& [exchange, cut] = origin.sharing;
    if (origin.sharing != own_) choose("cp_comm_type", word_of(exchange), candidate);
    if (cut != own_.cut) choose("cp_cut", word_of(cut), candidate);
    if (origin.zero != own_zero_) choose("zero", fmt::format("{}", origin.zero), candidate);
  }
  origins_.insert(origins_.end(), asked_.begin(), asked_.end());
  asked_.clear();
  return made;
}

}  // namespace hdpsim
