#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-") == std::string::npos;
}

std::string columns_help(const std::vector<std::string>& names, const std::string& wanted) {
  const std::string best = closest(wanted, names);
  return fmt::format("{}the columns are: {}", best.empty() ? "" : fmt::format("did you mean '{}'? ", best),
                     fmt::join(names, ", "));
}

}  // namespace

LengthColumns choose_columns(const std::vector<std::string>& names, const TraceOptions& options, const TextPlace& place,
                             FileProblems& problems) {
  LengthColumns chosen{options.column, options.step_column};
  for (const std::string& wanted : {chosen.length, chosen.step}) {
    if (wanted.empty() || contains(names, wanted)) continue;
    problems.add(place, fmt::format("there is no column '{}'", wanted), columns_help(names, wanted));
  }
  if (chosen.length.empty()) {
    if (contains(names, "length")) {
      chosen.length = "length";
    } else if (contains(names, "tokens")) {
      chosen.length = "tokens";
    } else if (names.size() == 1 && is_number(names.front())) {
      problems.add(place, "the first line does not name a column",
                   "a file of one length a line has the format 'lines'");
    } else if (names.size() == 1) {
      chosen.length = names.front();
    } else {
      problems.add(place, "which column holds the lengths?", columns_help(names, ""));
    }
  }
  problems.throw_if_any();
  if (chosen.step.empty() && chosen.length != "step" && contains(names, "step")) chosen.step = "step";
  return chosen;
}

}  // namespace hdpsim
