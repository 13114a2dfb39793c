#include "sim/tune/refinement.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/study/override.h"
#include "sim/tune/search_rules.h"

namespace hdpsim {
namespace {

// A smaller share of the step is not worth another exchange or schedule.
constexpr double worth_waiting = 0.01;
// Share of the waiting of stages for each other that a schedule with less of it saves.
constexpr double saved_by_schedule = 0.5;
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

void put(const std::string& path, const std::string& word, Candidate& candidate) {
  const Value value = Value::scalar(word);
  Diagnostics found;
  set_path(candidate.study, path, value, found);
  found.throw_if_any();
  std::erase_if(candidate.choices, [&](const RunInfo::Coordinate& choice) { return choice.path == path; });
  candidate.choices.push_back({path, value});
}

void choose(const std::string& key, std::string_view word, Candidate& candidate) {
  put("mesh." + key, std::string(word), candidate);
  candidate.text += fmt::format(", {} {}", key, word);
}

// The first place is for what the study states.
template <class Choice>
std::vector<Choice> with_first(const Choice& own, std::vector<Choice> all) {
  std::erase(all, own);
  all.insert(all.begin(), own);
  return all;
}

}  // namespace

Refinement::Refinement(const Study& study, const std::vector<Candidate>& space) {
  const PointSpec& spec = study.points.at(0).spec;
  own_ = {.sharing = {spec.recipe.key_exchange, spec.cut}, .zero = spec.recipe.zero};
  std::vector<ScheduleChoice> schedules;
  for (const ScheduleEntry& entry : pipeline_schedules()) {
    if (entry.tuned_with > 0) schedules.push_back({std::string(entry.name), fmt::format("{}", entry.tuned_with)});
  }
  const ScheduleChoice own_schedule{std::string(spec.pipeline.schedule),
                                    fmt::format("{}", spec.pipeline.virtual_stages)};
  const bool names_schedules = names(study.tune, "mesh.schedule") || names(study.tune, "mesh.virtual_stages");
  schedules_ = with_first(own_schedule, names_schedules ? std::vector<ScheduleChoice>{} : std::move(schedules));
  placements_ =
      with_first(spec.placement, names(study.tune, "mesh.placement") ? std::vector<std::string>{} : placement_names());
  const bool names_sharing = names(study.tune, "mesh.cp_comm_type") || names(study.tune, "mesh.cp_cut");
  if (!names_sharing) sharings_ = allowed_sharings(spec);
  if (!names(study.tune, "mesh.zero")) levels_ = all_levels;
  for (std::size_t i = 0; i < space.size(); ++i) {
    origins_.push_back({i, own_});
    plan_of_.push_back(space[i].plan);
    has_pipeline_.push_back(has_pipeline(space[i]));
    plans_.insert(space[i].plan);
  }
}

std::vector<Candidate> Refinement::next(const std::vector<Candidate>& space, const Known& known) {
  while (stage_ != Stage::done) {
    const Stage stage = stage_;
    if (stage == Stage::memory) try_sharding_all(space, known);
    for (const std::string& plan : plans_) {
      if (stage == Stage::schedules) try_schedules(plan, known);
      if (stage == Stage::placements) try_placements(plan, known);
      if (stage == Stage::exchanges) try_exchanges(plan, known);
      if (stage == Stage::cuts) try_cuts(plan, known);
      if (stage == Stage::sharding) try_levels(plan, known);
    }
    const bool again = (stage == Stage::schedules || stage == Stage::exchanges) && !asked_.empty();
    if (!again) stage_ = static_cast<Stage>(static_cast<int>(stage) + 1);
    if (!asked_.empty()) return asked_of(space);
  }
  return {};
}

std::vector<Candidate> Refinement::other_pipelines(const std::vector<Candidate>& space, const Numbers& candidates) {
  for (const std::size_t i : candidates) {
    ask_schedules(i);
    ask_placements(i);
  }
  return asked_of(space);
}

double Refinement::most_left() const {
  const auto tried = [&](const std::map<std::string, std::set<double>>& by_plan, const std::string& plan) {
    const auto found = by_plan.find(plan);
    return found == by_plan.end() ? 0 : found->second.size();
  };
  const auto others = [](std::size_t choices) { return choices > 0 ? static_cast<double>(choices - 1) : 0; };
  std::set<KeyExchange> exchanges;
  for (const SharingChoice& each : sharings_) exchanges.insert(each.exchange);
  const std::size_t cuts = exchanges.empty() ? 0 : sharings_.size() / exchanges.size();
  const bool any_pipeline = std::find(has_pipeline_.begin(), has_pipeline_.end(), true) != has_pipeline_.end();
  double most = 0;
  for (const std::string& plan : plans_) {
    const auto left = [&](Stage stage, std::size_t candidates, std::size_t choices) {
      if (stage_ <= stage) most += static_cast<double>(candidates) * others(choices);
    };
    left(Stage::exchanges, search_rules::most_refined - tried(refined_, plan), exchanges.size());
    left(Stage::cuts, search_rules::least_refined, cuts);
    left(Stage::sharding, search_rules::least_refined, static_cast<std::size_t>(levels_));
    if (!any_pipeline) continue;
    left(Stage::schedules, search_rules::most_refined - tried(scheduled_, plan), schedules_.size());
    left(Stage::placements, search_rules::most_refined, placements_.size());
  }
  return most;
}

std::string Refinement::identity() const {
  std::string text = fmt::format("levels of zero: {}\n", levels_);
  for (const auto& [name, virtual_stages] : schedules_) text += fmt::format("{} {}\n", name, virtual_stages);
  for (const std::string& placement : placements_) text += placement + '\n';
  for (const auto& [exchange, cut] : sharings_) text += fmt::format("{} {}\n", word_of(exchange), word_of(cut));
  return text;
}

// Its candidates that can run, as far as their times are known.
Refinement::Numbers Refinement::of_plan(const std::string& plan, const Known& known) const {
  Numbers found;
  for (std::size_t i = 0; i < origins_.size(); ++i) {
    const bool is_known = known[i].can_run && known[i].has_closed_form;
    if (is_known && plan_of_[origins_[i].base] == plan) found.push_back(i);
  }
  return found;
}

Refinement::Numbers Refinement::best_of(Numbers candidates, std::size_t count, const Known& known) const {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](std::size_t a, std::size_t b) { return known[a].bound_s < known[b].bound_s; });
  candidates.resize(std::min(count, candidates.size()));
  return candidates;
}

