#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/run/run_queue.h"

namespace hdpsim {

/// What processes that share a study write to each other. A letter is a line and, with `done`, the text of a run:
///   hello STUDY FINGERPRINT JOBS   to process 0: ready for the runs of a study, on so many threads
///   run STUDY RUN                  from process 0: simulate this one
///   done STUDY RUN COVERAGE...     to process 0
///   failed STUDY RUN               to process 0: it could not be simulated here
///   over STUDY                     from process 0: no more of this study
/// STUDY tells the studies of one command apart.
struct StudyLetter {
  enum class Kind { hello, run, done, failed, over };
  Kind kind = Kind::over;
  int study = 0;
  std::uint64_t fingerprint = 0;
  std::size_t jobs = 0;
  FinishedRun run{};  ///< Its number alone, unless it is done.
};

[[nodiscard]] std::string to_text(const StudyLetter& letter);
/// Nothing if it is no such letter.
[[nodiscard]] std::optional<StudyLetter> study_letter(std::string_view text);

/// Of all that the runs of a study depend on.
[[nodiscard]] std::uint64_t study_fingerprint(const Study& study, std::string_view version);

}  // namespace hdpsim
