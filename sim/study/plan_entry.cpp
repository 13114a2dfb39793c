#include "sim/study/plan_entry.h"

#include <algorithm>

#include "sim/base/quantity_text.h"
#include "sim/plan/planner.h"

namespace hdpsim {
namespace {

// A pool in which every option fits that is not wrong in itself.
PlanningContext roomy_context(const Value& entry) {
  constexpr std::int64_t plenty = std::int64_t{1} << 40;
  constexpr std::int64_t most_ranks = 1'000'000;
  WorkModel work;
  work.offload_per_token = 1;
  work.again_per_token = 0;
  const Value* cp = entry.is_map() && !entry.entries.empty() ? entry.entries.front().value.find("cp") : nullptr;
  const std::int64_t ranks = cp == nullptr ? 1 : parse_count(cp->text).value.value_or(1);
  return {.ranks = std::clamp<std::int64_t>(ranks, 1, most_ranks),
          .ranks_per_node = 1,
          .capacity = plenty,
          .context = 1,
          .layers = 1,
          .work = work,
          .host_tokens = plenty};
}

}  // namespace

void check_plan_entry(const Value& entry, Diagnostics& diagnostics) {
  (void)make_planner(entry, roomy_context(entry), diagnostics);
}

}  // namespace hdpsim
