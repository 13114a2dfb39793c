#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/validate/validation_set.h"

namespace hdpsim {

/// Whether a file has steps and nothing of what they have in common: by its name no YAML and no JSON but the
/// trainer_state.json of HuggingFace's trainers.
[[nodiscard]] bool holds_steps_alone(const std::string& path);

/// Reads the steps of a log as a validation set. `path` is a validation set (YAML), a CSV file whose first line names
/// columns as a set's `columns` do and whose other lines are steps (empty cells are as `~`), or the log of a framework
/// (framework_log.h). Steps alone need `like`, a validation set, or a file of its keys without `columns` and `rows`,
/// which says what all steps have in common.
///
/// Lines that differ in figures alone are steps of one job: they become one row with the medians of their
/// figures. Where the middle half of them spreads by more than a quarter, they contradict each other, which is a
/// problem. Every problem is reported, and the result is then empty. Of a log, `told` gets a line for people: how many
/// steps count, their median and spread, and what was left out.
[[nodiscard]] std::optional<ValidationSet> load_step_log(const std::string& path, const std::string& like,
                                                         Diagnostics& diagnostics, FigureUse use = FigureUse::published,
                                                         std::vector<std::string>* told = nullptr);

/// By how much the middle half of steps of one job may spread: the ratio of its ends. Steps of one job differ by a few
/// percent (calib/README.md); a quarter is another job, or another machine.
inline constexpr double most_spread = 1.25;

}  // namespace hdpsim
