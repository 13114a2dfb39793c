#include <string>

#include "calib/measure/nccl_tests.h"
#include "sim/app/check_file.h"
#include "sim/base/diagnostic.h"
#include "sim/cluster/impl/nccl_node.h"
#include "sim/compare/timeline_file.h"
#include "sim/explore/session_lines.h"
#include "sim/import/imported_study.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/scheduler_output.h"
#include "sim/validate/step_log.h"
#include "sim/validate/validation_study.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/scratch_files.h"

namespace hdpsim::fuzz {
namespace {

constexpr char yaml[] = ".yaml";
constexpr char json[] = ".json";
constexpr char txt[] = ".txt";
constexpr char csv[] = ".csv";
constexpr char jsonl[] = ".jsonl";
constexpr char npy[] = ".npy";
constexpr char idx[] = ".idx";
constexpr char sh[] = ".sh";
constexpr char toml[] = ".toml";
constexpr std::string_view training = "tests/support/training";

template <app::FileKind kind, const char* extension>
Outcome check(std::string_view input) {
  Catalog catalog = shipped_catalog();
  (void)app::check_file(file_with(std::string("input") + extension, input), kind, catalog);
  return Outcome::accepted;
}

Outcome read_topology(std::string_view input) {
  Diagnostics diagnostics;
  const auto topology = read_nccl_topology("topology.xml", std::string(input), diagnostics);
  diagnostics.throw_if_any();
  (void)node_of_topology(*topology, Value::map(), true, diagnostics);
  diagnostics.throw_if_any();
  return Outcome::accepted;
}

Outcome read_nccl_tests(std::string_view input) {
  Diagnostics diagnostics;
  (void)calib::parse_nccl_tests("all_reduce.txt", std::string(input), diagnostics);
  diagnostics.throw_if_any();
  return Outcome::accepted;
}

Outcome read_one_timeline(std::string_view input) {
  (void)read_timeline("timeline.jsonl", std::string(input));
  return Outcome::accepted;
}

Outcome read_a_question(std::string_view input) {
  (void)read_question(std::string(input));
  return Outcome::accepted;
}

// The study that follows from a training configuration, which says all of what is needed or is refused.
template <const char* extension>
Outcome import_configuration(std::string_view input) {
  Catalog catalog = shipped_catalog();
  const ImportOptions options{.gpus = 64, .vocabulary = 32'000};
  const std::string file = std::string("input") + extension;
  const ImportedStudy study = import_text(file, std::string(input), "study.yaml", options, catalog);
  Diagnostics diagnostics;
  (void)parse_document("study.yaml", study.text, diagnostics);
  if (!diagnostics.empty()) throw Find("unreadable study", diagnostics.text());
  return Outcome::accepted;
}

// Plans that follow from what a scheduler prints are sound but for the capacity, and their files say the same.
template <bool is_lines>
Outcome import_plans(std::string_view input) {
  Diagnostics diagnostics;
  const SchedulerContext context{.policy = "input", .ranks = {}, .capacity = {}, .layers = {}};
  const SchedulerPlans read = read_scheduler_output("input", std::string(input), is_lines, context, diagnostics);
  diagnostics.throw_if_any();
  for (const Plan& plan : read.plans) {
    if (const auto problems = check_plan(plan); problems != over_capacity(plan)) {
      throw Find("unsound plan", problems.front());
    }
    constexpr std::int64_t most_ranks = 10'000;  // a file of more takes longer than an execution may
    if (plan.ranks > most_ranks) return Outcome::skipped;
    const auto again = read_plan("again.json", plan_text(plan), diagnostics);
    if (!again || *again != plan) throw Find("plan", "read back it is another one");
  }
  return Outcome::accepted;
}

// Steps of a log, of which a shipped set says what they have in common.
Outcome read_steps(std::string_view input) {
  const std::string log = file_with("steps.csv", input);
  Diagnostics diagnostics;
  auto set = load_step_log(log, HDPSIM_SOURCE_DIR "/configs/validation/korthikanti.yaml", diagnostics);
  diagnostics.throw_if_any();
  Catalog catalog = shipped_catalog();
  (void)read_validation(std::move(*set), log, catalog);
  return Outcome::accepted;
}

template <app::FileKind kind, const char* extension>
Target checked(std::string_view name, unsigned share, std::vector<std::string_view> seeds = {}) {
  return {name, extension, share, longest_reading, std::move(seeds), check<kind, extension>};
}

}  // namespace

std::vector<Target> reader_targets() {
  Target study = checked<app::FileKind::study, yaml>("study", 10, {"configs/studies"});
  study.longest = 5 * longest_reading;  // the machines of all of its points are made
  return {
      study,
      checked<app::FileKind::plan, json>("plan", 10),
      checked<app::FileKind::cluster, yaml>("cluster", 10, {"configs/clusters"}),
      checked<app::FileKind::model, json>("model", 8, {"configs/models"}),
      checked<app::FileKind::profile, yaml>("profile", 8),
      checked<app::FileKind::validation, yaml>("validation", 8),
      {"step_log", csv, 6, longest_reading, {}, read_steps},
      checked<app::FileKind::lengths, txt>("lengths_text", 6),
      checked<app::FileKind::lengths, csv>("lengths_csv", 8, {"traces"}),
      checked<app::FileKind::lengths, jsonl>("lengths_jsonl", 8),
      checked<app::FileKind::lengths, npy>("lengths_npy", 6),
      checked<app::FileKind::lengths, idx>("lengths_megatron", 6),
      {"nccl_topology", ".xml", 8, longest_reading, {}, read_topology},
      {"nccl_tests", txt, 8, longest_reading, {}, read_nccl_tests},
      {"timeline", jsonl, 8, longest_reading, {}, read_one_timeline},
      {"question", json, 4, longest_reading, {}, read_a_question},
      {"import_plan", json, 8, longest_reading, {}, import_plans<false>},
      {"import_plan_lines", jsonl, 6, longest_reading, {}, import_plans<true>},
      {"import_script", sh, 4, longest_reading, {training, "configs/studies"}, import_configuration<sh>},
      {"import_arguments", yaml, 4, longest_reading, {training}, import_configuration<yaml>},
      {"import_torchtitan", toml, 4, longest_reading, {training}, import_configuration<toml>},
  };
}

}  // namespace hdpsim::fuzz
