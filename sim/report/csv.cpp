#include "sim/report/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>

#include "sim/document/values.h"

namespace hdpsim {
namespace {

/// Builds one table, field by field.
class Table {
 public:
  explicit Table(TableSink& sink) : sink_(sink) {}
  Table& text(std::string_view text) {
    sink_.text(text);
    return *this;
  }
  Table& value(const Value& value) {
    sink_.value(value);
    return *this;
  }
  template <class Number>
  Table& number(Number number) {
    if constexpr (std::is_same_v<Number, bool>) {
      sink_.flag(number);
    } else if constexpr (std::is_integral_v<Number>) {
      sink_.count(static_cast<std::int64_t>(number));
    } else {
      sink_.number(number);
    }
    return *this;
  }
  Table& seconds(Duration duration) { return number(seconds_of(duration)); }
  Table& empty() {
    sink_.nothing();
    return *this;
  }
  Table& texts(std::initializer_list<std::string_view> texts) {
    for (const std::string_view each : texts) text(each);
    return *this;
  }
  Table& breakdown(const Breakdown& breakdown) {
    for (const Activity activity : all_activities) seconds(breakdown[activity]);
    return *this;
  }
  Table& breakdown_names() {
    for (const Activity activity : all_activities) {
      text(fmt::format("{}_s", activity_name(activity)));
    }
    return *this;
  }
  Table& busy_names() { return texts({"busy_min_s", "busy_mean_s", "busy_max_s", "busy_std_s"}); }
  void end_row() { sink_.end_row(); }

 private:
  TableSink& sink_;
};

/// A sink that makes the text of a table.
class CsvText final : public TableSink {
 public:
  void text(std::string_view text) override { add(csv_field(text)); }
  void count(std::int64_t count) override { add_number(count); }
  void number(double number) override { add_number(number); }
  void flag(bool flag) override { add_number(flag); }
  void value(const Value& value) override { text(line_of(value)); }
  void nothing() override { add(""); }
  void end_row() override {
    text_ += '\n';
    row_started_ = false;
  }
  std::string take() { return std::move(text_); }

 private:
  void add(std::string_view field) {
    separate();
    text_ += field;
  }
  template <class Number>
  void add_number(Number number) {
    separate();
    fmt::format_to(std::back_inserter(text_), "{}", number);
  }
  void separate() {
    if (row_started_) text_ += ',';
    row_started_ = true;
  }

  std::string text_;
  bool row_started_ = false;
};

// The paths of the sweep are the same for all runs of a study.
Table& key_names(Table& table, const std::vector<Run>& runs) {
  table.text("point");
  if (!runs.empty()) {
    for (const auto& coordinate : runs.front().info.coordinates) table.text(coordinate.path);
  }
  return table.text("plan");
}

Table& key(Table& table, const RunInfo& info) {
  table.number(info.point);
  for (const auto& coordinate : info.coordinates) table.value(coordinate.value);
  return table.text(info.plan);
}

Table& percentiles(Table& table, const Percentiles& values) {
  return table.number(values.mean).number(values.p5).number(values.p50).number(values.p95);
}

Table& speedup(Table& table, const std::optional<Speedup>& speedup) {
  if (!speedup) return table.empty().empty().empty().empty();
  return table.text(speedup->versus).number(speedup->mean).number(speedup->p5).number(speedup->p95);
}

Table& busy(Table& table, const BusyTimes& busy) {
  return table.seconds(busy.min).seconds(busy.mean).seconds(busy.max).seconds(busy.deviation);
}

Table& memory(Table& table, const MemoryUse& memory) {
  return table.number(memory.device.gigabytes()).number(memory.host.gigabytes());
}

Table& connections(Table& table, const ConnectionUse& use, const MemoryUse& memory) {
  table.number(use.peers).number(use.groups);
  return memory.connections ? table.number(memory.connections->gigabytes()) : table.empty();
}

bool any_has(const std::vector<Run>& runs, bool (*has)(const RunMetrics&)) {
  return std::any_of(runs.begin(), runs.end(), [&](const Run& run) { return has(run.metrics); });
}

// Columns of figures that only some studies ask for: empty for runs without them.
class AskedFor {
 public:
  explicit AskedFor(const std::vector<Run>& runs)
      : trace_(std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.info.trace.has_value(); })),
        goodput_(any_has(runs, [](const RunMetrics& metrics) { return metrics.goodput.has_value(); })),
        uncertainty_(any_has(runs, [](const RunMetrics& metrics) { return metrics.uncertainty.has_value(); })) {}

