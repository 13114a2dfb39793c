#include "sim/results/trace_notes.h"

#include <fmt/format.h>

#include <string_view>

#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

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
  if (!use.column.empty()) notes.push_back(fmt::format("lengths are those of the column {}", use.column));
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

}  // namespace hdpsim
