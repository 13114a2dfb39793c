#include "sim/results/result_files.h"

#include "sim/results/csv.h"
#include "sim/results/json.h"

namespace hdpsim {

void write_results(OutputFolder& folder, const Study& study, const std::vector<Run>& runs, std::string_view version) {
  folder.write("study.yaml", to_yaml(study.resolved));
  const std::vector<std::string>& tables = result_table_names();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    folder.write(tables[i] + ".csv", table_csv(static_cast<ResultTable>(i), runs));
  }
  folder.write("result.json", result_json(study.resolved, version, runs));
}

std::vector<std::string> result_file_names() {
  std::vector<std::string> names = {"study.yaml", "result.json", "report.html"};
  for (const std::string& table : result_table_names()) names.push_back(table + ".csv");
  return names;
}

}  // namespace hdpsim
