#include "sim/trace/length_trace.h"

#include <fmt/format.h>

#include "sim/base/diagnostic.h"

namespace hdpsim {

LengthTrace collect(LengthSource& source) {
  LengthTrace trace;
  while (const auto length = source.next()) {
    trace.tokens.push_back(length->tokens);
    if (length->step) trace.steps.push_back(*length->step);
  }
  if (!trace.steps.empty() && trace.steps.size() != trace.tokens.size()) {
    throw InputError(fmt::format("{} of {} lengths have a step", trace.steps.size(), trace.tokens.size()));
  }
  return trace;
}

}  // namespace hdpsim