// The next of those whose step without waiting takes at most `last_s`; `tried` has those of all that have been tried.
template <class Alone>
Refinement::Numbers Refinement::nearest(Numbers waiting, double last_s, const Alone& alone_s,
                                        std::set<double>& tried) const {
  std::erase_if(waiting, [&](std::size_t i) { return alone_s(i) > last_s; });
  std::stable_sort(waiting.begin(), waiting.end(),
                   [&](std::size_t a, std::size_t b) { return alone_s(a) < alone_s(b); });
  Numbers found;
  for (const std::size_t i : waiting) {
    if (found.size() == search_rules::at_a_time || tried.size() == search_rules::most_refined) break;
    if (tried.insert(alone_s(i)).second) found.push_back(i);
  }
  return found;
}

void Refinement::ask(std::size_t base, const Choice& choice) {
  const SharingChoice& sharing = choice.sharing;
  const auto cut = sharing.cut ? static_cast<std::size_t>(*sharing.cut) : token_cut_words().size();
  const bool is_new = seen_.emplace(base, choice.schedule, choice.placement, sharing.exchange, cut, choice.zero).second;
  if (choice != own_ && is_new) asked_.push_back({base, choice});
}

void Refinement::ask_schedules(std::size_t candidate) {
  const std::size_t base = origins_[candidate].base;
  Choice choice = origins_[candidate].choice;
  for (choice.schedule = 0; has_pipeline_[base] && choice.schedule < schedules_.size(); ++choice.schedule) {
    ask(base, choice);
  }
}

void Refinement::ask_placements(std::size_t candidate) {
  const std::size_t base = origins_[candidate].base;
  Choice choice = origins_[candidate].choice;
  for (choice.placement = 0; has_pipeline_[base] && choice.placement < placements_.size(); ++choice.placement) {
    ask(base, choice);
  }
}

void Refinement::try_sharding_all(const std::vector<Candidate>& space, const Known& known) {
  for (std::size_t i = 0; levels_ > 0 && i < space.size(); ++i) {
    if (!known[i].can_run && !has_pipeline(space[i])) ask(i, {.sharing = own_.sharing, .zero = shards_all});
  }
}

