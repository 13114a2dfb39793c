#include <fmt/format.h>

#include "sim/plan/plan_file.h"
#include "sim/run/step.h"
#include "sim/validate/validation_format.h"
#include "sim/validate/validation_study.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/sane.h"
#include "tests/fuzz/scratch_files.h"

namespace hdpsim::fuzz {
namespace {

/// A study of a tiny model on a few devices; what is missing is said in `rest`.
std::string small_study(std::string_view rest, std::string_view lengths = "{preset: github}") {
  return fmt::format(
      "name: small\ndata: {{lengths: {}, context: 16Ki, tokens_per_step: 64Ki, steps: 1, seed: 3}}\n"
      "mesh: {{capacity: 4Ki}}\nplans: [static, hdp-naive: {{offload: auto}}, hdp-balance: {{offload: "
      "token-wise}}]\n{}",
      lengths, rest);
}

Outcome run_study_itself(std::string_view input) {
  return run_sanely(study_of(input));
}

Outcome run_on_cluster(std::string_view input) {
  const std::string file = file_with("cluster.yaml", input);
  return run_sanely(study_of(small_study(
      fmt::format("cluster: {{file: {}}}\nmodel: {{preset: llama-160m}}\nprofile: bytescale-implied\n", file))));
}

Outcome run_with_profile(std::string_view input) {
  const std::string file = file_with("profile.yaml", input);
  return run_sanely(study_of(small_study(fmt::format(
      "cluster: {{preset: a100-rail-3tier, gpus: 16}}\nmodel: {{preset: llama-160m}}\nprofile: {}\n", file))));
}

Outcome run_model(std::string_view input) {
  const std::string file = file_with("config.json", input);
  return run_sanely(study_of(small_study(fmt::format(
      "cluster: {{preset: a100-rail-3tier, gpus: 16}}\nmodel: {{hf_config: {}}}\nprofile: bytescale-implied\n",
      file))));
}

Outcome run_lengths(std::string_view input) {
  const std::string file = file_with("lengths.csv", input);
  return run_sanely(study_of(small_study(
      "cluster: {preset: a100-rail-3tier, gpus: 16}\nmodel: {preset: llama-160m}\nprofile: bytescale-implied\n",
      fmt::format("{{file: {}}}", file))));
}

// A study whose second plan is that of a file.
std::string planned_study(std::string_view plan) {
  return fmt::format(
      "name: planned\ncluster: {{preset: a100-rail-3tier, gpus: 16}}\nmodel: {{preset: llama-160m}}\n"
      "profile: bytescale-implied\nmesh: {{tp: 2, capacity: 4Ki}}\nplans: [static, {}]\n"
      "data: {{lengths: {{preset: github}}, context: 16Ki, tokens_per_step: 64Ki, steps: 1, seed: 3}}\n",
      plan);
}

Outcome run_given_plan(std::string_view input) {
  return run_sanely(study_of(planned_study(fmt::format("{{file: {}, name: given}}", file_with("plan.json", input)))));
}

std::string plan_of_policy() {
  const Study study = study_of(planned_study("hdp-naive: {offload: auto}"));
  const StudyPoint& point = study.points.front();
  return plan_text(make_plan(point, 1, 0, point.batches->step(0)));
}

Outcome run_validation(std::string_view input) {
  Catalog catalog = shipped_catalog();
  const ValidationStudy set = load_validation(file_with("set.yaml", input), catalog);
  if (!is_affordable(set.study)) return Outcome::skipped;
  const std::vector<ValidationRow> rows = *validate(set, {});
  require_json(formatted(rows, Format::json));
  require_csv(formatted(rows, Format::csv));
  return Outcome::accepted;
}

}  // namespace

std::vector<Target> study_targets() {
  return {
      {"study_run", ".yaml", 10, longest_simulation, {}, run_study_itself},
      {"cluster_run", ".yaml", 8, longest_simulation, {}, run_on_cluster},
      {"profile_run",
       ".yaml",
       8,
       longest_simulation,
       {"calib/profiles/bytescale-implied.yaml", "calib/profiles/a100-sxm-published.yaml"},
       run_with_profile},
      {"model_run",
       ".json",
       6,
       longest_simulation,
       {"configs/models/llama-160m.json", "configs/models/byte-3m.json"},
       run_model},
      {"lengths_run", ".csv", 6, longest_simulation, {}, run_lengths},
      {"given_plan_run", ".json", 6, longest_simulation, {}, run_given_plan, plan_of_policy},
      {"validation_run", ".yaml", 3, longest_simulation, {}, run_validation},
  };
}

}  // namespace hdpsim::fuzz
