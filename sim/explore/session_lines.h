#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/base/diagnostic.h"
#include "sim/document/document.h"
#include "sim/run/runner.h"
#include "sim/study/study.h"
#include "sim/tune/tune.h"

namespace hdpsim {

/// What the page asks of its session: `{"want": "answer", "set": ["data.context=1Mi"]}`.
struct Question {
  enum class Want {
    answer,  ///< The figures.
    study,   ///< The study as a file.
    report,  ///< The report page of the study.
  };
  Want want = Want::answer;
  std::vector<std::string> set;  ///< Changes of the study, as after --set.
};

/// InputError if the text is not a question.
[[nodiscard]] Question read_question(const std::string& text);

/// The dotted path of the innermost value of a document at a place, `data.context` or `plans.0`: the control of a page
/// that a problem belongs to. Empty if it belongs to the document itself.
[[nodiscard]] std::string path_of_place(const Value& document, const Position& place);

// The lines of JSON that answer a page.

/// `notes` is null as long as only the first step has been simulated.
[[nodiscard]] std::string answer_line(const Study& study, const std::vector<Run>& runs, std::string_view version,
                                      const std::vector<std::string>* notes);
[[nodiscard]] std::string progress_line(const Progress& progress);
[[nodiscard]] std::string progress_line(const TuneProgress& progress);
/// Every problem with the path of the value that it belongs to in the study as changed, and the text that the command
/// prints.
[[nodiscard]] std::string problems_line(const Diagnostics& found, const Value& study);
/// The study as a file. A dropped file, which lies below `dropped`, is named without its folder.
[[nodiscard]] std::string study_line(const Value& resolved, const std::string& dropped);
[[nodiscard]] std::string report_line(const std::string& page);
[[nodiscard]] std::string failure_line(const std::string& text);

}  // namespace hdpsim
