#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/compare/comparison_output.h"
#include "sim/compare/step_comparison.h"
#include "sim/compare/timeline_file.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/plan_file.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/sane.h"
#include "tests/fuzz/scratch_files.h"

namespace hdpsim::fuzz {
namespace {

constexpr char four_ranks_text[] = R"(name: four-ranks
cluster: {preset: a100-rail-3tier, gpus: 8}
model: {preset: llama-160m, num_hidden_layers: 4}
profile: bytescale-implied
data: {lengths: {preset: github}, context: 4Ki, tokens_per_step: 16Ki, steps: 1, seed: 1}
mesh: {tp: 2, capacity: 1Ki}
plans: [hdp-balance]
)";

const StudyPoint& four_ranks() {
  static const Study study = study_of(four_ranks_text);
  return study.points.front();
}

Timeline simulated(const Plan& plan, Grain grain, bool records) {
  const StudyPoint& point = four_ranks();
  const auto world = point.make_world();
  Machine& machine = world->machine();
  machine.record_instructions = records;
  machine.traffic = nullptr;  // collectives that overlap do not slow each other
  const LoweringOptions lowering = point.lowering();
  const Program program(plan, lowering);
  Timeline timeline = simulate(program, machine, grain);
  require_sane(timeline, *machine.network, grain);
  return timeline;
}

/// Those of other pools cannot run here, nor can all that are large in one execution.
bool is_affordable_plan(const Plan& plan) {
  constexpr std::size_t most_micro_batches = 200;
  constexpr std::int64_t most_tokens = std::int64_t{1} << 24;
  const PointSpec& spec = four_ranks().spec;
  const auto longest = std::max_element(plan.sequence_tokens.begin(), plan.sequence_tokens.end());
  return plan.ranks == spec.mesh.hdp && plan.layers == spec.model.layers && plan.expert_ranks == 1 &&
         plan.micro_batches.size() <= most_micro_batches && longest != plan.sequence_tokens.end() &&
         *longest <= most_tokens;
}

Outcome run_plan(std::string_view input) {
  Diagnostics diagnostics;
  const auto plan = read_plan("plan.json", std::string(input), diagnostics);
  diagnostics.throw_if_any();
  if (!check_plan(*plan).empty()) return Outcome::refused;
  if (!is_affordable_plan(*plan)) return Outcome::skipped;
  const double closed = simulated(*plan, Grain::closed_form, false).step_time.seconds();
  const double exact = simulated(*plan, Grain::exact, false).step_time.seconds();
  const double fluid = simulated(*plan, Grain::fluid, false).step_time.seconds();
  require(closed <= fluid * (1 + 1e-6), "closed form", fmt::format("{} of {} s", closed, fluid));
  require(std::abs(fluid - exact) <= 0.1 * exact, "grains", fmt::format("{} s, exact {} s", fluid, exact));
  const std::string text = plan_text(*plan);
  const auto again = read_plan("again.json", text, diagnostics);
  require(again && plan_text(*again) == text, "plan", "read back it is another one");
  return Outcome::accepted;
}

std::string timeline_of_plan() {
  const StudyPoint& point = four_ranks();
  const Plan plan = make_plan(point, 0, 0, point.batches->step(0));
  return timeline_text({.source = "measured", .plan = plan.policy}, simulated(plan, Grain::exact, true));
}

void require_sane(const Pair& pair, const char* kind) {
  require_number(pair.predicted, 0, kind);
  require_number(pair.measured, 0, kind);
}

void require_sane(const Comparison& comparison) {
  require_sane(comparison.step_time_s, "compared step time");
  for (const FamilyComparison& family : comparison.families) require_sane(family.seconds, "compared family");
  for (const Pair& activity : comparison.activities_s) require_sane(activity, "compared activity");
  for (const RankComparison& rank : comparison.ranks) {
    require_sane(rank.busy_s, "compared rank");
    require_sane(rank.exchange_s, "compared rank");
    require_sane(rank.hidden_s, "compared rank");
    require(rank.hidden_s.measured <= rank.exchange_s.measured * (1 + 1e-9), "compared rank", "hidden");
  }
  require_json(comparison_json({comparison}));
  require_csv(families_csv({comparison}));
  require_csv(compared_ranks_csv({comparison}));
  (void)comparison_table({comparison});
  (void)comparison_page("a comparison", {comparison});
}

// The input as what was measured, then as what was predicted.
Outcome compare(std::string_view input) {
  static const std::string whole = timeline_of_plan();
  const TimelineFile changed = read_timeline("input.jsonl", std::string(input));
  for (const bool is_measured : {true, false}) {
    TimelineFile measured = read_timeline("whole.jsonl", whole);
    TimelineFile predicted = changed;
    if (is_measured) std::swap(measured, predicted);
    predicted.title.source = "predicted";
    StepComparison step("predicted.jsonl", std::move(predicted));
    step.add("measured.jsonl", std::move(measured));
    require_sane(mean_of({step.result()}));
  }
  return Outcome::accepted;
}

}  // namespace

std::vector<Target> timeline_targets() {
  return {
      {"plan_run", ".json", 6, longest_simulation, {"tests/fuzz/corpus/plan/small.json"}, run_plan},
      {"compare", ".jsonl", 8, longest_simulation, {}, compare, timeline_of_plan},
  };
}

}  // namespace hdpsim::fuzz
