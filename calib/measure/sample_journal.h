#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calib/fit/samples.h"
#include "calib/measure/sample_file.h"
#include "calib/measure/subject.h"
#include "sim/document/journal.h"

namespace hdpsim::calib {

/// The conditions that all measurements of one journal share: the device and the program that measured it.
struct SampleTitle {
  std::string program;  ///< Version, and the commit where it is known.
  std::string plan;     ///< The wishes in words: another plan has other subjects.
  Circumstances circumstances;
};

/// The measurements of a calibration in a journal, each written as soon as it is made: whatever happens to the process,
/// no measurement is lost.
class SampleJournal {
 public:
  /// Starts a journal and replaces an earlier one. MachineError if the file cannot be written.
  [[nodiscard]] static SampleJournal start(const std::filesystem::path& path, const SampleTitle& title);
  /// Continues one, see Journal::resume(): InputError if it is of another device, program or plan.
  [[nodiscard]] static SampleJournal resume(const std::filesystem::path& path, const SampleTitle& title,
                                            const TellDamage& tell);

  [[nodiscard]] const std::vector<Measurement>& measurements() const { return measurements_; }
  /// After resuming those of the first execution.
  [[nodiscard]] const Circumstances& circumstances() const { return circumstances_; }

  /// Adds a measurement and hands it to the operating system. MachineError if that fails.
  void add(const Measurement& measurement);

 private:
  SampleJournal(Journal journal, const SampleTitle& title);

  Journal journal_;
  Circumstances circumstances_;
  std::vector<Measurement> measurements_;
};

/// Whether a file is the journal of a calibration.
[[nodiscard]] bool is_sample_journal(const std::string& path);

/// What a journal holds, whatever program and plan it is of. Damaged lines are reported. Empty, without a report, if
/// the file is no journal of a calibration.
[[nodiscard]] std::optional<SampleFile> read_sample_journal(const std::string& path, Diagnostics& diagnostics);

}  // namespace hdpsim::calib
