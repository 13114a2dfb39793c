#include "sim/decide/cluster_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/quantity_limits.h"
#include "sim/study/override.h"
#include "sim/study/study_changes.h"

namespace hdpsim {
namespace {

/// Tries sizes of one plan, each once.
class PlanSizeTrials {
 public:
  PlanSizeTrials(const Study& study, std::size_t plan, const ClusterGoal& goal, const StudyPrices& prices,
                 Catalog& catalog, const RunnerOptions& how)
      : root_(study_of_run(study, 0, plan)),
        own_(study.points.front().spec.cluster),
        mesh_(study.points.front().spec.mesh),
        goal_(goal),
        rates_(prices.rates(own_)),
        catalog_(catalog),
        how_(how) {
    found_.plan = study.plans.at(plan).name;
  }

  // Empty if it was stopped.
  std::optional<PlanSizes> search() {
    (void)days_at(own_.devices, false);
    const SizeRange sizes = {own_.devices, step_of_sizes(),
                             std::max(goal_.most_gpus.value_or(limits::most_devices), own_.devices)};
    const auto search = [&](bool surely) {
      return smallest_size(sizes, goal_.days, [&](std::int64_t gpus) { return days_at(gpus, surely); });
    };
    found_.smallest = search(false);
    const auto own = found_.simulated.find(own_.devices);
    const bool has_interval = found_.smallest.gpus && found_.simulated.at(*found_.smallest.gpus).training->sure_days;
    if (has_interval) found_.surest = search(true);
    if (is_stopped_) return std::nullopt;
    const auto first = own == found_.simulated.end() ? std::nullopt : own->second.training;
    for (auto& [gpus, decision] : found_.simulated) decision.over_first = over(decision.training, first);
    return std::move(found_);
  }

 private:
  // The study with so many GPUs; empty, with the reader's reason kept, if it is refused.
  std::optional<Study> sized(std::int64_t gpus) {
    if (found_.refused.contains(gpus)) return std::nullopt;
    Value changed = root_;
    Diagnostics problems;
    apply_overrides(changed, {fmt::format("cluster.gpus={}", gpus)}, problems);
    try {
      problems.throw_if_any();
      Study study = read_study(std::move(changed), catalog_);
      study.points.front().spec.uncertainty.reset();  // which resamples every run, and is not asked for here
      return study;
    } catch (const InputError& error) {
      found_.refused[gpus] = error.diagnostics().sorted().front().message;
      return std::nullopt;
    }
  }

  // Whole nodes and whole pipelines; more where the reader takes neither the next larger nor the next smaller size, as
  // with groups of a fixed number of ranks.
  std::int64_t step_of_sizes() {
    const std::int64_t node = own_.devices % own_.devices_per_node == 0 ? own_.devices_per_node : 1;
    std::int64_t step = std::lcm(node, mesh_.tp * mesh_.pp);
    const auto is_taken = [&](std::int64_t gpus) { return gpus > 0 && sized(gpus).has_value(); };
    while (step < own_.devices && !is_taken(own_.devices + step) && !is_taken(own_.devices - step)) step *= 2;
    return std::min(step, own_.devices);
  }

  std::optional<double> days_at(std::int64_t gpus, bool surely) {
    if (!found_.simulated.contains(gpus)) simulate(gpus);
    const auto known = found_.simulated.find(gpus);
    if (known == found_.simulated.end() || !known->second.training) return std::nullopt;
    const Training& training = *known->second.training;
    return surely && training.sure_days ? training.sure_days->most : training.days;
  }

  void simulate(std::int64_t gpus) {
    if (is_stopped_) return;
    const std::optional<Study> study = sized(gpus);
    if (!study) return;
    try {
      auto runs = run_study(*study, how_);
      is_stopped_ = !runs;
      if (!runs) return;
      Decision& decision = found_.simulated[gpus];
      decision.run = std::make_shared<const Run>(std::move(runs->front()));
      decision.training = training_of(*decision.run, goal_.tokens, rates_);
    } catch (const InputError& error) {  // the policy refuses every run, which is this one
      found_.refused[gpus] = error.diagnostics().sorted().front().message;
    }
  }

  Value root_;
  ClusterSpec own_;
  Mesh mesh_;
  ClusterGoal goal_;
  Rates rates_;
  Catalog& catalog_;
  const RunnerOptions& how_;
  PlanSizes found_;
  bool is_stopped_ = false;
};

}  // namespace

std::optional<std::vector<PlanSizes>> search_clusters(const Study& study, const ClusterGoal& goal,
                                                      const StudyPrices& prices, Catalog& catalog,
                                                      const RunnerOptions& how) {
  const ClusterSpec& cluster = study.points.front().spec.cluster;
  if (const std::int64_t gpus = study.run_info(0, 0).gpus; gpus != cluster.devices) {
    throw InputError(fmt::format("the job trains on {} of the cluster's {} GPUs", gpus, cluster.devices),
                     "to search for the size of a cluster, its job has to have all of it");
  }
  std::vector<PlanSizes> all;
  for (std::size_t plan = 0; plan < study.plans.size(); ++plan) {
    auto found = PlanSizeTrials(study, plan, goal, prices, catalog, how).search();
    if (!found) return std::nullopt;
    all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace hdpsim
