#include "sim/run/static_ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

#include "sim/analysis/metrics.h"
#include "sim/run/impl/way_steps.h"
#include "sim/study/override.h"
#include "sim/study/study_plans.h"

namespace hdpsim {
namespace {

constexpr std::int64_t judged_steps = 4;
// How much slower than the fastest an exchange may be for its other cuts to be tried.
constexpr double near_best = 0.1;

bool is_faster(const JudgedWay& a, const JudgedWay& b) {
  return a.step_s < b.step_s;
}

bool states_cp(const Value& plan) {
  const Value* cp = plan.is_map() ? plan.entries.front().value.find("cp") : nullptr;
  return cp != nullptr && !cp->is_null() && cp->text != "auto";
}

void leave_out(Value& map, std::initializer_list<std::string_view> keys) {
  std::erase_if(map.entries, [&](const Value::Entry& entry) {
    return std::find(keys.begin(), keys.end(), entry.key) != keys.end();
  });
}

void put(Value& study, const std::string& path, std::string_view word) {
  Diagnostics found;
  set_path(study, path, Value::scalar(std::string(word)), found);
  found.throw_if_any();
}

/// Judges the ways of one question.
class Judge {
 public:
  Judge(const WayQuestion& question, const JudgeOptions& options) : question_(question), options_(options) {}

  /// Of ways that are as fast, the study's own comes first. Empty if it was stopped.
  std::optional<std::vector<JudgedWay>> ranking() {
    judge({question_.own});
    const bool shares = fitting_.empty() || fitting_.front().degree > 1;
    if (shares) judge_exchanges();
    if (shares) judge_cuts();
    if (!question_.states_cp) judge_larger_degrees();
    if (stopped_) return std::nullopt;
    std::stable_sort(fitting_.begin(), fitting_.end(), is_faster);
    return std::move(fitting_);
  }

 private:
  void judge_exchanges() {
    const std::vector<SharingChoice>& all = question_.allowed;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 0 || all[i].exchange != all[i - 1].exchange) judge({all[i]});
    }
  }

  void judge_cuts() {
    if (fitting_.empty()) return;
    std::set<KeyExchange> near;
    const double limit = (1 + near_best) * fastest().step_s;
    for (const JudgedWay& each : fitting_) {
      if (each.step_s <= limit) near.insert(each.way.sharing.exchange);
    }
    for (const SharingChoice& sharing : question_.allowed) {
      if (near.contains(sharing.exchange)) judge({sharing});
    }
  }

  void judge_larger_degrees() {
    while (!stopped_ && !fitting_.empty()) {
      const JudgedWay before = fastest();
      judge({before.way.sharing, 2 * before.degree});
      if (!is_faster(fastest(), before)) return;
    }
  }

  // The first of several.
  [[nodiscard]] const JudgedWay& fastest() const {
    return *std::min_element(fitting_.begin(), fitting_.end(), is_faster);
  }

  void judge(const StaticWay& way) {
    if (stopped_ || std::find(judged_.begin(), judged_.end(), way) != judged_.end()) return;
    judged_.push_back(way);
    try {
      Study study = read(way);
      StudyPoint& point = study.points.front();
      point.spec.steps = std::min(point.spec.steps, judged_steps);
      if (!steps_) steps_.emplace(point.spec.steps, options_.jobs);
      JudgedWay judged{way};
      const auto results = results_of(study, judged);
      stopped_ = !results.has_value();
      if (stopped_) return;
      judged.degree = steps_->degree(point, way.cp);
      const RunMetrics metrics = metrics_of(study.run_info(0, 0), {.steps = *results, .ranks = {}, .links = {}});
      judged.step_s = metrics.step_time_s.mean;
      if (metrics.fits) {
        add(std::move(judged));
      } else if (way.cp == 0 && !question_.states_cp) {
        judge({way.sharing, 2 * judged.degree});  // half the tokens of a rank
      }
    } catch (const InputError&) {  // the mesh does not allow it
    }
  }

