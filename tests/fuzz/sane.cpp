#include "tests/fuzz/sane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/results/csv.h"
#include "sim/results/format.h"
#include "sim/run/run_record.h"
#include "sim/run/runner.h"

namespace hdpsim::fuzz {
namespace {

constexpr double rounding = 1e-6;
// On random studies 2 %, with few exceptions of up to 9.5 % (tests/property/grains_agree.cpp); mutations look for them.
constexpr double grains_differ = 0.1;

void require_parts(const Breakdown& breakdown, Duration time, const char* kind) {
  for (const Activity activity : all_activities) {
    require(breakdown[activity] >= Duration{}, kind,
            fmt::format("{} s of {}", breakdown[activity].seconds(), activity_name(activity)));
  }
  require(breakdown.total() == time, kind,
          fmt::format("parts of {} s in a step of {} s", breakdown.total().seconds(), time.seconds()));
}

void require_step(const StepResult& step) {
  require(step.time > Duration{}, "step time", fmt::format("{} s", step.time.seconds()));
  require_parts(step.mean, step.time, "breakdown");
  const BusyTimes& busy = step.busy;
  const bool ordered = Duration{} <= busy.min && busy.min <= busy.mean && busy.mean <= busy.max;
  require(ordered && busy.max <= step.time, "busy time",
          fmt::format("{} to {} s in {} s", busy.min.seconds(), busy.max.seconds(), step.time.seconds()));
  require(step.tokens > 0, "tokens", fmt::format("{}", step.tokens));
  const bool is_memory = step.memory.device >= Bytes{} && step.memory.host >= Bytes{};
  require(is_memory, "memory", fmt::format("{} and {} B", step.memory.device.count(), step.memory.host.count()));
}

void require_shares(const RunMetrics& metrics) {
  double sum = 0;
  for (const double share : metrics.evidence) {
    require_number(share, 0, "evidence");
    sum += share;
  }
  require(std::abs(sum - 1) <= rounding, "evidence", fmt::format("shares sum to {}", sum));
}

void require_run(const Run& run, const PointSpec& spec) {
  for (const StepResult& step : run.result.steps) require_step(step);
  const RunMetrics& metrics = run.metrics;
  require(metrics.mfu > 0 && metrics.mfu <= 1 + rounding, "MFU", fmt::format("{}", metrics.mfu));
  const double tokens = metrics.tokens_per_s * metrics.step_time_s.mean;
  const auto of_batch = static_cast<double>(run.result.steps.front().tokens);
  require(std::abs(tokens - of_batch) <= rounding * of_batch, "rate",
          fmt::format("{} tokens in a batch of {}", tokens, of_batch));
  require_shares(metrics);
  if (metrics.speedup) require_number(metrics.speedup->mean, 0, "speed-up");
  if (metrics.goodput) {
    require_number(metrics.goodput->share, 0, "goodput");
    require(metrics.goodput->share <= 1, "goodput", fmt::format("{}", metrics.goodput->share));
    require_number(metrics.goodput->simulated, 0, "goodput");
  }
  for (const LinkUse& link : run.result.links) {
    require(link.utilisation + link.other_utilisation <= 1 + rounding || spec.grain == Grain::closed_form, "link",
            fmt::format("{} is used {} + {}", link.name, link.utilisation, link.other_utilisation));
  }
}

// What differs between two executions are processor seconds.
std::string lasting_text(RunResult result) {
  for (StepResult& step : result.steps) step.phases = {};
  return run_text(result);
}

void require_outputs(const Study& study, const std::vector<Run>& runs) {
  require_json(formatted(runs, study.resolved, "0", Format::json));
  (void)formatted(runs, study.resolved, "0", Format::table);
  for (std::size_t table = 0; table < result_table_names().size(); ++table) {
    require_csv(table_csv(static_cast<ResultTable>(table), runs));
  }
}

void require_runs(Study& study) {
  for (StudyPoint& point : study.points) point.spec.steps = 1;
  const std::vector<Run> runs = *run_study(study, {});
  for (std::size_t run = 0; run < runs.size(); ++run) {
    require_run(runs[run], study.points[run / study.plans.size()].spec);
  }
  const std::vector<Run> again = *run_study(study, {});
  for (std::size_t run = 0; run < runs.size(); ++run) {
    require(lasting_text(runs[run].result) == lasting_text(again[run].result), "repetition", "another result");
  }
  require_outputs(study, runs);
}

/// Events of the exact grain: those of every rank, layer and ring step.
double exact_work(const Plan& plan, const PointSpec& spec) {
  double work = 0;
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    const auto ranks = static_cast<double>(micro_batch.group.size());
    work += ranks * ranks * static_cast<double>(plan.layers * spec.mesh.pp);
  }
  return work;
}

void require_tokens(const Plan& plan, const Batch& batch) {
  std::int64_t planned = 0;
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    for_each_span(micro_batch, [&](const Span& span) { planned += span.tokens; });
  }
  require(planned == batch.tokens(), "tokens", fmt::format("{} of {} are planned", planned, batch.tokens()));
}

