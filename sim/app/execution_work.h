#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/study/study.h"

namespace hdpsim::app {

/// What the devices of a training are.
enum class DeviceKind { cpu, cuda };

struct ExecuteOptions {
  std::string file;
  std::string study;
  std::vector<std::string> overrides;
  std::vector<std::string> plans;  ///< Names; empty: the only one.
  bool all_plans = false;
  std::int64_t point = 0;
  DeviceKind backend = DeviceKind::cpu;
  std::int64_t ranks = 0;  ///< Zero: as many as the plan, the launcher or the study has.
  std::int64_t steps = 1;
  std::int64_t first_step = 0;
  std::int64_t runs = 1;              ///< Of each step; of several, the first only warms up.
  std::string checkpoint;             ///< Empty: none is written.
  std::int64_t checkpoint_every = 0;  ///< Steps; zero: at the end alone.
  bool resume = false;
  std::string out;
  std::vector<std::string> text;
  std::int64_t seed = 1;
  double rate = 3e-4;
  bool pace = false;                          ///< Kernels are timed beside every run.
  Duration patience = Duration::seconds(60);  ///< For a rank that does not move.
};

/// The study behind the steps, and who plans them: some of its policies, or a file for all steps alike.
struct Work {
  Study study;
  const StudyPoint* point = nullptr;
  std::vector<std::size_t> policies;  ///< Of the study; none if the plan is a file.
  std::optional<Plan> plan;

  [[nodiscard]] const Mesh& mesh() const { return point->spec.mesh; }
  [[nodiscard]] std::int64_t ranks() const { return mesh().hdp; }
  /// Threads or processes that run it: tp x pp of them are a rank.
  [[nodiscard]] std::int64_t devices() const { return mesh().devices(); }
  [[nodiscard]] const PipelineOptions& pipeline() const { return point->spec.pipeline; }
  [[nodiscard]] const Transformer& model() const { return point->spec.model; }
  [[nodiscard]] std::size_t plans() const { return plan ? 1 : policies.size(); }
  [[nodiscard]] std::string plan_name(std::size_t which) const;
  /// The names of the plans as those of folders: all different, of letters, digits, '.', '_' and '-' alone.
  [[nodiscard]] std::vector<std::string> folder_names() const;
  /// A plan of a file has other data in every step.
  [[nodiscard]] Plan plan_of(std::size_t which, std::int64_t step) const;
};

/// Finds out what the user wants. `processes`: how many have been started as ranks, if they have. InputError for what
/// is wrong with the files, for a plan of another number of ranks or another model, for a mesh that cannot be executed,
/// and for a checkpoint of what is more than one training.
[[nodiscard]] Work read_work(const ExecuteOptions& options, const std::optional<int>& processes, Catalog& catalog);

}  // namespace hdpsim::app
