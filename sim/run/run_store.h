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

/// Everything that a run of a study depends on; `version` is that of the program.
[[nodiscard]] std::string run_identity(const Study& study, std::size_t run, std::string_view version);

/// A finished run as text, sealed (sim/base/seal.h); times are kept in whole picoseconds and come back exactly.
[[nodiscard]] std::string run_text(std::string_view identity, const RunResult& result);
/// Nothing if it is no text of such a run, or a damaged one.
[[nodiscard]] std::optional<RunResult> run_of_text(std::string_view identity, std::string_view text);

/// Finished runs as files, so that a study that was interrupted goes on where it stopped. A run is known by everything
/// that it depends on.
class RunStore {
 public:
  /// The folder must exist. Runs that are saved go on the list of `output`, whose folder it stands in, if that is given.
  explicit RunStore(std::filesystem::path folder, OutputFolder* output = nullptr)
      : folder_(std::move(folder)), output_(output) {}
  /// One that saves nothing.
  [[nodiscard]] static RunStore reader(std::filesystem::path folder) {
    RunStore store(std::move(folder));
    store.saves_ = false;
    return store;
  }

  /// The file of a run that depends on `identity`.
  [[nodiscard]] std::filesystem::path file_of(std::string_view identity) const;
  /// Nothing if there is no such file, or one that is damaged or of another run, which is told: the run is then
  /// simulated again.
  [[nodiscard]] std::optional<RunResult> load(std::string_view identity, const TellDamage& tell) const;
  /// MachineError if it cannot be written.
  void save(std::string_view identity, const RunResult& result) const;

 private:
  std::filesystem::path folder_;
  OutputFolder* output_;
  bool saves_ = true;
};

}  // namespace hdpsim
