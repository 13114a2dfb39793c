#include "sim/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/base/growing_file.h"
#include "sim/replay/window_table.h"
#include "sim/run/kept_jobs.h"
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
        table_(names_),
        fold_(rules_of(study, point, run.steps), [this](const WindowRow& row) { take(row); }) {}

  std::optional<ReplayResult> result() {
    open_files();
    if (!run_steps()) return std::nullopt;
    ReplaySummary summary = fold_.finish();
    if (steps_) steps_->finish();
    if (windows_) windows_->finish();
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
  void open_files() {
    journal_ = run_.kept.open({"replay", identity_of(study_, point_, run_.version)});
    if (run_.kept.path.empty()) return;
    steps_.emplace(run_.kept.path / "steps.csv", 0);
    steps_->append(StepTable::header());
    windows_.emplace(run_.kept.path / "windows.csv", 0);
    windows_->append(csv_text(write_window_header));
  }

  // Jobs are numbered by step, then by plan.
  bool run_steps() {
    const auto plans = static_cast<std::int64_t>(names_.size());
    const auto key = [&](std::int64_t number) {
      return fmt::format("step {}, plan {}", number / plans, number % plans);
    };
    const auto make_worker = [this] {
      return [this, world = std::shared_ptr<World>(point_.make_world())](std::int64_t number) {
        return simulated(number, *world);
      };
    };
    ReplayProgress progress{.steps = run_.steps};
    std::vector<StepRow> rows;
    bool is_simulated = false;
    const auto take_row = [&](std::int64_t number, StepRow row, bool is_new) {
      row.step = number / plans;
      row.plan = rows.size();
      rows.push_back(row);
      is_simulated = is_simulated || is_new;
      if (std::ssize(rows) < plans) return;
      take(rows);
      rows.clear();
      ++progress.done;
      if (!std::exchange(is_simulated, false)) return static_cast<void>(++progress.kept);
      run_.report(progress);
    };
    return run_kept({0, run_.steps * plans, run_.jobs, run_.stop}, journal_, key, make_worker, take_row);
  }

  [[nodiscard]] StepRow simulated(std::int64_t number, World& world) const {
    const auto plans = static_cast<std::int64_t>(names_.size());
    const std::int64_t step = number / plans;
    const auto plan = static_cast<std::size_t>(number % plans);
    return row_of(simulate_step(point_, plan, step, world).result, figures_of(point_.batches_of(plan).step(step)),
                  plan);
  }

  void take(const std::vector<StepRow>& rows) {
    for (const StepRow& row : rows) {
      run_.row(row);
      if (steps_) steps_->append(table_.line(row));
    }
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
  StepTable table_;
  ReplayFold fold_;
  Journal journal_;
  std::optional<GrowingFile> steps_;
  std::optional<GrowingFile> windows_;
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
