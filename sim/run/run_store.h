#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sim/analysis/step_result.h"
#include "sim/base/output_folder.h"
#include "sim/base/seal.h"
#include "sim/study/study.h"

namespace hdpsim {

/// The text of everything that a run of a study depends on; `version` is that of the program.
[[nodiscard]] std::string run_identity(const Study& study, std::size_t run, std::string_view version);

/// A finished run as sealed text (sim/base/seal.h); times are kept in whole picoseconds and come back exactly.
[[nodiscard]] std::string run_text(std::string_view identity, const RunResult& result);
/// The result in a text; empty if the text belongs to another run or is damaged.
[[nodiscard]] std::optional<RunResult> run_of_text(std::string_view identity, std::string_view text);

/// Finished runs as files, so that an interrupted study continues where it stopped. A run is identified by everything
/// that it depends on.
class RunStore {
 public:
  /// The folder must exist. If `output` is given, the folder lies in its folder, and saved runs are listed there.
  explicit RunStore(std::filesystem::path folder, OutputFolder* output = nullptr)
      : folder_(std::move(folder)), output_(output) {}
  /// A store that saves nothing.
  [[nodiscard]] static RunStore reader(std::filesystem::path folder) {
    RunStore store(std::move(folder));
    store.saves_ = false;
    return store;
  }

  /// The file of a run that depends on `identity`.
  [[nodiscard]] std::filesystem::path file_of(std::string_view identity) const;
  /// The saved result of a run. Empty if there is no such file, or if the file is damaged or of another run, which is
  /// reported to `tell`: the run is then simulated again.
  [[nodiscard]] std::optional<RunResult> load(std::string_view identity, const TellDamage& tell) const;
  /// Saves a run. MachineError if it cannot be written.
  void save(std::string_view identity, const RunResult& result) const;

 private:
  std::filesystem::path folder_;
  OutputFolder* output_;
  bool saves_ = true;
};

}  // namespace hdpsim