  void names(Table& table) const {
    if (trace_) table.texts({"trace_times_read", "overlong_documents", "overlong_tokens"});
    if (goodput_) table.texts({"checkpoint_every_steps", "goodput", "goodput_simulated", "goodput_simulated_error"});
    if (!uncertainty_) return;
    for (const char* figure : figures_) {
      for (const char* percent : {"p5", "p50", "p95"}) table.text(fmt::format("{}_{}_resampled", figure, percent));
    }
  }

  void values(Table& table, const Run& run) const {
    const RunMetrics& metrics = run.metrics;
    if (trace_) trace(table, run.info.trace);
    if (goodput_) goodput(table, metrics.goodput);
    if (!uncertainty_) return;
    const std::optional<Uncertainty>& found = metrics.uncertainty;
    interval(table, found ? std::optional(found->step_time_s) : std::nullopt);
    interval(table, found ? std::optional(found->tokens_per_s) : std::nullopt);
    interval(table, found ? std::optional(found->tokens_per_s_per_gpu) : std::nullopt);
    interval(table, found ? std::optional(found->mfu) : std::nullopt);
    interval(table, found ? found->speedup : std::nullopt);
  }

 private:
  static constexpr std::array figures_ = {"step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "speedup"};

  static void trace(Table& table, const std::optional<TraceUse>& use) {
    if (!use) {
      table.empty().empty().empty();
      return;
    }
    table.number(use->times_read).number(use->overlong_documents).number(use->overlong_tokens);
  }

  static void goodput(Table& table, const std::optional<Goodput>& found) {
    if (!found) {
      table.empty().empty().empty().empty();
      return;
    }
    table.number(found->every_steps).number(found->share).number(found->simulated).number(found->simulated_error);
  }

  static void interval(Table& table, const std::optional<Percentiles>& found) {
    if (!found) {
      table.empty().empty().empty();
      return;
    }
    table.number(found->p5).number(found->p50).number(found->p95);
  }

  bool trace_;
  bool goodput_;
  bool uncertainty_;
};

void write_runs(const std::vector<Run>& runs, Table& table) {
  const AskedFor asked_for(runs);
  key_names(table, runs)
      .texts({"gpus", "steps", "step_time_mean_s", "step_time_p5_s", "step_time_p50_s", "step_time_p95_s",
              "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "versus", "speedup_mean", "speedup_p5", "speedup_p95"})
      .breakdown_names()
      .busy_names()
      .texts({"device_peak_gb", "host_peak_gb", "fits", "measured_share", "interpolated_share", "extrapolated_share",
              "formula_share", "events", "peers", "groups", "connections_gb"});
  asked_for.names(table);
  table.end_row();
  for (const Run& run : runs) {
    const RunMetrics& metrics = run.metrics;
    percentiles(key(table, run.info).number(run.info.gpus).number(metrics.steps), metrics.step_time_s)
        .number(metrics.tokens_per_s)
        .number(metrics.tokens_per_s_per_gpu)
        .number(metrics.mfu);
    busy(speedup(table, metrics.speedup).breakdown(metrics.breakdown), metrics.busy);
    memory(table, metrics.memory).number(metrics.fits);
    for (const double share : metrics.evidence) table.number(share);
    connections(table.number(metrics.events), metrics.connections, metrics.memory);
    asked_for.values(table, run);
    table.end_row();
  }
}

void write_steps(const std::vector<Run>& runs, Table& table) {
  key_names(table, runs)
      .texts({"step", "sequences", "tokens", "micro_batches", "step_time_s"})
      .breakdown_names()
      .busy_names()
      .texts({"device_peak_gb", "host_peak_gb", "events", "peers", "groups", "connections_gb"})
      .end_row();
  for (const Run& run : runs) {
    for (const StepResult& step : run.result.steps) {
      key(table, run.info)
          .number(step.step)
          .number(step.sequences)
          .number(step.tokens)
          .number(step.micro_batches)
          .seconds(step.time)
          .breakdown(step.mean);
      memory(busy(table, step.busy), step.memory).number(step.events);
      connections(table, step.connections, step.memory).end_row();
    }
  }
}

void write_ranks(const std::vector<Run>& runs, Table& table) {
  const bool stages = std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.info.stages > 1; });
  key_names(table, runs).text("rank");
  if (stages) table.text("stage");
  table.text("busy_s").breakdown_names().end_row();
  for (const Run& run : runs) {
    const auto pp = static_cast<std::size_t>(run.info.stages);
    for (std::size_t worker = 0; worker < run.result.ranks.size(); ++worker) {
      const Breakdown& breakdown = run.result.ranks[worker];
      const Duration waiting = breakdown[Activity::group_wait] + breakdown[Activity::bubble];
      key(table, run.info).number(worker / pp);
      if (stages) table.number(worker % pp);
      table.seconds(breakdown.total() - waiting).breakdown(breakdown).end_row();
    }
  }
}

void write_links(const std::vector<Run>& runs, Table& table) {
  key_names(table, runs).texts({"link", "gb_per_s", "gb", "utilisation", "other_gb", "other_utilisation"}).end_row();
  for (const Run& run : runs) {
    for (const LinkUse& link : run.result.links) {
      key(table, run.info)
          .text(link.name)
          .number(static_cast<double>(link.rate.bytes_per_second()) / 1e9)
          .number(static_cast<double>(link.bytes.count()) / 1e9)
          .number(link.utilisation)
          .number(static_cast<double>(link.other_bytes.count()) / 1e9)
          .number(link.other_utilisation)
          .end_row();
    }
  }
}

void write_memory(const std::vector<Run>& runs, Table& table) {
  key_names(table, runs).texts({"step", "rank", "time_s", "device_gb", "host_gb"}).end_row();
  for (const Run& run : runs) {
    for (const RankMemory& rank : run.result.memory.ranks) {
      for (const MemorySample& sample : rank.samples) {
        key(table, run.info)
            .number(run.result.memory.step)
            .number(rank.rank.index())
            .seconds(sample.at)
            .number(sample.device.gigabytes())
            .number(sample.host.gigabytes())
            .end_row();
      }
    }
  }
}

void write_timing(const std::vector<Run>& runs, Table& table) {
  key_names(table, runs).texts({"batch_s", "planner_s", "check_s", "simulation_s", "summary_s"}).end_row();
  for (const Run& run : runs) {
    const PhaseTimes& phases = run.metrics.phases;
    key(table, run.info)
        .number(phases.batch_s)
        .number(phases.planner_s)
        .number(phases.check_s)
        .number(phases.simulation_s)
        .number(phases.summary_s)
        .end_row();
  }
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

const std::vector<std::string>& result_table_names() {
  static const std::vector<std::string> names = {"runs", "steps", "ranks", "links", "memory", "timing"};
  return names;
}

void write_table(ResultTable table, const std::vector<Run>& runs, TableSink& sink) {
  constexpr std::array writers = {write_runs, write_steps, write_ranks, write_links, write_memory, write_timing};
  Table cells(sink);
  writers.at(static_cast<std::size_t>(table))(runs, cells);
}

std::string csv_text(const std::function<void(TableSink&)>& write) {
  CsvText text;
  write(text);
  return text.take();
}

std::string table_csv(ResultTable table, const std::vector<Run>& runs) {
  return csv_text([&](TableSink& sink) { write_table(table, runs, sink); });
}

}  // namespace hdpsim
