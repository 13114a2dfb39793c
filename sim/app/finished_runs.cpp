#include "sim/app/finished_runs.h"

#include "sim/app/resumable.h"
#include "sim/run/ordered_work.h"

namespace hdpsim::app {

std::optional<std::vector<Run>> finished_runs(
    const Study& study, const std::filesystem::path& folder,
    const std::function<bool(const RunnerOptions& how, std::vector<Run>& runs)>& then) {
  Journal journal;
  if (!folder.empty()) journal = Journal::read(folder / journal_name, runs_title(), damage_notes("simulated again"));
  ProgressDisplay display;
  const RunnerOptions how{.jobs = one_a_processor(),
                          .journal = &journal,
                          .version = version,
                          .stop = is_stopped,
                          .report = [&](const Progress& progress) { display.show(progress); }};
  auto runs = run_study(study, how);
  if (!runs || (then && !then(how, *runs))) return std::nullopt;
  return runs;
}

}  // namespace hdpsim::app
