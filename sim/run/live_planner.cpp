#include "sim/run/live_planner.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/document/json.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/plan_file.h"
#include "sim/run/plan_documents.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

constexpr char state_schema[] = "hdpsim.planner/1";
constexpr std::size_t most_sequences = std::size_t{1} << 24;  // of a plan file

std::string text_of(const SequenceName& name) {
  if (const auto* number = std::get_if<std::int64_t>(&name)) return fmt::format("{}", *number);
  return fmt::format("'{}'", std::get<std::string>(name));
}

Json json_of(const SequenceName& name) {
  if (const auto* number = std::get_if<std::int64_t>(&name)) return *number;
  return std::get<std::string>(name);
}

// A state that is none: the reader of the JSON library throws what says less.
[[noreturn]] void refuse_state(const std::string& why) {
  throw InputError("this is no state of the planner: " + why,
                   "load what state_dict() of the same planner has returned");
}

const Json& member(const Json& value, const char* key) {
  const auto found = value.find(key);
  if (!value.is_object() || found == value.end()) refuse_state(fmt::format("it has no '{}'", key));
  return *found;
}

SequenceName name_in(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_integer()) refuse_state("a name is neither a whole number nor a text");
  return value.get<std::int64_t>();
}

}  // namespace

/// What a step trains, and what waits behind it.
struct LivePlanner::Arrived {
  std::int64_t step = 0;
  Batch batch;
  HeldSequences held = {};
  std::map<std::int64_t, SequenceName> names = {};  ///< Of all that arrived or waited, by number.
};

LivePlanner::LivePlanner(Study study, std::int64_t point, const std::string& plan, std::optional<std::int64_t> waves,
                         std::string version)
    : study_(std::move(study)),
      point_(chosen_point(study_, point)),
      plan_(chosen_plan(study_, plan)),
      waves_(waves),
      version_(std::move(version)) {
  if (study_.plans[plan_].given != nullptr) {
    throw InputError(study_.plans[plan_].entry.position, "plans of files are for the batches that the files state",
                     "name a policy");
  }
  const Planner& planner = *point_.planners[plan_];
  rule_ = planner.holding(*point_.batches, point_.spec.steps);
}

void LivePlanner::check(const std::vector<std::int64_t>& lengths, const std::vector<SequenceName>& names) const {
  const std::int64_t context = point_.spec.batch.context;
  if (lengths.size() > most_sequences) {
    throw InputError(fmt::format("a batch of {} sequences", lengths.size()),
                     fmt::format("a plan has at most {}", most_sequences));
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] >= 1 && lengths[i] <= context) continue;
    if (lengths[i] < 1) throw InputError(fmt::format("sequence {} has {} tokens", i, lengths[i]), "leave it out");
    throw InputError(fmt::format("sequence {} has {} tokens, the longest of this study has {}", i, lengths[i], context),
                     "cut it, or raise data.context of the study");
  }
  if (names.empty()) return;
  if (names.size() != lengths.size()) {
    throw InputError(fmt::format("{} ids of {} sequences", names.size(), lengths.size()),
                     "one id a sequence, in their order");
  }
  std::set<SequenceName> known;
  for (const auto& [number, name] : names_) known.insert(name);
  for (const SequenceName& name : names) {
    if (known.insert(name).second) continue;
    throw InputError(fmt::format("the id {} is there twice, or waits since an earlier step", text_of(name)),
                     "each sequence has an id of its own");
  }
}

LivePlanner::Arrived LivePlanner::take(const std::vector<std::int64_t>& lengths, const std::vector<SequenceName>& names,
                                       std::optional<std::int64_t> step) {
  Arrived taken{step.value_or(step_), {}, held_, names_};
  std::int64_t number = rule_ ? arrived_ : 0;
  for (std::size_t i = 0; i < lengths.size(); ++i, ++number) {
    taken.batch.sequences.push_back({lengths[i], number});
    if (!names.empty()) {
      taken.names.emplace(number, names[i]);
    } else if (rule_) {
      taken.names.emplace(number, name_of_sequence(taken.step, static_cast<std::int64_t>(i)));
    }
  }
  if (rule_) taken.batch = rule_(taken.batch, taken.held);
  return taken;
}

