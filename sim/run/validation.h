#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/validation.h"
#include "sim/run/runner.h"
#include "sim/study/catalog.h"
#include "sim/study/validation_set.h"

namespace hdpsim {

/// A set whose studies have been read: what can be run as one study, a point a case, and what cannot yet, and why.
struct ValidationStudy {
  ValidationSet set;
  Study study;
  std::vector<std::optional<std::size_t>> points;  ///< Of the study, a case each; nothing: it cannot be run.
  std::vector<std::string> reasons;                ///< Why not, a case each; empty if it can.
};

/// InputError with every problem of the file and of every case of it, but for those that this program cannot simulate
/// yet: these are kept with their reason. `without`: see apply_without(), in every case.
[[nodiscard]] ValidationStudy load_validation(const std::string& path, Catalog& catalog,
                                              const std::vector<std::string>& without = {});

/// Simulates every case that can be, on as many threads as wanted, and lays the published figures beside. Nothing if it
/// was stopped.
[[nodiscard]] std::optional<std::vector<ValidationRow>> validate(const ValidationStudy& validation,
                                                                 const RunnerOptions& options);

}  // namespace hdpsim
