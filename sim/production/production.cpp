#include "sim/production/production.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/base/check.h"
#include "sim/replay/replay.h"

namespace hdpsim {
namespace {

std::size_t index_of(const ProductionVariant& variant) {
  return static_cast<std::size_t>(variant.point - variant.study->points.data());
}

ProductionResult described(const ProductionVariant& variant) {
  const Study& study = *variant.study;
  const RunInfo info = study.run_info(index_of(variant), 0);
  return {.study = study.name,
          .setting = info.setting,
          .profile = info.profile,
          .plans = plan_names(study),
          .baseline = baseline_plan(study),
          .gpus = info.gpus,
          .peak = info.peak,
          .device_memory = info.device_memory,
          .host_memory = info.host_memory,
          .time_s = study.production->time_s,
          .variants = {}};
}

/// Runs one plan of a variant after the other.
class Production {
 public:
  Production(const std::vector<ProductionVariant>& variants, Catalog& catalog, SimulatedSteps& known,
             const ProductionWork& work)
      : variants_(variants), catalog_(catalog), known_(known), work_(work) {
    for (const ProductionVariant& variant : variants) all_ += variant.study->plans.size();
  }

  std::optional<ProductionResult> result() {
    ProductionResult result = described(variants_.front());
    for (const ProductionVariant& variant : variants_) {
      VariantRuns done{variant.without, {}};
      for (std::size_t plan = 0; plan < variant.study->plans.size(); ++plan) {
        auto run = run_of(variant, plan);
        if (!run) return std::nullopt;
        done.runs.push_back(std::move(*run));
        ++done_;
      }
      result.variants.push_back(std::move(done));
    }
    return result;
  }

 private:
  std::optional<ProductionRun> run_of(const ProductionVariant& variant, std::size_t plan) {
    const PointSpec& spec = variant.point->spec;
    const ProductionOptions& options = *variant.study->production;
    const Incidents incidents = draw_incidents(options, spec.failures, spec.nodes, spec.cluster,
                                               variant.study->resolved.find("production")->position);
    const std::string what = fmt::format("{}{}{}", variant.study->plans[plan].name,
                                         variant.without.empty() ? "" : " without ", variant.without);
    double share = 0;
    const auto report = [&] { work_.report({(static_cast<double>(done_) + share) / static_cast<double>(all_), what}); };
    const auto times = make_simulated_times(*variant.study, *variant.point, plan, catalog_, known_,
                                            {.jobs = work_.jobs, .stop = work_.stop, .report = report});
    const auto goes_on = [&](double seconds) {
      share = std::min(1.0, seconds / options.time_s);
      report();
      return !work_.stop();
    };
    const auto supply = spec.loading ? make_data_supply(*spec.loading) : nullptr;
    return run_production({.options = options,
                           .failures = spec.failures,
                           .nodes = spec.nodes.count(spec.cluster),
                           .incidents = incidents},
                          *times, supply.get(), goes_on);
  }

  const std::vector<ProductionVariant>& variants_;
  Catalog& catalog_;
  SimulatedSteps& known_;
  const ProductionWork& work_;
  std::size_t all_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

double ProductionResult::mfu(const ProductionRun& run) const {
  return run.model_flops / (run.spent.total_s() * static_cast<double>(gpus) * peak.per_second());
}

std::optional<ProductionResult> produce(const std::vector<ProductionVariant>& variants, Catalog& catalog,
                                        SimulatedSteps& known, const ProductionWork& work) {
  HDPSIM_CHECK(!variants.empty() && variants.front().without.empty(), "the first of {} variants is the study as it is",
               variants.size());
  return Production(variants, catalog, known, work).result();
}

}  // namespace hdpsim
