#pragma once

#include <filesystem>
#include <string>

#include "sim/app/scratch_folder.h"

namespace hdpsim::app {

/// Standard input, read to its end into a temporary file, so that it can be read several times. Its name tells the
/// format that its first bytes show: .npy, .jsonl, or else .csv, with .gz, .zst, .bz2 or .xz if it is compressed.
class StandardInput {
 public:
  /// MachineError if it cannot be read or kept.
  StandardInput();

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  ScratchFolder folder_;
  std::filesystem::path path_;
};

}  // namespace hdpsim::app
