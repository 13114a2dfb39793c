#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/production/production_run.h"
#include "sim/production/simulated_times.h"

namespace hdpsim {

/// A study without one of its mechanisms (apply_without()), or as it is.
struct ProductionVariant {
  std::string without;  ///< Empty: as it is.
  const Study* study = nullptr;
  const StudyPoint* point = nullptr;
};

/// What happens to every plan of a variant, in the order of its study.
struct VariantRuns {
  std::string without;
  std::vector<ProductionRun> runs;
};

/// The result of a run of hours.
struct ProductionResult {
  std::string study;
  std::string setting;  ///< Model, cluster, mesh and batches, in a few words.
  std::string profile;
  std::vector<std::string> plans;
  std::size_t baseline = 0;  ///< The plan that others are compared with.
  std::int64_t gpus = 0;
  FlopRate peak;  ///< Of a device.
  Bytes device_memory;
  Bytes host_memory;                  ///< A device's share.
  double time_s = 0;                  ///< As the study states it.
  std::vector<VariantRuns> variants;  ///< The first is the study as it is.

  [[nodiscard]] const std::vector<ProductionRun>& runs() const { return variants.front().runs; }
  [[nodiscard]] bool fits(const ProductionRun& run) const {
    return run.device <= device_memory && run.host <= host_memory;
  }
  /// Model FLOPs of the steps that count over those that the GPUs could have done in all of the time.
  [[nodiscard]] double mfu(const ProductionRun& run) const;
};

/// How far runs of hours are.
struct ProductionProgress {
  double share = 0;  ///< Of the hours of all of them.
  std::string what;  ///< The plan, and the mechanism that it runs without.
};

/// How runs of hours are computed, and who hears of it.
struct ProductionWork {
  std::size_t jobs = 1;
  std::function<bool()> stop = [] { return false; };
  std::function<void(const ProductionProgress&)> report = [](const ProductionProgress&) {};
};

/// Runs all plans of all variants, the first of which is the study as it is. All see the same incidents as far as they
/// have them. Empty if it was stopped; what was simulated is in `known`. InputError if a policy has no plan for a step.
[[nodiscard]] std::optional<ProductionResult> produce(const std::vector<ProductionVariant>& variants, Catalog& catalog,
                                                      SimulatedSteps& known, const ProductionWork& work);

}  // namespace hdpsim
