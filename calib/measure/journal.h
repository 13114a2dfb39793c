#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "calib/fit/samples.h"
#include "calib/measure/subject.h"
#include "sim/base/seal.h"

namespace hdpsim::calib {

/// The conditions that all measurements of one journal share: the device and the program that measured it.
struct JournalHeader {
  std::string program;  ///< Version, and the commit where it is known.
  std::string plan;     ///< The wishes in words: another plan has other subjects.
  Circumstances circumstances;
};

/// The measurements of a calibration on disk, one JSON line each, written as soon as they are made: whatever happens to
/// the process, no measurement is lost. The first line is the header. All lines are sealed (sim/base/seal.h).
class Journal {
 public:
  /// Starts a journal and replaces an earlier one. MachineError if the file cannot be written.
  [[nodiscard]] static Journal start(const std::filesystem::path& path, const JournalHeader& header);

  /// Continues a journal. A last line that was cut off is dropped, and so is every damaged line, which is reported to
  /// `tell`. InputError if there is no journal, or, with file and line, if it belongs to another device, program or
  /// plan.
  [[nodiscard]] static Journal resume(const std::filesystem::path& path, const JournalHeader& header,
                                      const TellDamage& tell);

  [[nodiscard]] const std::vector<Measurement>& measurements() const { return measurements_; }
  /// The circumstances in the journal's header: after resuming those of the first execution.
  [[nodiscard]] const Circumstances& circumstances() const { return circumstances_; }

  /// Adds a line and hands it to the operating system. MachineError if that fails.
  void add(const Measurement& measurement);

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  Journal(std::filesystem::path path, const JournalHeader& header);
  /// Opens the file for appending after `whole`. If `begins_so` is false, the file is first replaced by `whole`.
  void keep(const std::string& whole, bool begins_so);
  void write(const std::string& text);

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  Circumstances circumstances_;
  Seal seal_;
  std::vector<Measurement> measurements_;
};

}  // namespace hdpsim::calib
