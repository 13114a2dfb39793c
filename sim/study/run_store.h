#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sim/report/step_result.h"

namespace hdpsim {

/// Finished runs as files, so that a study that was interrupted goes on where it stopped. A run is known by everything
/// that it depends on; times are kept in whole picoseconds and come back exactly.
class RunStore {
 public:
  /// The folder must exist.
  explicit RunStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The file of a run that depends on `identity`.
  [[nodiscard]] std::filesystem::path file_of(std::string_view identity) const;
  /// Nothing if there is no such file, or one that is damaged: the run is then simulated again.
  [[nodiscard]] std::optional<RunResult> load(std::string_view identity) const;
  /// MachineError if it cannot be written.
  void save(std::string_view identity, const RunResult& result) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace hdpsim
