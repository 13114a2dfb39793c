#include "sim/fit/next_runs.h"

#include "tests/unit/fit/small_steps.h"

namespace hdpsim {
namespace {

using namespace test;

// The rows are all of one node; so are two of these runs. The second one is of two nodes, between which it reduces its
// gradients.
constexpr char candidates[] = R"(name: candidates
about: a test
source: what could be run
study:
  cluster: {preset: dgx-a100-superpod}
  model: {preset: gpt-1.7b, n_head: 16, n_positions: 1024}
  profile: a100-sxm-published
  framework: {preset: megatron-lm-2021}
  plans: [static]
columns: [case, model.n_layer, model.n_embd, model.n_inner, gpus_per_node, tp, dp, micro_batch, global_batch, sequence, step_time_s]
rows:
  - [deep, 3, 1024, 4096, 2, 1, 2, 1, 4, 1Ki, ~]
  - [two nodes, 2, 4096, 16384, 2, 1, 4, 8, 32, 1Ki, ~]
  - [wide, 3, 4096, 16384, 2, 2, 1, 8, 16, 1Ki, ~]
)";

// Four nodes.
constexpr char asked[] = R"(name: asked
cluster: {preset: dgx-a100-superpod, gpus: 8, node: {gpus: 2, nics: {count: 2}}}
model: {preset: gpt-1.7b, n_head: 16, n_positions: 1024, n_layer: 2, n_embd: 4096, n_inner: 16384}
profile: a100-sxm-published
framework: {preset: megatron-lm-2021}
data: {lengths: {fixed: 1024}, context: 8Ki, tokens_per_step: 64Ki, steps: 1}
mesh: {tp: 1, pp: 1, hdp: 8, capacity: 8Ki}
plans: [static]
)";

const std::vector<std::string> parameters = {"gemm", "link_between_nodes"};

FitRequest asking(ValidationSet rows, const std::string& study) {
  FitRequest request = request_of(std::move(rows), parameters);
  request.next = NextRequest{set_of(candidates, FigureUse::to_measure), "candidates.yaml", study};
  return request;
}

// What the fitted profile predicts of a candidate, as a row of a set.
ValidationCase as_predicted(const FitResult& result, const std::string& name) {
  std::vector<Hidden> fitted;
  for (const std::string& parameter : parameters) fitted.push_back({parameter, parameter_of(result, parameter).value});
  ValidationSet all = measured(set_of(candidates, FigureUse::to_measure), fitted, 0, 1);
  for (ValidationCase& one : all.cases) {
    if (one.name == name) return std::move(one);
  }
  FAIL("no candidate " << name);
  return {};
}

TEST_CASE("of candidates the one is chosen that knows what the rows do not and the study needs", "[fit]") {
  const StudyFile study(asked);
  const ValidationSet rows = measured(set_of(small_rows), {{"gemm", 0.9}}, 0.02, 5);
  const auto before = fit_to_steps(asking(rows, study.path()));
  REQUIRE(before);
  REQUIRE(before->next);
  const NextRuns& next = *before->next;
  CHECK_FALSE(parameter_of(*before, "link_between_nodes").determined);
  REQUIRE(next.runs.size() == 3);
  CHECK(next.at_place(1) == &next.runs.front());
  CHECK(next.runs.front().name == "two nodes");
  CHECK(next.runs.front().parameter == "link_between_nodes");
  CHECK(next.runs.front().share < 0.8);
  // The others see the rate of products alone, which the rows know already.
  for (std::size_t i = 1; i < next.runs.size(); ++i) {
    CHECK(next.runs[i].share > 0.95);
    CHECK(next.runs[i].share <= 1);
    CHECK(next.runs[i].parameter == "gemm");
  }
  REQUIRE(next.at_place(2) != nullptr);
  REQUIRE(next.steps.size() == 1);
  const StepKnowledge& step = next.steps.front();
  CHECK(step.run == "static");
  CHECK(step.after_both <= step.after_first);
  CHECK(next.width == Approx(step.reach * step.now));
  CHECK(next.width_after.front() == Approx(step.reach * step.after_first));
  CHECK(step.low(step.now) * step.high(step.now) == Approx(step.step_time_s * step.step_time_s));

  // Measured as foretold, the run moves no parameter, so that a fit with it has the same slopes. Two things differ. The
  // scale of the residuals, with one row more: the true deviation lies between those of either scale. And the point, by
  // a twentieth of a deviation at most, where a fit ends: a step's slope in the logarithm of a rate is the share p of
  // its time, which changes by p (1 - p) <= 1 / 4 per unit, times 0.69 / 20 at most, of slopes of about a half: 2 %.
  ValidationSet more = rows;
  more.cases.push_back(as_predicted(*before, "two nodes"));
  const auto after = fit_to_steps(asking(more, study.path()));
  REQUIRE(after);
  const double scales = after->scale / before->scale;
  const double ratio = after->next->steps.front().now / step.after_first;
  CAPTURE(scales, ratio, step.now, step.after_first);
  CHECK(ratio > 0.98 * std::min(1.0, scales));
  CHECK(ratio < 1.02 * std::max(1.0, scales));
  CHECK(parameter_of(*after, "link_between_nodes").determined);
}

TEST_CASE("without a study the run is chosen that tells most of all parameters", "[fit]") {
  const auto result = fit_to_steps(asking(measured(set_of(small_rows), {{"gemm", 0.9}}, 0.02, 5), ""));
  REQUIRE(result);
  const NextRuns& next = *result->next;
  CHECK(next.steps.empty());
  CHECK(next.runs.front().name == "two nodes");
  CHECK(next.width > next.width_after[0]);
  CHECK(next.width_after[0] > next.width_after[1]);
}

TEST_CASE("a study of another profile is refused: the rows say nothing of it", "[fit]") {
  std::string other = asked;
  const std::string profile = "a100-sxm-published";
  other.replace(other.find(profile), profile.size(), "bytescale-implied");
  const StudyFile study(other);
  try {
    (void)fit_to_steps(asking(set_of(small_rows), study.path()));
    FAIL("it was not refused");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(),
               Catch::Contains("its profile is bytescale-implied, and the fit is one of a100-sxm-published"));
  }
}

TEST_CASE("candidates need no figures, but a plan", "[fit]") {
  std::string text = candidates;
  text.replace(text.find(", step_time_s]"), 14, "]");
  while (text.find(", ~]") != std::string::npos) text.replace(text.find(", ~]"), 4, "]");
  const ValidationSet set = set_of(text, FigureUse::to_measure);
  REQUIRE(set.cases.size() == 3);
  REQUIRE(set.cases[0].published.size() == 1);
  CHECK(set.cases[0].published[0].quantity == Quantity::step_time);

  const StudyFile as_rows(candidates);
  Diagnostics problems;
  CHECK_FALSE(load_validation_set(as_rows.path(), problems));
  CHECK_THAT(problems.text(), Catch::Contains("nothing was published of this case"));

  text.replace(text.find("plans: [static]"), 15, "plans: [static, hdp-naive]");
  const StudyFile two_plans(text);
  Diagnostics of_plans;
  CHECK_FALSE(load_validation_set(two_plans.path(), of_plans, FigureUse::to_measure));
  CHECK_THAT(of_plans.text(), Catch::Contains("no column says of which plan a step would be measured"));
}

}  // namespace
}  // namespace hdpsim
