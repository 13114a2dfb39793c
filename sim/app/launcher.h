#pragma once

#include <optional>
#include <string>

namespace hdpsim::app {

/// How this process was started as one of several.
struct Launch {
  int processes = 1;
  std::string advice;  ///< What to look at if the processes do not find each other; may be empty.
};

/// Who has started this process with others: mpirun (Open MPI, MPICH, Intel MPI) or srun. Nothing if it runs alone, as
/// one task of srun does too.
[[nodiscard]] std::optional<Launch> find_mpi_launch();

/// The same for a command whose ranks are devices. Nothing for one process of torchrun either; InputError,
/// with the command that works, if torchrun or another launcher with its variables (RANK, WORLD_SIZE, MASTER_ADDR) has
/// started several: ranks on CPUs meet over MPI.
[[nodiscard]] std::optional<Launch> find_launch();

}  // namespace hdpsim::app
