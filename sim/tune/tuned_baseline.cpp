#include "sim/tune/tuned_baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/base/text.h"
#include "sim/document/record.h"
#include "sim/document/values.h"
#include "sim/run/runner.h"
#include "sim/study/sweep.h"

namespace hdpsim {

/// What a search for the best mesh of a baseline has found.
struct FoundBaseline {
  std::string choices;  ///< What it has chosen, in a few words.
  std::string study;    ///< YAML of a complete study with the baseline on that mesh as its only plan.
};

template <SameAs<FoundBaseline> Self, class Visit>
void each_member(Self& found, const Visit& visit) {
  visit("choices", found.choices);
  visit("study", found.study);
}

namespace {

using Baseline = std::shared_ptr<const Run>;

// Keeps of `tune` what chooses a mesh.
void restrict_to_mesh(Value& study) {
  Value* tune = study.find("tune");
  if (tune == nullptr || !tune->is_map()) return;
  std::erase_if(tune->entries, [](const Value::Entry& entry) { return entry.key == "objective"; });
  if (Value* space = tune->find("space")) {
    std::erase_if(space->entries, [](const Value::Entry& entry) {
      return !entry.key.starts_with("mesh.") && !entry.key.starts_with("training.");
    });
  }
}

// One point of a study with its baseline as the only plan.
Value baseline_study(const Study& study, Value point) {
  const auto plan = std::find_if(study.plans.begin(), study.plans.end(),
                                 [&](const StudyPlan& each) { return each.name == study.compare_to; });
  point.set("plans", Value::sequence({})).items.push_back(plan->entry);
  std::erase_if(point.entries, [](const Value::Entry& entry) { return entry.key == "compare_to"; });
  restrict_to_mesh(point);
  return point;
}

std::string name_of(const StudyPoint& point) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : point.coordinates) parts.push_back(fmt::format("{} {}", path, line_of(value)));
  return parts.empty() ? "" : fmt::format(" at {}", joined(parts, ", "));
}

/// Tunes the baseline of one point after the other; points that ask the same share an answer.
class BaselineSearch {
 public:
  BaselineSearch(const Study& study, const Value& root, Catalog& catalog, const BaselineRun& run)
      : study_(study), catalog_(catalog), run_(run) {
    Diagnostics none;
    points_ = expand_sweep(root, none);
  }

  [[nodiscard]] std::optional<std::vector<Baseline>> run() {
    std::vector<Baseline> found;
    for (std::size_t point = 0; point < points_.size(); ++point) {
      Baseline baseline = baseline_of(point);
      if (baseline == nullptr) return std::nullopt;
      found.push_back(std::move(baseline));
    }
    return found;
  }

 private:
  // Null if it was stopped.
  [[nodiscard]] Baseline baseline_of(std::size_t point) {
    std::optional<Run> best = run_at(point);
    if (!best) return nullptr;
    best->info.point = point;
    best->info.coordinates = study_.points.at(point).coordinates;
    return std::make_shared<const Run>(*std::move(best));
  }

  // Empty if it was stopped.
  [[nodiscard]] std::optional<Run> run_at(std::size_t point) {
    const Value root = baseline_study(study_, points_[point].study);
    try {
      const Study study = read_study(root, catalog_);
      const std::string identity =
          fmt::format("baseline\nhdpsim: {}\n{}", run_.search.version, tuning_identity(study, root, catalog_));
      const auto known = runs_.find(identity);
      if (known != runs_.end()) return known->second;
      std::optional<FoundBaseline> found = kept(identity);
      if (!found) {
        found = searched(study, root, point);
        if (!found) return std::nullopt;
        if (run_.journal != nullptr) run_.journal->add(identity, record_text(*found));
      }
      std::optional<Run> best = run_of(*found);
      if (best) runs_.emplace(identity, *best);
      return best;
    } catch (const InputError& error) {
      Diagnostics problems;
      problems.error(
          {}, fmt::format("the baseline {} cannot be tuned{}", *study_.compare_to, name_of(study_.points.at(point))));
      problems.append(error.diagnostics());
      problems.throw_if_any();
      throw;
    }
  }

  // The winner over all steps; empty if it was stopped.
  [[nodiscard]] std::optional<Run> run_of(const FoundBaseline& found) {
    Diagnostics problems;
    Value winner = parse_document("the tuned baseline", found.study, problems);
    problems.throw_if_any();
    auto runs = run_study(
        read_study(std::move(winner), catalog_),
        {.jobs = run_.search.jobs, .journal = run_.journal, .version = run_.search.version, .stop = run_.search.stop});
    if (!runs) return std::nullopt;
    Run& best = runs->front();
    best.info.plan = fmt::format("{} (tuned)", *study_.compare_to);
    best.info.tuned = found.choices;
    best.metrics.speedup = speedup_over(best.info.plan, best.result, best.result);
    return std::move(best);
  }

  [[nodiscard]] std::optional<FoundBaseline> kept(const std::string& identity) const {
    const auto text = run_.journal == nullptr ? std::nullopt : run_.journal->kept(identity);
    return text ? record_of_text<FoundBaseline>(*text) : std::nullopt;
  }

  [[nodiscard]] std::optional<FoundBaseline> searched(const Study& study, const Value& root, std::size_t point) {
    const TuneRun run{.jobs = run_.search.jobs,
                      .stop = run_.search.stop,
                      .clock = run_.search.clock,
                      .report = [&](TuneProgress progress) { tell(std::move(progress), point); }};
    const std::optional<TuneResult> tuned = tune(study, root, catalog_, run);
    if (!tuned) return std::nullopt;
    return FoundBaseline{tuned->candidates.front().text, to_yaml(tuned->winner)};
  }

  void tell(TuneProgress progress, std::size_t point) const {
    const auto points = static_cast<std::int64_t>(points_.size());
    progress.stage =
        fmt::format("tuning {}, point {} of {}, {}", *study_.compare_to, point + 1, points, progress.stage);
    for (TuneWork& work : progress.work) {
      work.done += work.expected * static_cast<std::int64_t>(point);
      work.expected *= points;
    }
    run_.search.report(progress);
  }

  const Study& study_;
  Catalog& catalog_;
  const BaselineRun& run_;
  std::vector<SweepPoint> points_;
  std::map<std::string, Run> runs_;  // by tuning_identity()
};

}  // namespace

std::optional<std::vector<Baseline>> tuned_baselines(const Study& study, const Value& root, Catalog& catalog,
                                                     const BaselineRun& run) {
  return BaselineSearch(study, root, catalog, run).run();
}

bool compare_with_tuned(const Study& study, const Value& root, Catalog& catalog, const BaselineRun& run,
                        std::vector<Run>& runs) {
  if (!study.tunes_baseline) return true;
  const auto baselines = tuned_baselines(study, root, catalog, run);
  if (baselines) compare_with(*baselines, runs);
  return baselines.has_value();
}

}  // namespace hdpsim
