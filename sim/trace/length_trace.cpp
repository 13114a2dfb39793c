#include "sim/trace/length_trace.h"

#include <fmt/format.h>

#include <iterator>

#include "sim/base/diagnostic.h"
#include "sim/document/limits.h"

namespace hdpsim {

LengthTrace collect(LengthSource& source) {
  LengthTrace trace;
  HalvesTally halves;
  while (const auto length = source.next()) {
    if (std::ssize(trace.tokens) == most_loaded_lengths) {
      throw InputError(fmt::format("there are more than {} lengths", most_loaded_lengths),
                       "hdpsim trace convert --to quantiles makes a distribution of them");
    }
    trace.tokens.push_back(length->tokens);
    halves.add(length->tokens);
    if (length->step) trace.steps.push_back(*length->step);
  }
  trace.column = source.column();
  trace.halves = halves.halves();
  if (!trace.steps.empty() && trace.steps.size() != trace.tokens.size()) {
    throw InputError(fmt::format("{} of {} lengths have a step", trace.steps.size(), trace.tokens.size()));
  }
  return trace;
}

}  // namespace hdpsim
