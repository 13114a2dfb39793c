#pragma once

#include <map>
#include <string>

#include "sim/import/impl/shell_text.h"

namespace hdpsim {

/// What the lines `#SBATCH --nodes=16` of a script say, by the long names of the options. Of two the last counts.
[[nodiscard]] std::map<std::string, ShellText> slurm_directives(const std::string& script);

/// The variables that Slurm sets for a job of these directives: SLURM_NNODES and the like.
[[nodiscard]] std::map<std::string, ShellText> slurm_variables(const std::map<std::string, ShellText>& directives);

}  // namespace hdpsim