void require_grains(StudyPoint& point, std::size_t which) {
  constexpr double most_exact_work = 60'000;
  const Batch batch = point.batches->step(0);
  const Plan plan = make_plan(point, which, 0, batch);
  require_tokens(plan, batch);
  const LoweringOptions lowering = point.lowering();
  const Program program(plan, lowering);
  const auto world = point.make_world();
  world->machine().traffic = nullptr;  // collectives that overlap do not slow each other
  const auto time_in = [&](Grain grain) {
    point.spec.grain = grain;
    const Timeline timeline = simulate_plan(program, *world, conditions_of(point));
    require_sane(timeline, *world->machine().network, grain);
    return timeline.step_time.seconds();
  };
  const double fluid = time_in(Grain::fluid);
  const double closed = point.spec.background.empty() ? time_in(Grain::closed_form) : 0;
  require(closed <= fluid * (1 + rounding), "closed form", fmt::format("{} s, fluid {} s", closed, fluid));
  if (exact_work(plan, point.spec) > most_exact_work) return;
  const double exact = time_in(Grain::exact);
  require(std::abs(fluid - exact) <= grains_differ * exact, "grains", fmt::format("{} s, exact {} s", fluid, exact));
}

bool is_affordable_point(const PointSpec& spec) {
  constexpr std::int64_t most_devices = 256;
  constexpr std::int64_t most_layers = 100;
  constexpr std::int64_t most_tokens = std::int64_t{4} << 20;
  constexpr std::int64_t most_micro_batches = 2'000;
  const bool is_small = spec.cluster.devices <= most_devices && spec.model.layers <= most_layers &&
                        spec.batch.tokens_per_step <= most_tokens &&
                        spec.batch.tokens_per_step / most_micro_batches <= spec.capacity;
  return is_small && std::all_of(spec.background.begin(), spec.background.end(), [](const BackgroundSpec& other) {
           return other.job == nullptr || is_affordable_point(*other.job);
         });
}

}  // namespace

void require(bool holds, const char* kind, const std::string& text) {
  if (!holds) throw Find(kind, text);
}

void require_number(double number, double least, const char* kind) {
  require(std::isfinite(number) && number >= least, kind, fmt::format("{}", number));
}

void require_sane(const Timeline& timeline, const NetworkModel& network, Grain grain) {
  require(timeline.step_time > Duration{}, "step time", fmt::format("{} s", timeline.step_time.seconds()));
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    require_parts(timeline.ranks[rank], timeline.step_time, "breakdown");
    require(timeline.busy(rank) <= timeline.step_time, "busy time", fmt::format("rank {}", rank));
  }
  for (const MicroBatchInterval& interval : timeline.micro_batches) {
    const bool is_inside = interval.begin <= interval.end && interval.end.since_start() <= timeline.step_time;
    require(is_inside, "micro-batch", fmt::format("{} s", interval.end.since_start().seconds()));
  }
  for (std::size_t link = 0; grain != Grain::closed_form && link < timeline.links.bytes.size(); ++link) {
    const auto bytes = static_cast<double>(timeline.links.bytes[link].count());
    const auto rate = static_cast<double>(network.link_rate(LinkId(link)).bytes_per_second());
    require(bytes >= 0 && bytes <= rate * timeline.step_time.seconds() * (1 + rounding) + 1, "link",
            fmt::format("{} B over {} of {} B/s in {} s", bytes, network.link_name(LinkId(link)), rate,
                        timeline.step_time.seconds()));
  }
}

void require_json(const std::string& text) {
  require(nlohmann::json::accept(text), "JSON", text.substr(0, 200));
}

void require_csv(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::string cell;
    while (std::getline(cells, cell, ',')) {
      const bool is_number = cell != "nan" && cell != "-nan" && cell != "inf" && cell != "-inf";
      require(is_number, "CSV", line.substr(0, 200));
    }
  }
}

bool is_affordable(const Study& study) {
  constexpr std::size_t most_runs = 12;
  constexpr std::size_t most_sequences = 4'000;
  return study.run_count() <= most_runs &&
         std::all_of(study.points.begin(), study.points.end(), [](const StudyPoint& point) {
           return is_affordable_point(point.spec) && point.batches->step(0).sequences.size() <= most_sequences;
         });
}

Outcome run_sanely(Study study) {
  if (!is_affordable(study)) return Outcome::skipped;
  require_runs(study);
  for (StudyPoint& point : study.points) {
    for (std::size_t plan = 0; plan < study.plans.size(); ++plan) require_grains(point, plan);
  }
  return Outcome::accepted;
}

}  // namespace hdpsim::fuzz