void Refinement::try_schedules(const std::string& plan, const Known& known) {
  Numbers waiting = of_plan(plan, known);
  if (waiting.empty()) return;
  const double last_s =
      (1 + search_rules::within_reach_of_schedules) * known[best_of(waiting, 1, known).front()].bound_s;
  std::erase_if(waiting, [&](std::size_t i) {
    const bool waits = known[i].bubble_s > worth_waiting * known[i].bound_s;
    return origins_[i].choice.schedule != 0 || !waits;
  });
  const auto alone_s = [&](std::size_t i) { return known[i].bound_s - saved_by_schedule * known[i].bubble_s; };
  for (const std::size_t i : nearest(std::move(waiting), last_s, alone_s, scheduled_[plan])) ask_schedules(i);
}

void Refinement::try_placements(const std::string& plan, const Known& known) {
  Numbers pipelines = of_plan(plan, known);
  std::erase_if(pipelines, [&](std::size_t i) { return !has_pipeline_[origins_[i].base]; });
  for (const std::size_t i : best_of(std::move(pipelines), search_rules::most_refined, known)) ask_placements(i);
}

void Refinement::try_exchanges(const std::string& plan, const Known& known) {
  Numbers waiting = of_plan(plan, known);
  if (sharings_.empty() || waiting.empty()) return;
  const double last_s = (1 + search_rules::near) * known[best_of(waiting, 1, known).front()].bound_s;
  std::erase_if(waiting, [&](std::size_t i) {
    const bool shares = known[i].sharing_s > worth_waiting * known[i].bound_s;
    return origins_[i].choice.sharing != own_.sharing || !shares;
  });
  const auto alone_s = [&](std::size_t i) {
    return known[i].bound_s - known[i].sharing_s - saved_by_schedule * known[i].bubble_s;
  };
  for (const std::size_t i : nearest(std::move(waiting), last_s, alone_s, refined_[plan])) {
    Choice choice = origins_[i].choice;
    for (std::size_t at = 0; at < sharings_.size(); ++at) {
      choice.sharing = sharings_[at];
      const bool is_first = at == 0 || sharings_[at].exchange != sharings_[at - 1].exchange;
      if (is_first) ask(origins_[i].base, choice);
    }
  }
}

void Refinement::try_cuts(const std::string& plan, const Known& known) {
  for (const std::size_t i : best_of(of_plan(plan, known), search_rules::least_refined, known)) {
    if (known[i].sharing_s <= worth_waiting * known[i].bound_s) continue;
    Choice choice = origins_[i].choice;
    for (const SharingChoice& sharing : sharings_) {
      choice.sharing = sharing;
      if (sharing.exchange == origins_[i].choice.sharing.exchange) ask(origins_[i].base, choice);
    }
  }
}

void Refinement::try_levels(const std::string& plan, const Known& known) {
  for (const std::size_t i : best_of(of_plan(plan, known), search_rules::least_refined, known)) {
    Choice choice = origins_[i].choice;
    for (choice.zero = 0; choice.zero < levels_; ++choice.zero) ask(origins_[i].base, choice);
  }
}

std::vector<Candidate> Refinement::asked_of(const std::vector<Candidate>& space) {
  std::vector<Candidate> made;
  for (const Origin& origin : asked_) {
    Candidate& candidate = made.emplace_back(space[origin.base]);
    const Choice& choice = origin.choice;
    const auto& [exchange, cut] = choice.sharing;
    if (choice.schedule != 0) {
      const auto& [name, virtual_stages] = schedules_[choice.schedule];
      choose("schedule", name, candidate);
      put("mesh.virtual_stages", virtual_stages, candidate);
      if (virtual_stages != "1") candidate.text += fmt::format(", virtual_stages {}", virtual_stages);
    }
    if (choice.placement != 0) choose("placement", placements_[choice.placement], candidate);
    if (choice.sharing != own_.sharing) choose("cp_comm_type", word_of(exchange), candidate);
    if (cut != own_.sharing.cut) choose("cp_cut", word_of(cut), candidate);
    if (choice.zero != own_.zero) choose("zero", fmt::format("{}", choice.zero), candidate);
  }
  origins_.insert(origins_.end(), asked_.begin(), asked_.end());
  asked_.clear();
  return made;
}

}  // namespace hdpsim
