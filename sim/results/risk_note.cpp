#include "sim/results/risk_note.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/text.h"

namespace hdpsim {
namespace {

bool is_at_risk(const Run& run) {
  return !run.is_refused() && fit_of(run) == MemoryFit::at_risk;
}

bool is_fuller(const Run* a, const Run* b) {
  return a->metrics.memory.device > b->metrics.memory.device;
}

}  // namespace

std::string risk_lines(const std::vector<Run>& runs) {
  std::vector<const Run*> fullest;  // by plan
  for (const Run& run : runs) {
    if (!is_at_risk(run)) continue;
    const auto same = [&](const Run* other) { return other->info.plan == run.info.plan; };
    const auto known = std::find_if(fullest.begin(), fullest.end(), same);
    if (known == fullest.end()) {
      fullest.push_back(&run);
    } else if (is_fuller(&run, *known)) {
      *known = &run;
    }
  }
  std::string text;
  for (const Run* run : fullest) {
    const auto of_plan = [&](const Run& other) { return other.info.plan == run->info.plan; };
    const auto all = std::count_if(runs.begin(), runs.end(), of_plan);
    const auto count =
        std::count_if(runs.begin(), runs.end(), [&](const Run& each) { return of_plan(each) && is_at_risk(each); });
    const std::string where = all == 1 ? ": " : fmt::format(" at {} of {} points: up to ", count, all);
    text += fmt::format("the memory of {} is at risk{}{}; a smaller mesh.capacity leaves room\n", run->info.plan, where,
                        risk_text(*run));
  }
  return text;
}

std::string not_modelled_savings(const Run& run) {
  const MemoryParts& parts = run.metrics.memory.parts;
  if (run.metrics.memory.device <= run.info.device_memory) return "";
  const Bytes excess = run.metrics.memory.device - run.info.device_memory;
  // Of Adam's 12 bytes a parameter 4 are left, of the gradients half.
  const Bytes of_states = parts[MemoryPart::optimizer].scaled(2.0 / 3) + parts[MemoryPart::gradients].scaled(0.5);
  const Bytes of_loss = parts[MemoryPart::head];
  std::vector<std::string> ways;
  if (of_loss >= excess) ways.emplace_back("a loss in pieces");
  if (of_states >= excess) ways.emplace_back("states in bf16");
  if (ways.empty() && of_loss + of_states >= excess) ways.emplace_back("a loss in pieces and states in bf16");
  return ways.empty() ? "" : fmt::format("it may fit with {}, which is not modelled", joined(ways, ", or with "));
}

}  // namespace hdpsim
