#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/runner.h"
#include "sim/study/catalog.h"
#include "sim/validate/validation_set.h"
#include "sim/validate/validation_summary.h"

namespace hdpsim {

/// A set whose studies have been read: the cases that can be run, as one study with a point per case, and the reasons
/// why the others cannot yet.
struct ValidationStudy {
  ValidationSet set;
  Study study;
  std::vector<std::optional<std::size_t>> points;  ///< The point of the study for each case; empty if it cannot be run.
  std::vector<std::size_t> bases;    ///< The point that its speed-ups are over, where the set has `speedup_over`, or 0.
  std::vector<Value> resolved;       ///< Study::resolved of each case; null if it cannot be run.
  std::vector<std::string> reasons;  ///< Why a case cannot be run; empty if it can.
};

/// What is changed in a study, or in every case of a set, before it is read.
struct StudyChanges {
  std::vector<std::string> set;      ///< `key=value` texts: see apply_overrides().
  std::vector<std::string> without;  ///< Mechanisms: see apply_without().
};

/// Reads a set. InputError with every problem of the file and of all its cases, except for cases that this program
/// cannot simulate yet: these are kept with their reason.
[[nodiscard]] ValidationStudy load_validation(const std::string& path, Catalog& catalog,
                                              const StudyChanges& changes = {});

/// The same for a set that has been read; `path` is its file.
[[nodiscard]] ValidationStudy read_validation(ValidationSet set, const std::string& path, Catalog& catalog,
                                              const StudyChanges& changes = {});

/// What a profile that was fitted to several sets calls a case of one of them: "sc21: gpt-1.7b".
[[nodiscard]] std::string case_in_set(const std::string& set, const std::string& name);

/// Simulates every case that can be run, on as many threads as wanted, and pairs the results with the published
/// figures. A figure to which the case's profile was fitted is marked like those of the set. Empty if it was stopped.
[[nodiscard]] std::optional<std::vector<ValidationRow>> validate(const ValidationStudy& validation,
                                                                 const RunnerOptions& options);

}  // namespace hdpsim
