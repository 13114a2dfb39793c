#pragma once

#include <string>
#include <vector>

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

}  // namespace hdpsim
