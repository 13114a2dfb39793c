#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/fit/impl/step_model.h"

namespace hdpsim {

/// Leaves of sets the rows whose name has one of the texts; all rows without texts. Sets without such a row go.
/// InputError if a text is in none.
void choose_rows(std::vector<FitSource>& sets, const std::vector<std::string>& texts);

/// "sc21, korthikanti": what a profile that was fitted to the sets says of them.
[[nodiscard]] std::string names_of(const std::vector<FitSource>& sets);

/// Which of `rows` rows are held out: a share of them, rounded to the nearest number, drawn by the seed.
[[nodiscard]] std::vector<bool> held_out_rows(std::size_t rows, double share, std::uint64_t seed);

/// What rows are held out together in cross-validation.
struct RowGroups {
  std::string by;                  ///< "model", "mesh", "size" or "row": the first in which figures differ.
  std::vector<std::string> names;  ///< Of each figure.
  std::vector<std::size_t>
      folds;  ///< Of each figure, from 0; at most most_folds. One fold: there is nothing to hold out.
};
inline constexpr std::size_t most_folds = 5;
[[nodiscard]] RowGroups groups_of(const std::vector<const MeasuredFigure*>& figures);

/// Throws an InputError that names the rows of one job which contradict each other, if there are any: their figures
/// differ by more than most_spread.
void require_agreement(const StepModel& model, const std::vector<std::size_t>& figures);

}  // namespace hdpsim