Plan LivePlanner::in_waves(Plan plan) const {
  if (!waves_ || runs_in_waves(plan)) return plan;
  if (plan.expert_ranks > 1) {
    throw InputError(fmt::format("the plan runs in waves of {} ranks already", plan.expert_ranks), "leave waves out");
  }
  if (has_chunks_in_order(plan)) {
    throw InputError(fmt::format("{} runs chunks in order, which waves do not", plan.policy), "leave waves out");
  }
  const std::int64_t ranks = plan.ranks;
  Plan made = in_expert_waves(std::move(plan), ranks, *waves_);
  require_sound(made);
  return made;
}

LivePlan LivePlanner::plan(const std::vector<std::int64_t>& lengths, const std::vector<SequenceName>& names,
                           std::optional<std::int64_t> step) {
  std::unique_lock lock(mutex_);
  check(lengths, names);
  Arrived taken = take(lengths, names, step);
  const std::int64_t before = std::exchange(step_, taken.step + 1);
  if (!rule_) lock.unlock();  // what waits depends on the steps before: they are planned in order
  LivePlan live;
  try {
    Plan made = in_waves(make_plan(point_, plan_, taken.step, taken.batch));
    live.document = document_of(study_, point_, std::move(made), version_);
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    if (step_ == taken.step + 1) step_ = before;
    throw;
  }
  live.estimate_s = point_.estimate(live.document.plan);
  for (const Sequence& sequence : taken.batch.sequences) {
    const auto name = taken.names.find(sequence.document);
    if (name == taken.names.end()) continue;
    live.document.ids.push_back(std::move(name->second));
    taken.names.erase(name);
  }
  if (rule_) {
    arrived_ += std::ssize(lengths);
    held_ = std::move(taken.held);
    names_ = std::move(taken.names);
  }
  return live;
}

std::vector<SequenceName> LivePlanner::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<SequenceName> names;
  for (const auto& [number, name] : names_) names.push_back(name);
  return names;
}

std::string LivePlanner::hash() const {
  return document_of(study_, point_, {}, version_).made_by->hash;
}

std::string LivePlanner::state() const {
  const std::lock_guard lock(mutex_);
  const auto list_of = [&](const Batch& batch) {
    Json list = Json::array();
    for (const Sequence& sequence : batch.sequences) {
      list.push_back({json_of(names_.at(sequence.document)), sequence.tokens});
    }
    return list;
  };
  Json queues = Json::array();
  for (const Batch& queue : held_.queues) queues.push_back(list_of(queue));
  return json_line({{"schema", state_schema},
                    {"policy", policy()},
                    {"hash", hash()},
                    {"step", step_},
                    {"left", list_of(held_.left)},
                    {"queues", std::move(queues)}});
}

void LivePlanner::set_state(const std::string& text) {
  const Json read = parsed_json(text);
  if (read.is_discarded() || !read.is_object()) refuse_state("it is no map");
  if (member(read, "schema") != state_schema) refuse_state(fmt::format("it is not {}", state_schema));
  if (member(read, "policy") != policy()) refuse_state("it is of another policy");
  if (member(read, "hash") != hash()) refuse_state("it is of another study");
  const Json& step = member(read, "step");
  if (!step.is_number_integer() || step < 0 || step > most_steps_of_plans) refuse_state("its step is no number of one");

  std::map<std::int64_t, SequenceName> names;
  std::set<SequenceName> known;
  const auto batch_of = [&](const Json& list) {
    Batch batch;
    if (!list.is_array()) refuse_state("what waits is no list");
    for (const Json& entry : list) {
      const bool is_pair = entry.is_array() && entry.size() == 2 && entry[1].is_number_integer();
      if (!is_pair || entry[1] < 1 || entry[1] > point_.spec.batch.context) refuse_state("what waits is no sequence");
      const auto number = static_cast<std::int64_t>(names.size());
      batch.sequences.push_back({entry[1].get<std::int64_t>(), number});
      names.emplace(number, name_in(entry[0]));
      if (!known.insert(names.at(number)).second) refuse_state("a sequence waits twice");
    }
    return batch;
  };
  HeldSequences held;
  held.left = batch_of(member(read, "left"));
  const Json& queues = member(read, "queues");
  if (!queues.is_array()) refuse_state("what waits is no list");
  for (const Json& queue : queues) held.queues.push_back(batch_of(queue));
  if (!rule_ && !names.empty()) refuse_state("this planner holds nothing back");

  const std::lock_guard lock(mutex_);
  step_ = step.get<std::int64_t>();
  held_ = std::move(held);
  arrived_ = static_cast<std::int64_t>(names.size());
  names_ = std::move(names);
}

}  // namespace hdpsim