  void add(JudgedWay judged) {
    if (fitting_.empty() || is_faster(judged, fastest())) {
      for (JudgedWay& slower : fitting_) slower.steps.reset();
    } else {
      judged.steps.reset();
    }
    fitting_.push_back(std::move(judged));
  }

  // The results of the only plan of a study; empty if it was stopped. Keeps the steps in `judged` if a run has them.
  [[nodiscard]] std::optional<std::vector<StepResult>> results_of(Study& study, JudgedWay& judged) {
    PointSpec& spec = study.points.front().spec;
    const bool are_of_run = question_.study.find("background") == nullptr && spec.grain != Grain::exact;
    if (are_of_run && !spec.loading) {  // a step waits for data, which those after it in the run delay
      if (const Run* known = known_run(judged.way)) {
        const std::vector<StepResult>& all = known->result.steps;
        return std::vector<StepResult>(all.begin(), all.begin() + spec.steps);
      }
    }
    if (spec.grain == Grain::exact) spec.grain = Grain::fluid;
    const auto steps = steps_->simulate(study.points.front(), judged.way.cp, study.output.memory_ranks, options_.stop);
    if (!steps) return std::nullopt;
    if (are_of_run) judged.steps = std::make_shared<KnownSteps>(options_.room);
    std::vector<StepResult> results;
    for (const KnownStep& known : *steps) {
      results.push_back(known.step.result);
      if (are_of_run) judged.steps->keep(0, known);
    }
    if (spec.loading) (void)add_data_waits(study.points.front(), results);
    return results;
  }

  [[nodiscard]] const Run* known_run(const StaticWay& way) const {
    const auto found = std::find_if(question_.known.begin(), question_.known.end(),
                                    [&](const KnownWay& known) { return known.way == way; });
    return found == question_.known.end() ? nullptr : found->run;
  }

  [[nodiscard]] Study read(const StaticWay& way) {
    Value study = study_of(question_, way);
    leave_out(study, {"background"});
    const std::lock_guard lock(options_.reading);
    return read_study(std::move(study), options_.catalog);
  }

  const WayQuestion& question_;
  const JudgeOptions& options_;
  std::vector<StaticWay> judged_;
  std::vector<JudgedWay> fitting_;
  std::optional<WaySteps> steps_;
  bool stopped_ = false;
};

}  // namespace

bool is_static_mesh(const StudyPlan& plan) {
  return plan.given == nullptr && plan.policy && plan.policy->name == "static";
}

SharingChoice sharing_of(const PointSpec& spec) {
  return {spec.recipe.key_exchange, spec.cut};
}

WayQuestion way_question(const StudyPoint& point, const StudyPlan& baseline, Value study) {
  leave_out(study, {"compare_to", "tune", "replay", "output", "uncertainty"});
  study.set("plans", Value::sequence({})).items.push_back(baseline.entry);
  return {std::move(study), sharing_of(point.spec), allowed_sharings(point.spec), states_cp(baseline.entry)};
}

std::string identity_of(const WayQuestion& question) {
  Value study = question.study;
  if (Value* mesh = study.find("mesh")) leave_out(*mesh, {"cp_comm_type", "cp_cut"});
  return to_yaml(study);
}

Value study_of(const WayQuestion& question, const StaticWay& way) {
  Value study = question.study;
  put(study, "mesh.cp_comm_type", word_of(way.sharing.exchange));
  put(study, "mesh.cp_cut", word_of(way.sharing.cut));
  if (way.cp > 0) {
    Value& plan = study.find("plans")->items.front();
    plan = with_option(plan, "cp", Value::scalar(fmt::format("{}", way.cp)));
  }
  return study;
}

std::string way_name(const std::string& plan, const StaticWay& way) {
  const auto& [exchange, cut] = way.sharing;
  std::string words(word_of(exchange));
  if (cut != TokenCut::per_document) words += fmt::format(", {}", word_of(cut));
  if (way.cp > 0) words += fmt::format(", cp {}", way.cp);
  return fmt::format("{} ({})", plan, words);
}

std::optional<std::vector<JudgedWay>> judged_ways(const WayQuestion& question, const JudgeOptions& options) {
  return Judge(question, options).ranking();
}

}  // namespace hdpsim
