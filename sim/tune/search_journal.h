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
/// What a search simulates next depends on what it has learnt and on nothing else, and it takes results in one order
/// whatever the number of its threads: given evaluations from here it goes on to the same bytes. A process that is
/// killed leaves whole lines and at most a piece of one, which is cut off. Lines that are damaged are left out: what
/// they held is simulated again, and stands in its place when the search is finished.
class SearchJournal {
 public:
  /// Begins anew; what another search left in the folder is removed.
  [[nodiscard]] static SearchJournal begin(const std::filesystem::path& folder, std::string_view identity);
  /// Goes on with what is in the folder. InputError if it holds no search, or another one; nothing is then changed.
  [[nodiscard]] static SearchJournal resume(const std::filesystem::path& folder, std::string_view identity,
                                            const TellDamage& tell);

  /// What the same steps of the same candidate came to, if that was kept. May be called by several threads.
  [[nodiscard]] const Evaluation* kept(const Evaluation& asked) const;
  /// Takes the next evaluation of the search, whether it was kept or not.
  void add(const Evaluation& evaluation);
  /// After the last one: gives the file its name.
  void finish();

 private:
  using Key = std::tuple<std::size_t, bool, std::vector<std::int64_t>>;  // candidate, closed form, steps
  struct Kept {
    Evaluation evaluation;
    std::size_t place;  ///< Among the evaluations of the file.
  };
  [[nodiscard]] static Key key_of(const Evaluation& evaluation);

  SearchJournal(std::filesystem::path path, std::string_view identity, std::map<Key, Kept> kept, std::uintmax_t bytes);

  std::filesystem::path path_;
  Seal seal_;
  std::string text_;  ///< What the file is when the search has ended: its header, and the evaluations so far.
  std::map<Key, Kept> kept_;
  std::size_t added_ = 0;
  bool in_order_ = true;  ///< The file begins as the text does.
  GrowingFile file_;
};

}  // namespace hdpsim
