#include "sim/run/study_output.h"

#include "sim/report/csv.h"
#include "sim/report/json.h"
#include "sim/report/output_file.h"

namespace hdpsim {

void write_results(const std::filesystem::path& folder, const Study& study, const std::vector<Run>& runs,
                   std::string_view version) {
  write_file(folder / "study.yaml", to_yaml(study.resolved));
  const std::vector<std::string>& tables = result_table_names();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    write_file(folder / (tables[i] + ".csv"), table_csv(static_cast<ResultTable>(i), runs));
  }
  write_file(folder / "result.json", result_json(study.resolved, version, runs));
}

}  // namespace hdpsim
