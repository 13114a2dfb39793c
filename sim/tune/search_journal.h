#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/base/growing_file.h"
#include "sim/base/seal.h"
#include "sim/tune/evaluation.h"

namespace hdpsim {

/// The evaluations of a search in a folder, in the order in which the search takes them: search.jsonl, whose first line
/// has `identity`, which says what they depend on. All lines are sealed, the evaluations for that identity. Until the
/// search is finished the file is named search.jsonl.part.
///
/// What a search simulates next depends only on its results so far, and it takes results in one order whatever the
/// number of its threads: given evaluations from here it continues to the same bytes. A process that is killed leaves
/// whole lines and at most a piece of one, which is cut off. Damaged lines are left out: their evaluations are
/// simulated again, and stand in their place when the search is finished.
class SearchJournal {
 public:
  /// Begins anew; removes what another search left in the folder.
  [[nodiscard]] static SearchJournal begin(const std::filesystem::path& folder, std::string_view identity);
  /// Continues with what is in the folder. InputError if it holds no search, or another one; nothing is then changed.
  [[nodiscard]] static SearchJournal resume(const std::filesystem::path& folder, std::string_view identity,
                                            const TellDamage& tell);

  /// The kept evaluation of the same steps of the same candidate; null if there is none. May be called by several
  /// threads.
  [[nodiscard]] const Evaluation* kept(const Evaluation& asked) const;
  /// Takes the next evaluation of the search, whether it was kept or simulated.
  void add(const Evaluation& evaluation);
  /// Gives the file its name, after the last evaluation.
  void finish();

 private:
  using Key = std::tuple<std::size_t, bool, std::vector<std::int64_t>>;  // candidate, closed form, steps
  struct Kept {
    Evaluation evaluation;
    std::size_t place;  ///< Index among the evaluations of the file.
  };
  [[nodiscard]] static Key key_of(const Evaluation& evaluation);

  SearchJournal(std::filesystem::path path, std::string_view identity, std::map<Key, Kept> kept, std::uintmax_t bytes);

  std::filesystem::path path_;
  Seal seal_;
  std::string text_;  ///< The contents of the finished file so far: its header and the evaluations.
  std::map<Key, Kept> kept_;
  std::size_t added_ = 0;
  bool in_order_ = true;  ///< Whether the file begins with this text.
  GrowingFile file_;
};

}  // namespace hdpsim
