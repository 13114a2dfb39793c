#include "sim/report/trace_notes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

// The word of a study.
std::string_view name_of(Overlong fate) {
  switch (fate) {
    case Overlong::split:
      return "split";
    case Overlong::truncate:
      return "truncate";
    case Overlong::drop:
      return "drop";
  }
  return "";
}

std::string_view what_happens(Overlong fate) {
  switch (fate) {
    case Overlong::split:
      return "are split";
    case Overlong::truncate:
      return "are cut to it";
    case Overlong::drop:
      return "are left out";
  }
  return "";
}

}  // namespace

std::vector<std::string> trace_notes(const TraceUse& use) {
  std::vector<std::string> notes;
  if (use.times_read > 1) {
    notes.push_back(fmt::format("the {} documents of the trace are read {:.3g} times", use.documents, use.times_read));
  }
  if (use.overlong > 0) {
    notes.push_back(
        fmt::format("{} of the {} documents of the trace ({:.2g}%), with {:.2g}% of its tokens, are longer "
                    "than the context of {} and {}",
                    use.overlong, use.documents, 100 * use.overlong_documents, 100 * use.overlong_tokens,
                    count_text(use.context), what_happens(use.fate)));
  }
  return notes;
}

nlohmann::ordered_json trace_json(const TraceUse& use) {
  return {{"documents", use.documents},
          {"times_read", use.times_read},
          {"overlong_documents", use.overlong_documents},
          {"overlong_tokens", use.overlong_tokens},
          {"overlong", name_of(use.fate)}};
}

}  // namespace hdpsim
