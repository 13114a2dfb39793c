#include "sim/report/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>

#include "sim/base/printable.h"
#include "sim/report/page/report_page.h"
#include "sim/report/trace_events.h"
#include "sim/results/table.h"
#include "sim/roundpipe/streamed_step.h"
#include "sim/run/explain.h"
#include "sim/run/ordered_work.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

constexpr std::int64_t page_step = 0;
// Workers of all runs together that a page explains: each is simulated up to eight times more, which takes half a
// second for a thousand in the fluid grain, and sixteen times that in the exact one.
constexpr std::int64_t most_explained_workers = 4096;
constexpr std::int64_t exact_workers = 16;
// Most records of all ranks together, at 56 bytes each. The simulation keeps them before ranks are chosen.
constexpr std::int64_t most_records = 10'000'000;

// Names of the plans in those of files, in the order of the study.
std::vector<std::string> file_names_of_plans(const Study& study) {
  std::vector<std::string> names;
  for (const StudyPlan& plan : study.plans) names.push_back(plan.name);
  return as_file_names(names);
}

/// Simulates one step of a run again and shows it to its viewers.
class StepViewer {
 public:
  StepViewer(const StudyPoint& point, std::size_t plan) : point_(point), plan_(plan), world_(point.make_world()) {}

  template <class See>
  void view(std::int64_t step, bool instructions, const See& see) {
    const Plan plan = make_plan(point_, plan_, step, point_.batches_of(plan_).step(step));
    const Program program(plan, point_.lowered);
    world_->machine().record_instructions = instructions && can_record(program);
    see(program, simulate_plan(program, *world_, conditions_of(point_)), world_->machine());
  }

 private:
  [[nodiscard]] bool can_record(const Program& program) const {
    return point_.spec.grain == Grain::exact && instructions_of(program) <= most_records;
  }

  const StudyPoint& point_;
  std::size_t plan_;
  std::unique_ptr<World> world_;
};

ShownStep shown_step_on(const Program& program, const Timeline& timeline, const Machine& machine) {
  ShownStep shown = shown_step(program, timeline);
  shown.links = use_by_kind({timeline.links, timeline.other_links}, timeline.step_time, *machine.network);
  return shown;
}

std::vector<RankMemory> memory_over_time(const Program& program, const Timeline& timeline, const DeviceRoom& room,
                                         const WorkModel& work, const std::vector<HdpRank>& ranks) {
  if (is_streamed(program.options().pipeline)) {
    const MemoryUse use = streamed_use(program.options(), program.plan(), room.memory);
    return {constant_memory(use, timeline.step_time)};
  }
  const ConnectionTable connections = connections_of(program.plan(), room.communicators);
  const PlanMemory memory = memory_of(program.pipeline(), program.options(), {&connections, room.per_connection});
  std::vector<RankMemory> shown;
  shown.reserve(ranks.size());
  for (const HdpRank rank : ranks) shown.push_back(memory.over_time(rank, timeline, work));
  return shown;
}

void write_timeline(const std::filesystem::path& path, const StudyPoint& point, std::size_t plan,
                    const PerfettoOptions& wanted, const StudyReportOptions& options) {
  StepViewer(point, plan)
      .view(wanted.step, true, [&](const Program& program, const Timeline& timeline, const Machine& machine) {
        if (point.spec.grain == Grain::exact && timeline.instructions.empty()) {
          options.note(
              fmt::format("{}: more than {} instructions, so it shows micro-batches", path.string(), most_records));
        }
        const DeviceRoom room = point.room;
        const std::vector<RankMemory> memory = memory_over_time(program, timeline, room, point.work, wanted.ranks);
        write_trace_events(path, {{"", program, timeline, &machine, memory, room.memory}},
                           {.ranks = wanted.ranks, .from = wanted.from, .to = wanted.to});
      });
}

std::optional<Description> lengths_of(const StudyPoint& point) {
  LengthTally tally;
  for (std::int64_t step = 0; step < point.spec.steps; ++step) {
    for (const Sequence& sequence : point.batches->step(step).sequences) tally.add(sequence.tokens);
  }
  if (tally.total().count == 0) return std::nullopt;
  return describe(tally);
}

/// Makes the parts of a report one after another, until it is stopped.
class ReportMaker {
 public:
  ReportMaker(const Study& study, const std::vector<Run>& runs, const StudyReportOptions& options)
      : study_(study), runs_(runs), options_(options) {}

