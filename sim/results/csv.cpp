#include "sim/results/csv.h"

#include <algorithm>
#include <array>

#include "sim/results/run_figures.h"

namespace hdpsim {
namespace {

const RunInfo& info_of(const Run& run) {
  return run.info;
}
template <class Row>
const RunInfo& info_of(const Row& row) {
  return row.run->info;
}

template <class Row>
void write_rows(const std::vector<Run>& runs, const FigureTable<Row>& figures, const std::vector<Row>& rows,
                TableSink& sink) {
  const std::vector<std::size_t> columns = figures.columns_of(rows);
  write_key_names(runs.empty() ? RunInfo{} : runs.front().info, sink);
  figures.write_names(columns, sink);
  sink.end_row();
  for (const Row& row : rows) {
    write_key(info_of(row), sink);
    figures.write_cells(row, columns, sink);
    sink.end_row();
  }
}

void write_runs(const std::vector<Run>& runs, TableSink& sink) {
  write_rows(runs, run_figures(), runs, sink);
}

void write_steps(const std::vector<Run>& runs, TableSink& sink) {
  std::vector<RunStep> rows;
  for (const Run& run : runs) {
    for (const StepResult& step : run.result.steps) rows.push_back({&run, &step});
  }
  write_rows(runs, step_figures(), rows, sink);
}

void write_ranks(const std::vector<Run>& runs, TableSink& sink) {
  const bool names_stages = std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.info.stages > 1; });
  std::vector<RunRank> rows;
  for (const Run& run : runs) {
    for (std::size_t worker = 0; worker < run.result.ranks.size(); ++worker) {
      rows.push_back({&run, worker, names_stages});
    }
  }
  write_rows(runs, rank_figures(), rows, sink);
}

void write_links(const std::vector<Run>& runs, TableSink& sink) {
  std::vector<RunLink> rows;
  for (const Run& run : runs) {
    for (const LinkUse& link : run.result.links) rows.push_back({&run, &link});
  }
  write_rows(runs, link_figures(), rows, sink);
}

void write_memory(const std::vector<Run>& runs, TableSink& sink) {
  std::vector<RunMemory> rows;
  for (const Run& run : runs) {
    for (const RankMemory& rank : run.result.memory.ranks) {
      for (const MemorySample& sample : rank.samples) rows.push_back({&run, &rank, &sample});
    }
  }
  write_rows(runs, memory_figures(), rows, sink);
}

void write_timing(const std::vector<Run>& runs, TableSink& sink) {
  write_rows(runs, timing_figures(), runs, sink);
}

}  // namespace

// The paths of the sweep are the same for all runs of a study.
void write_key_names(const RunInfo& any, TableSink& sink) {
  sink.text("point");
  for (const auto& coordinate : any.coordinates) sink.text(coordinate.path);
  sink.text("plan");
}

void write_key(const RunInfo& info, TableSink& sink) {
  sink.count(static_cast<std::int64_t>(info.point));
  for (const auto& coordinate : info.coordinates) sink.value(coordinate.value);
  sink.text(info.plan);
}

const std::vector<std::string>& result_table_names() {
  static const std::vector<std::string> names = {"runs", "steps", "ranks", "links", "memory", "timing"};
  return names;
}

void write_table(ResultTable table, const std::vector<Run>& runs, TableSink& sink) {
  constexpr std::array writers = {write_runs, write_steps, write_ranks, write_links, write_memory, write_timing};
  writers.at(static_cast<std::size_t>(table))(runs, sink);
}

std::string table_csv(ResultTable table, const std::vector<Run>& runs) {
  return csv_text([&](TableSink& sink) { write_table(table, runs, sink); });
}

}  // namespace hdpsim
