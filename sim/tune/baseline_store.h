#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/output_folder.h"
#include "sim/base/seal.h"

namespace hdpsim {

/// What a search for the best mesh of a baseline has found.
struct FoundBaseline {
  std::string choices;  ///< What it has chosen, in a few words.
  std::string study;    ///< YAML of a complete study with the baseline on that mesh as its only plan.
  friend bool operator==(const FoundBaseline&, const FoundBaseline&) = default;
};

/// Found baselines as sealed files (sim/base/seal.h), so that a study which is continued does not search again. A
/// search is identified by everything that its result depends on (tuning_identity).
class BaselineStore {
 public:
  /// The folder must exist. If `output` is given, the folder lies in its folder, and saved files are listed there.
  explicit BaselineStore(std::filesystem::path folder, OutputFolder* output = nullptr)
      : folder_(std::move(folder)), output_(output) {}

  /// What a search has found. Empty if it was not saved, or if its file is damaged or of another search, which is
  /// reported to `tell`.
  [[nodiscard]] std::optional<FoundBaseline> load(std::string_view identity, const TellDamage& tell) const;
  /// MachineError if it cannot be written.
  void save(std::string_view identity, const FoundBaseline& found) const;

 private:
  [[nodiscard]] std::filesystem::path file_of(std::string_view identity) const;

  std::filesystem::path folder_;
  OutputFolder* output_;
};

}  // namespace hdpsim
