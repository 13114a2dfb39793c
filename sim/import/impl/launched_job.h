#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/import/impl/shell_text.h"

namespace hdpsim {

/// What the lines `#SBATCH --nodes=16` of a script say, by the long names of the options. Of two the last counts.
[[nodiscard]] std::map<std::string, ShellText> slurm_directives(const std::string& script);

/// The variables that Slurm sets for a job of these directives: SLURM_NNODES and the like.
[[nodiscard]] std::map<std::string, ShellText> slurm_variables(const std::map<std::string, ShellText>& directives);

/// How large a job is by what starts it: srun, mpirun, deepspeed, accelerate, or the lines of Slurm in a script.
struct LaunchedJob {
  std::optional<std::int64_t> processes = {};
  std::optional<std::int64_t> nodes = {};
  std::optional<std::int64_t> per_node = {};

  /// How many GPUs it has, with one for each process; `on_node` are those of a node where it is known otherwise.
  [[nodiscard]] std::optional<std::int64_t> gpus(std::optional<std::int64_t> on_node = {}) const;
};

/// The job of a command, by the words before its program and by directives of Slurm (their long names), of which the
/// words win.
[[nodiscard]] LaunchedJob launched_job(const std::vector<ShellText>& launcher,
                                       const std::map<std::string, ShellText>& directives);

}  // namespace hdpsim