  // One after another: a thread would keep the records of all ranks.
  bool write_timelines(OutputFolder& folder) {
    if (!study_.output.perfetto) return true;
    (void)folder.folder("timelines");
    const std::vector<std::string> names = file_names_of_plans(study_);
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      if (options_.stop()) return false;
      if (runs_[run].is_refused()) {
        timelines_.emplace_back();
        continue;
      }
      timelines_.push_back(fmt::format("timelines/point-{}-{}.json.gz", runs_[run].info.point, names[plan_of(run)]));
      write_timeline(folder.file(timelines_.back()), point_of(run), plan_of(run), *study_.output.perfetto, options_);
    }
    return true;
  }

  std::optional<std::string> page(std::string_view version) {
    ReportData data{std::string(version), study_.resolved, runs_, {}, {}, timelines_, {}, options_.advice};
    for (const StudyPoint& point : study_.points) {
      if (options_.stop()) return std::nullopt;
      data.lengths.push_back(lengths_of(point));
    }
    data.steps.resize(runs_.size());
    if (!for_runs(all_runs(), data.steps, [this](std::size_t run) { return step_of(run); })) return std::nullopt;
    data.why.resize(runs_.size());
    if (!for_runs(explained_runs(), data.why, [this](std::size_t run) { return why(run); })) return std::nullopt;
    if (options_.catalog != nullptr) {
      data.tokens =
          tokens_curve(study_, runs_, study_.points.size() - 1, {*options_.catalog, options_.jobs, options_.stop});
    }
    if (options_.stop()) return std::nullopt;
    return report_page(data);
  }

 private:
  [[nodiscard]] const StudyPoint& point_of(std::size_t run) const { return study_.points[run / study_.plans.size()]; }
  [[nodiscard]] std::size_t plan_of(std::size_t run) const { return run % study_.plans.size(); }

  [[nodiscard]] std::vector<std::size_t> all_runs() const {
    std::vector<std::size_t> all(runs_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  // The runs of the last points, which a page opens with, as far as that is cheap.
  [[nodiscard]] std::vector<std::size_t> explained_runs() const {
    std::vector<std::size_t> chosen;
    std::int64_t left = most_explained_workers;
    for (std::size_t point = study_.points.size(); point-- > 0;) {
      left -= cost_of(point);
      if (left < 0) break;
      if (none_ran(point)) continue;
      for (std::size_t plan = 0; plan < study_.plans.size(); ++plan) {
        chosen.push_back(point * study_.plans.size() + plan);
      }
    }
    return chosen;
  }

  // What `make` makes of every one of these runs becomes its element of `all`. False if it was stopped.
  template <class Part, class Make>
  bool for_runs(const std::vector<std::size_t>& runs, std::vector<std::optional<Part>>& all, const Make& make) const {
    const OrderedWork work{.end = std::ssize(runs), .jobs = options_.jobs, .stop = options_.stop};
    const auto make_one = [&](std::int64_t number) { return make(runs[static_cast<std::size_t>(number)]); };
    return run_in_order(
        work, [&] { return make_one; },
        [&](std::int64_t number, std::optional<Part> part) {
          all[runs[static_cast<std::size_t>(number)]] = std::move(part);
        });
  }

  [[nodiscard]] std::optional<ShownStep> step_of(std::size_t run) const {
    if (runs_[run].is_refused()) return std::nullopt;
    std::optional<ShownStep> shown;
    if (options_.shown != nullptr) shown = options_.shown->of(run);
    if (shown) return shown;
    StepViewer(point_of(run), plan_of(run))
        .view(page_step, false, [&](const Program& program, const Timeline& timeline, const Machine& machine) {
          shown = shown_step_on(program, timeline, machine);
        });
    return shown;
  }

  [[nodiscard]] std::optional<Explanation> why(std::size_t run) const {
    const auto point = static_cast<std::int64_t>(run / study_.plans.size());
    Explanation told = explain_run(study_, runs_, run, chosen_step(study_, runs_, {.point = point}));
    told.excess = memory_excess(runs_[run]);
    if (is_advised(run))
      told.advice = advice_for(study_, runs_, run, told.step, {*options_.catalog, 1, options_.stop, 2});
    return told;
  }

  // The runs of the last point, which a page opens with, if that is cheap.
  [[nodiscard]] bool is_advised(std::size_t run) const {
    const std::size_t first = runs_.size() - study_.plans.size();
    if (options_.catalog == nullptr || run < first) return false;
    std::vector<std::size_t> of_point;
    for (std::size_t other = first; other < runs_.size(); ++other) of_point.push_back(other);
    return is_cheap_to_advise(study_, of_point);
  }

  [[nodiscard]] bool none_ran(std::size_t point) const {
    const auto first = runs_.begin() + static_cast<std::ptrdiff_t>(point * study_.plans.size());
    return std::all_of(first, first + std::ssize(study_.plans), [](const Run& run) { return run.is_refused(); });
  }

  // The workers of all plans of a point, as many as they cost in the fluid grain.
  [[nodiscard]] std::int64_t cost_of(std::size_t point) const {
    const std::size_t plans = study_.plans.size();
    std::int64_t workers = 0;
    for (std::size_t plan = 0; plan < plans; ++plan) workers += std::ssize(runs_[point * plans + plan].result.ranks);
    return workers * (study_.points[point].spec.grain == Grain::exact ? exact_workers : 1);
  }

  const Study& study_;
  const std::vector<Run>& runs_;
  const StudyReportOptions& options_;
  std::vector<std::string> timelines_;
};

}  // namespace

void ShownSteps::see(const StepTask& task, const Program& program, const Timeline& timeline, const Machine& machine) {
  if (task.step != page_step) return;
  ShownStep shown = shown_step_on(program, timeline, machine);
  const std::lock_guard lock(mutex_);
  steps_.insert_or_assign(task.run, std::move(shown));
}

std::optional<ShownStep> ShownSteps::of(std::size_t run) const {
  const std::lock_guard lock(mutex_);
  const auto found = steps_.find(run);
  return found == steps_.end() ? std::nullopt : std::optional(found->second);
}

bool write_report(OutputFolder& folder, const Study& study, const std::vector<Run>& runs, std::string_view version,
                  const StudyReportOptions& options) {
  ReportMaker maker(study, runs, options);
  if (!maker.write_timelines(folder)) return false;
  if (!study.output.html) return true;
  const auto page = maker.page(version);
  if (page) folder.write("report.html", *page);
  return page.has_value();
}

std::optional<std::string> study_page(const Study& study, const std::vector<Run>& runs, std::string_view version,
                                      const StudyReportOptions& options) {
  return ReportMaker(study, runs, options).page(version);
}

}  // namespace hdpsim
