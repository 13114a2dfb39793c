#include <nlohmann/json.hpp>

#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/tasks/task_figures.h"
#include "sim/tasks/task_report.h"

namespace hdpsim {
namespace {

std::vector<TaskFigureRow> rows_of(const TaskComparison& comparison) {
  std::vector<TaskFigureRow> rows;
  for (const TaskRow& row : comparison.rows) rows.push_back({&comparison, &row});
  return rows;
}

Json slice_json(const TaskSlice& slice, const std::vector<std::string>& names) {
  Json devices = Json::array();
  for (const DeviceId device : slice.placed) devices.push_back(device.index());
  return {{"run", names[slice.run]},
          {"first", slice.first},
          {"operators", slice.operators},
          {"devices", std::move(devices)}};
}

// Rounds of lanes of waves of slices.
Json plan_json(const TaskPlan& plan, const std::vector<std::string>& names) {
  Json rounds = Json::array();
  for (const TaskRound& round : plan.rounds) {
    Json lanes = Json::array();
    for (const TaskLane& lane : round.lanes) {
      Json waves = Json::array();
      for (const TaskWave& wave : lane.waves) {
        Json slices = Json::array();
        for (const TaskSlice& slice : wave.slices) slices.push_back(slice_json(slice, names));
        waves.push_back(std::move(slices));
      }
      lanes.push_back(std::move(waves));
    }
    rounds.push_back(std::move(lanes));
  }
  return rounds;
}

Json runs_json(const TaskComparison& comparison) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const MetaOp& run = comparison.runs[i];
    runs.push_back({{"run", comparison.names[i]}, {"operators", run.operators}, {"level", run.level}});
  }
  return runs;
}

Json case_json(const TaskComparison& comparison) {
  Json rows = Json::array();
  for (const TaskFigureRow& row : rows_of(comparison)) {
    Json figures = task_row_figures().json(row);
    figures["rounds"] = plan_json(row.row->plan, comparison.names);
    rows.push_back(std::move(figures));
  }
  return {{"case", comparison.label},    {"gpus", comparison.devices},    {"tasks", comparison.tasks},
          {"bound_s", comparison.bound}, {"runs", runs_json(comparison)}, {"rows", std::move(rows)}};
}

}  // namespace

std::string tasks_csv(const std::vector<TaskComparison>& comparisons) {
  std::vector<TaskFigureRow> rows;
  for (const TaskComparison& comparison : comparisons) {
    const std::vector<TaskFigureRow> own = rows_of(comparison);
    rows.insert(rows.end(), own.begin(), own.end());
  }
  return task_row_figures().csv(rows);
}

std::string tasks_json(const std::vector<TaskComparison>& comparisons, const Value& file, std::string_view version) {
  Json cases = Json::array();
  for (const TaskComparison& comparison : comparisons) cases.push_back(case_json(comparison));
  return json_page(
      {{"schema", "hdpsim.tasks/1"}, {"hdpsim", version}, {"file", json_of(file)}, {"cases", std::move(cases)}});
}

}  // namespace hdpsim
