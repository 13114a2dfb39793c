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
  Judge(const WayQuestion& question, Catalog& catalog, std::mutex& reading, const std::function<bool()>& stop)
      : question_(question), catalog_(catalog), reading_(reading), stop_(stop) {}

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
      if (!steps_) steps_.emplace(point.spec.steps);
      const auto results = results_of(way, point);
      stopped_ = !results.has_value();
      if (stopped_) return;
      const std::int64_t degree = steps_->degree(point, way.cp);
      const RunMetrics metrics = metrics_of(study.run_info(0, 0), {.steps = *results, .ranks = {}, .links = {}});
      if (metrics.fits) {
        fitting_.push_back({way, degree, metrics.step_time_s.mean});
      } else if (way.cp == 0 && !question_.states_cp) {
        judge({way.sharing, 2 * degree});  // half the tokens of a rank
      }
    } catch (const InputError&) {  // the mesh does not allow it
    }
  }

  // Empty if it was stopped. Steps of a run wait for data that those after them begin to load.
  [[nodiscard]] std::optional<std::vector<StepResult>> results_of(const StaticWay& way, StudyPoint& point) {
    const bool is_alone = question_.study.find("background") == nullptr;
    if (is_alone && !point.spec.loading && point.spec.grain != Grain::exact) {
      for (const KnownWay& known : question_.known) {
        if (known.way != way) continue;
        const std::vector<StepResult>& all = known.run->result.steps;
        return std::vector<StepResult>(all.begin(), all.begin() + point.spec.steps);
      }
    }
    if (point.spec.grain == Grain::exact) point.spec.grain = Grain::fluid;
    return steps_->simulate(point, way.cp, stop_);
  }

  [[nodiscard]] Study read(const StaticWay& way) {
    Value study = study_of(question_, way);
    leave_out(study, {"background"});
    const std::lock_guard lock(reading_);
    return read_study(std::move(study), catalog_);
  }

  const WayQuestion& question_;
  Catalog& catalog_;
  std::mutex& reading_;  // guards catalog_
  const std::function<bool()>& stop_;
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

std::optional<std::vector<JudgedWay>> judged_ways(const WayQuestion& question, Catalog& catalog, std::mutex& reading,
                                                  const std::function<bool()>& stop) {
  return Judge(question, catalog, reading, stop).ranking();
}

}  // namespace hdpsim
