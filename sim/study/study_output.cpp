#include "sim/study/study_output.h"

#include "sim/report/csv.h"
#include "sim/report/json.h"
#include "sim/report/output_file.h"

namespace hdpsim {

void write_results(const std::filesystem::path& folder, const Study& study, const std::vector<Run>& runs,
                   std::string_view version) {
  write_file(folder / "study.yaml", to_yaml(study.resolved));
  write_file(folder / "runs.csv", runs_csv(runs));
  write_file(folder / "steps.csv", steps_csv(runs));
  write_file(folder / "ranks.csv", ranks_csv(runs));
  write_file(folder / "links.csv", links_csv(runs));
  write_file(folder / "memory.csv", memory_csv(runs));
  write_file(folder / "timing.csv", timing_csv(runs));
  write_file(folder / "result.json", result_json(study.resolved, version, runs));
}

}  // namespace hdpsim
