#pragma once

#include <string>
#include <vector>

#include "sim/results/figure.h"

namespace hdpsim {

/// The figures of one file of results.
struct FigureFile {
  std::string name;  ///< "runs.csv"
  std::vector<FigureText> figures;
};

/// The files that one command writes.
struct FigureSection {
  std::string title;
  std::string note;  ///< What all of them have in common, and where the JSON has their rows.
  std::string json;  ///< The file that has what stands in the paths; empty: there is none.
  std::vector<FigureFile> files;
};

/// The figures of a study's results.
[[nodiscard]] FigureSection study_figures();

/// What is declared of some figures, for a terminal: those that have one of these names as column or path or stand
/// in an object of that path, or all. InputError, with a suggestion, for a name that no figure has.
[[nodiscard]] std::string figure_text(const std::vector<FigureSection>& sections,
                                      const std::vector<std::string>& names);
/// The reference page of all figures, in Markdown: configs/studies/COLUMNS.md.
[[nodiscard]] std::string figure_page(const std::vector<FigureSection>& sections);

}  // namespace hdpsim
