#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/study/study.h"

namespace hdpsim::app {

/// The kind of devices in a training.
enum class DeviceKind { cpu, cuda };

struct ExecuteOptions {
  std::string file;
  std::string study;
  std::vector<std::string> overrides;
  std::vector<std::string> plans;  ///< Names of plans; empty: the only one.
  bool all_plans = false;
  std::int64_t point = 0;
  DeviceKind backend = DeviceKind::cpu;
  std::int64_t ranks = 0;  ///< Zero: the number of the plan, the launcher or the study.
  std::int64_t steps = 1;
  std::int64_t first_step = 0;
  std::int64_t runs = 1;              ///< Runs of each step; of several, the first only warms up.
  std::string checkpoint;             ///< Path of the checkpoint; empty: none is written.
  std::int64_t checkpoint_every = 0;  ///< Steps between checkpoints; zero: only at the end.
  bool resume = false;
  std::string out;
  std::vector<std::string> text;
  bool loaders = false;  ///< Processes read the texts.
  std::int64_t seed = 1;
  double rate = 3e-4;
  bool pace = false;                          ///< Time kernels before and after every run.
  Duration patience = Duration::seconds(60);  ///< Longest wait for a rank that does not make progress.
};

/// The study behind the steps, and their plans: some of its policies, or a file for all steps alike.
struct Work {
  Study study;
  const StudyPoint* point = nullptr;
  std::vector<std::size_t> policies;  ///< Policies of the study; empty if the plan is a file.
  std::optional<Plan> plan;

  [[nodiscard]] const Mesh& mesh() const { return point->spec.mesh; }
  [[nodiscard]] std::int64_t ranks() const { return mesh().hdp; }
  /// Threads or processes that run it: tp x pp of them form a rank.
  [[nodiscard]] std::int64_t devices() const { return mesh().devices(); }
  [[nodiscard]] const PipelineOptions& pipeline() const { return point->spec.pipeline; }
  [[nodiscard]] const Transformer& model() const { return point->spec.model; }
  [[nodiscard]] std::size_t plans() const { return plan ? 1 : policies.size(); }
  [[nodiscard]] std::string plan_name(std::size_t which) const;
  /// Folder names for the plans: all different, of letters, digits, '.', '_' and '-' only.
  [[nodiscard]] std::vector<std::string> folder_names() const;
  /// The plan of a step. A plan from a file is reused with other data in every step.
  [[nodiscard]] Plan plan_of(std::size_t which, std::int64_t step) const;
  /// How many times longer the kernels of each device of the study's cluster take in a step, by the study's `faults`;
  /// empty if it has none.
  [[nodiscard]] std::vector<double> slowdowns(std::int64_t step) const;
};

/// Reads what the user asks for. `processes` is the number of ranks that were started as processes, if they were.
/// InputError for problems of the files, for a plan with another number of ranks or another model, for a mesh that
/// cannot be executed, and for a checkpoint of more than one training.
[[nodiscard]] Work read_work(const ExecuteOptions& options, const std::optional<int>& processes, Catalog& catalog);

}  // namespace hdpsim::app
