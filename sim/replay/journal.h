#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/growing_file.h"
#include "sim/replay/step_row.h"

namespace hdpsim {

/// The steps of a replay in a folder: steps.csv, and `identity`, which says what the steps depend on. While steps are
/// missing the file is named steps.csv.part. A process that is killed leaves whole steps and at most a piece of one,
/// which is cut off.
class Journal {
 public:
  using Take = std::function<void(const std::vector<StepRow>&)>;

  /// InputError if the folder holds no replay, another one, or one of more than `steps` steps. Changes nothing.
  static void require_resumable(const std::filesystem::path& folder, std::string_view identity, std::size_t plans,
                                std::int64_t steps);
  /// Begins anew; what another replay left in the folder is removed.
  [[nodiscard]] static Journal begin(const std::filesystem::path& folder, std::string_view identity,
                                     const std::vector<std::string>& plans);
  /// Goes on with what is in the folder, from its first step on: `take` gets the whole steps that are there, one after
  /// the other. See require_resumable().
  [[nodiscard]] static Journal resume(const std::filesystem::path& folder, const std::vector<std::string>& plans,
                                      const Take& take);

  /// All plans of the next step.
  void append(const std::vector<StepRow>& rows);
  /// After the last step: gives the file its name.
  void finish() { file_.finish(); }

 private:
  Journal(StepTable table, GrowingFile file) : table_(std::move(table)), file_(std::move(file)) {}

  StepTable table_;
  GrowingFile file_;
};

}  // namespace hdpsim
