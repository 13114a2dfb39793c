#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/growing_file.h"
#include "sim/base/seal.h"
#include "sim/replay/step_row.h"

namespace hdpsim {

/// The steps of a replay in a folder: steps.csv, and beside it steps.sums, whose first line identifies what the steps
/// depend on and whose other lines are the checksums of the rows. While steps are missing the files are named
/// steps.csv.part and steps.sums.part. A process that is killed leaves whole steps and at most a piece of one, which is
/// cut off.
class Journal {
 public:
  using Take = std::function<void(const std::vector<StepRow>&)>;

  /// The steps in a folder.
  struct Kept {
    std::int64_t steps = 0;             ///< One more than the last whole step, if there is any.
    std::vector<std::int64_t> missing;  ///< Steps before that which are not whole.
    bool damaged = false;               ///< More is wrong than that the end was cut off.
  };

  /// `identity` says what the steps depend on; `plans` are the names in the rows.
  Journal(std::filesystem::path folder, const std::string& identity, const std::vector<std::string>& plans);

  /// Inspects the folder and changes nothing. InputError if it holds no replay, or another one.
  [[nodiscard]] Kept look(const TellDamage& tell) const;
  /// Writes steps in the places of missing ones: the folder is then as before it was damaged, up to the first step that
  /// is still missing.
  void mend(const std::map<std::int64_t, std::vector<StepRow>>& steps);

  /// Begins anew; removes what another replay left in the folder.
  void begin();
  /// Continues with what is in the folder, from its first step on: `take` gets its whole steps, one after the other.
  /// See look().
  void resume(const Take& take);

  /// Appends the rows of all plans of the next step.
  void append(const std::vector<StepRow>& rows);
  /// Gives the files their names, after the last step.
  void finish();

 private:
  class Scan;
  /// The rows and their checksums as text.
  struct Texts {
    std::string rows;
    std::string sums;
  };
  [[nodiscard]] Texts texts_of(const std::vector<StepRow>& rows) const;
  /// Opens both files for appending after their first `steps` steps, which end at `bytes` in steps.csv.
  void open(std::int64_t steps, std::uintmax_t bytes);
  void write_headers();

  std::filesystem::path folder_;
  std::filesystem::path rows_path_;
  std::filesystem::path sums_path_;
  Seal seal_;
  std::string header_;  ///< The first line of the checksums.
  StepTable table_;
  std::size_t plans_;
  std::optional<GrowingFile> rows_;
  std::optional<GrowingFile> sums_;
};

}  // namespace hdpsim
