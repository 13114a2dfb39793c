#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/analysis/step_result.h"
#include "sim/document/journal.h"
#include "sim/study/study.h"

namespace hdpsim {

/// The title of a journal of runs: a run's key says all that it depends on, so that studies share a journal.
[[nodiscard]] inline JournalTitle runs_title() {
  return {"study", ""};
}

/// The key of a run: the text of everything that it depends on; `version` is that of the program.
[[nodiscard]] std::string run_identity(const Study& study, std::size_t run, std::string_view version);

/// A finished run as JSON in one line; times come back exactly.
[[nodiscard]] std::string run_text(const RunResult& result);
/// The result in a text; empty if it is none.
[[nodiscard]] std::optional<RunResult> run_of_text(std::string_view text);

}  // namespace hdpsim
