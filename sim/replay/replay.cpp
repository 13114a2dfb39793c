#include "sim/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "sim/replay/journal.h"
#include "sim/replay/window_table.h"
#include "sim/run/ordered_work.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

constexpr std::int64_t usual_windows = 50;
constexpr std::int64_t least_window = 10;

// The number of steps is removed, so that a replay may be made longer.
std::string without_steps(const std::string& identity) {
  Diagnostics none;
  Value values = parse_document("identity", identity, none);
  if (Value* data = values.find("data")) {
    std::erase_if(data->entries, [](const Value::Entry& entry) { return entry.key == "steps"; });
  }
  return to_yaml(values);
}

std::string identity_of(const Study& study, const StudyPoint& point, const std::string& version) {
  std::string identity = fmt::format("hdpsim: {}\n{}plans:\n", version, without_steps(point.identity));
  for (const StudyPlan& plan : study.plans) identity += plan.identity();
  return identity;
}

ReplayRules rules_of(const Study& study, const StudyPoint& point, std::int64_t steps) {
  const std::vector<std::string> names = plan_names(study);
  const ClusterSpec& cluster = point.spec.cluster;
  return {.steps = steps,
          .plans = names.size(),
          .baseline = baseline_plan(study),
          .window = study.replay.window.value_or(std::max(least_window, steps / usual_windows)),
          .threshold = study.replay.threshold,
          .worst = static_cast<std::size_t>(study.replay.worst),
          .device_gb = cluster.least_device_memory().gigabytes(),
          .host_gb = cluster.least_host_share().gigabytes()};
}

/// A replay under way: takes steps in their order, whether simulated or kept.
class Replay {
 public:
  Replay(const Study& study, const StudyPoint& point, const ReplayRun& run)
      : study_(study),
        point_(point),
        run_(run),
        names_(plan_names(study)),
        fold_(rules_of(study, point, run.steps), [this](const WindowRow& row) { take(row); }) {}

  std::optional<ReplayResult> result() {
    if (!open_files() || !run_steps()) return std::nullopt;
    ReplaySummary summary = fold_.finish();
    if (windows_) windows_->finish();
    if (journal_) journal_->finish();
    auto worst = explained(summary);
    if (!worst) return std::nullopt;
    const RunInfo info = study_.run_info(static_cast<std::size_t>(&point_ - study_.points.data()), 0);
    return ReplayResult{study_.name,
                        info.setting,
                        info.profile,
                        names_,
                        std::move(summary),
                        std::move(*worst),
                        point_.batches->use(run_.steps),
                        run_.refused,
                        {}};
  }

 private:
  // False if it was stopped before the damaged steps were simulated again.
  bool open_files() {
    if (run_.folder.empty()) return true;
    journal_.emplace(run_.folder, identity_of(study_, point_, run_.version), names_);
    if (run_.resume && !mend()) return false;
    windows_.emplace(run_.folder / "windows.csv", 0);
    windows_->append(csv_text(write_window_header));
    run_.resume ? journal_->resume([this](const std::vector<StepRow>& rows) { take(rows); }) : journal_->begin();
    return true;
  }

  bool mend() {
    const Journal::Kept kept = journal_->look(run_.damaged);
    if (kept.steps > run_.steps) {
      throw InputError(fmt::format("{} holds more than {} steps", run_.folder.string(), run_.steps),
                       "ask for as many steps, or leave --resume out to begin anew");
    }
    if (!kept.damaged) return true;
    const auto plans = static_cast<std::int64_t>(names_.size());
    const auto make_worker = [&] {
      return [&, world = std::shared_ptr<World>(point_.make_world())](std::int64_t number) {
        const std::int64_t step = kept.missing[static_cast<std::size_t>(number / plans)];
        return simulated(step * plans + number % plans, *world);
      };
    };
    std::map<std::int64_t, std::vector<StepRow>> again;
    const auto take_row = [&](std::int64_t, StepRow&& row) { again[row.step].push_back(row); };
    if (!run_in_order({0, std::ssize(kept.missing) * plans, run_.jobs, run_.stop}, make_worker, take_row)) return false;
    journal_->mend(again);
    return true;
  }

  bool run_steps() {
    const auto plans = static_cast<std::int64_t>(names_.size());
    const std::int64_t first = fold_.steps();
    const auto make_worker = [this] {
      return [this, world = std::shared_ptr<World>(point_.make_world())](std::int64_t number) {
        return simulated(number, *world);
      };
    };
    std::vector<StepRow> rows;
    const auto take_row = [&](std::int64_t, StepRow&& row) {
      rows.push_back(row);
      if (std::ssize(rows) < plans) return;
      if (journal_) journal_->append(rows);
      take(rows);
      rows.clear();
      run_.report({first, fold_.steps(), run_.steps});
    };
    return run_in_order({first * plans, run_.steps * plans, run_.jobs, run_.stop}, make_worker, take_row);
  }

  // Work is numbered by step, then by plan.
  [[nodiscard]] StepRow simulated(std::int64_t number, World& world) const {
    const auto plans = static_cast<std::int64_t>(names_.size());
    const std::int64_t step = number / plans;
    const auto plan = static_cast<std::size_t>(number % plans);
    return row_of(simulate_step(point_, plan, step, world).result, figures_of(point_.batches_of(plan).step(step)),
                  plan);
  }

  void take(const std::vector<StepRow>& rows) {
    for (const StepRow& row : rows) run_.row(row);
    fold_.add(rows);
  }

  void take(const WindowRow& row) {
    run_.window(row);
    if (windows_) windows_->append(csv_text([&](TableSink& sink) { write_window(row, names_[row.plan], sink); }));
  }

  std::optional<std::vector<std::vector<StepCause>>> explained(const ReplaySummary& summary) const {
    std::vector<StepRow> rows;
    for (const PlanSummary& plan : summary.plans) rows.insert(rows.end(), plan.worst.begin(), plan.worst.end());
    std::vector<std::vector<StepCause>> causes(summary.plans.size());
    const auto make_worker = [&] {
      return [&, world = std::shared_ptr<World>(point_.make_world())](std::int64_t number) {
        return explain_step(point_, rows[static_cast<std::size_t>(number)], *world);
      };
    };
    const auto take_cause = [&](std::int64_t, StepCause&& cause) {
      causes[cause.row.plan].push_back(std::move(cause));
    };
    if (!run_in_order({0, std::ssize(rows), run_.jobs, run_.stop}, make_worker, take_cause)) return std::nullopt;
    return causes;
  }

  const Study& study_;
  const StudyPoint& point_;
  const ReplayRun& run_;
  std::vector<std::string> names_;
  ReplayFold fold_;
  std::optional<GrowingFile> windows_;
  std::optional<Journal> journal_;
};

}  // namespace

std::size_t baseline_plan(const Study& study) {
  const std::vector<std::string> names = plan_names(study);
  const auto baseline = study.compare_to ? std::find(names.begin(), names.end(), *study.compare_to) : names.begin();
  return static_cast<std::size_t>(baseline - names.begin());
}

std::vector<std::string> plan_names(const Study& study) {
  std::vector<std::string> names;
  for (const StudyPlan& plan : study.plans) names.push_back(plan.name);
  return names;
}

std::optional<ReplayResult> replay(const Study& study, const StudyPoint& point, const ReplayRun& run) {
  return Replay(study, point, run).result();
}

}  // namespace hdpsim
