#include "sim/results/trace_notes.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

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

// Which share of the trace the steps have read, or how often they have read it, and in which order.
std::string reading_note(const TraceUse& use) {
  const bool is_shuffled = use.order == TraceOrder::shuffle;
  const std::string again = is_shuffled ? ", each time in the same random order" : "";
  if (use.times_read > 1) {
    return fmt::format("the {} documents of the trace are read {:.3g} times{}", use.documents, use.times_read, again);
  }
  if (use.times_read == 1) {
    return is_shuffled ? fmt::format("the {} documents of the trace are read in random order", use.documents) : "";
  }
  const std::string share = fmt::format("{:.2g}%", 100 * use.times_read);
  switch (use.order) {
    case TraceOrder::shuffle:
      return fmt::format("{} of the trace of {} documents is read, in random order", share, use.documents);
    case TraceOrder::file:
      return fmt::format("the first {} of the trace of {} documents is read", share, use.documents);
    case TraceOrder::steps:
      break;
  }
  return fmt::format("the first {} of the steps of the trace are read", share);
}

}  // namespace

std::vector<std::string> trace_notes(const TraceUse& use) {
  std::vector<std::string> notes;
  if (!use.column.empty()) notes.push_back(fmt::format("lengths are those of the column {}", use.column));
  if (std::string note = reading_note(use); !note.empty()) notes.push_back(std::move(note));
  if (use.halves && use.halves->differ) {
    notes.push_back(halves_note(*use.halves) + (use.order == TraceOrder::file
                                                    ? ": early steps are unlike late ones, unless the study says "
                                                      "data.lengths.order: shuffle"
                                                    : ""));
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
