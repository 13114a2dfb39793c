#include "sim/results/result_files.h"

#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/results/csv.h"
#include "sim/results/run_figures.h"

namespace hdpsim {
namespace {

// A run has its figures unless it was refused.
Json run_schema() {
  Json schema = run_figures().schema();
  schema["if"] = {{"required", {"refusal"}}};
  schema["else"] = {{"required", run_figures().names_unless_blank()}};
  return schema;
}

}  // namespace

std::string result_json(const Value& study, std::string_view version, const std::vector<Run>& runs) {
  Json result = {
      {"schema", result_schema_name}, {"hdpsim", version}, {"study", json_of(study)}, {"runs", Json::array()}};
  for (const Run& run : runs) result["runs"].push_back(run_figures().json(run));
  return json_page(result);
}

std::string result_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "The result of a study of hdpsim"}};
  schema.update(object_schema({
      {"schema", {{"const", result_schema_name}}},
      {"hdpsim", {{"description", "Version of the program"}, {"type", "string"}}},
      {"study", {{"description", "Resolved: it gives the same result again"}, {"type", "object"}}},
      {"runs", {{"type", "array"}, {"items", run_schema()}}},
  }));
  return json_page(schema);
}

void write_results(OutputFolder& folder, const Study& study, const std::vector<Run>& runs, std::string_view version) {
  folder.write("study.yaml", to_yaml(study.resolved));
  const std::vector<std::string>& tables = result_table_names();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    folder.write(tables[i] + ".csv", table_csv(static_cast<ResultTable>(i), runs));
  }
  folder.write(result_file, result_json(study.resolved, version, runs));
}

std::vector<std::string> result_file_names() {
  std::vector<std::string> names = {"study.yaml", result_file, "report.html"};
  for (const std::string& table : result_table_names()) names.push_back(table + ".csv");
  return names;
}

}  // namespace hdpsim
