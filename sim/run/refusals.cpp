#include "sim/run/refusals.h"

#include <algorithm>

#include "sim/study/problems.h"

namespace hdpsim {

void require_one_that_ran(const std::vector<const Run*>& runs) {
  if (std::any_of(runs.begin(), runs.end(), [](const Run* run) { return !run->is_refused(); })) return;
  Diagnostics said;
  for (const Run* run : runs) {
    const Refusal& refusal = *run->result.refusal;
    said.error(run->info.place, refusal.message, refusal.help);
  }
  Problems(said).throw_if_any({});
}

}  // namespace hdpsim
