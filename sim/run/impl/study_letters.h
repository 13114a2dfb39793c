#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/run/run_queue.h"

namespace hdpsim {

/// How often a process checks whether it is to stop, whether another has fallen silent, and process 0 whether its
/// threads have finished.
inline constexpr auto look_around = std::chrono::milliseconds(20);

/// The letters between processes that share a study. A letter is a line and, with `done`, the text of a run:
///   hello STUDY FINGERPRINT JOBS   to process 0: ready for the runs of a study, on JOBS threads
///   run STUDY RUN                  from process 0: simulate this run
///   done STUDY RUN COVERAGE...     to process 0: it is simulated
///   failed STUDY RUN               to process 0: it could not be simulated here
///   over STUDY                     from process 0: no more runs of this study
/// STUDY tells the studies of one command apart.
struct StudyLetter {
  enum class Kind { hello, run, done, failed, over };
  Kind kind = Kind::over;
  int study = 0;
  std::uint64_t fingerprint = 0;
  std::size_t jobs = 0;
  FinishedRun run{};  ///< Only its number is set, except in `done`.
};

[[nodiscard]] std::string to_text(const StudyLetter& letter);
/// The letter of a text; empty if it is not one.
[[nodiscard]] std::optional<StudyLetter> study_letter(std::string_view text);

/// The fingerprint of everything that the runs of a study depend on.
[[nodiscard]] std::uint64_t study_fingerprint(const Study& study, std::string_view version);

}  // namespace hdpsim
