#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/growing_file.h"
#include "sim/tune/evaluation.h"

namespace hdpsim {

/// The evaluations of a search in a folder, in the order in which the search takes them: search.jsonl, whose first line
/// has `identity`, which says what they depend on. Until the search is finished the file is named search.jsonl.part.
///
/// What a search simulates next depends on what it has learnt and on nothing else, and it takes results in one order
/// whatever the number of its threads: given its first evaluations from here it goes on to the same bytes. A process
/// that is killed leaves whole lines and at most a piece of one, which is cut off.
class SearchJournal {
 public:
  /// Begins anew; what another search left in the folder is removed.
  [[nodiscard]] static SearchJournal begin(const std::filesystem::path& folder, std::string_view identity);
  /// Goes on with what is in the folder. InputError if it holds no search, or another one; nothing is then changed.
  [[nodiscard]] static SearchJournal resume(const std::filesystem::path& folder, std::string_view identity);

  /// What the next evaluation of the search came to, if it was kept. Before everything that was kept has been taken
  /// nothing may be appended (checked); it must be of the same candidate and steps (checked).
  [[nodiscard]] std::optional<Evaluation> next(const Evaluation& asked);
  void append(const Evaluation& evaluation);
  /// After the last one: gives the file its name.
  void finish() { file_.finish(); }

 private:
  SearchJournal(std::vector<Evaluation> kept, GrowingFile file) : kept_(std::move(kept)), file_(std::move(file)) {}

  std::vector<Evaluation> kept_;
  std::size_t taken_ = 0;  // of them
  GrowingFile file_;
};

}  // namespace hdpsim
