#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hdpsim::app {

/// How this process was started as one of several.
struct Launch {
  int processes = 1;
  std::string advice;      ///< What to look at if the processes do not find each other; may be empty.
  std::optional<int> own;  ///< Which of them this one is, if the launcher says so.
};

/// What the machine says of one process of a launch.
struct ProcessState {
  int rank = 0;
  std::string words;  ///< Such as "sh, 4711, is stopped".
};

/// Of all processes of this process's launch, in their order, where /proc tells who belongs to it (Open MPI, srun with
/// PMIx); otherwise empty. What runs on other machines, or has ended, is said to be not here.
[[nodiscard]] std::vector<ProcessState> processes_of_launch(const Launch& launch);

/// Who has started this process with others: mpirun (Open MPI, MPICH, Intel MPI) or srun. Nothing if it runs alone, as
/// one task of srun does too.
[[nodiscard]] std::optional<Launch> find_mpi_launch();

/// The same for a command whose ranks are devices. Nothing for one process of torchrun either; InputError,
/// with the command that works, if torchrun or another launcher with its variables (RANK, WORLD_SIZE, MASTER_ADDR) has
/// started several: ranks on CPUs meet over MPI.
[[nodiscard]] std::optional<Launch> find_launch();

}  // namespace hdpsim::app
