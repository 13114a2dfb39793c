#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hdpsim::app {

/// How this process was started as one of several.
struct Launch {
  int processes = 1;
  std::string advice;      ///< What to check if the processes do not find each other; may be empty.
  std::optional<int> own;  ///< Number of this process, if the launcher tells it.
};

/// The state of one process of a launch, as the machine reports it.
struct ProcessState {
  int rank = 0;
  std::string words;     ///< For example "sh, 4711, is stopped".
  bool is_here = false;  ///< On this machine, and it has not ended.
};

/// The states of all processes of this process's launch, in their order, if /proc tells who belongs to it (Open MPI,
/// srun with PMIx); otherwise empty. Processes that run on other machines, or have ended, are reported as not here.
[[nodiscard]] std::vector<ProcessState> processes_of_launch(const Launch& launch);

/// The launch of this process with others by mpirun (Open MPI, MPICH, Intel MPI) or srun. Empty if it runs alone, also
/// as the only task of srun.
[[nodiscard]] std::optional<Launch> find_mpi_launch();

/// The same for a command whose ranks are devices. Also empty for one process of torchrun; InputError, with the command
/// that works, if torchrun or another launcher with its variables (RANK, WORLD_SIZE, MASTER_ADDR) has started several:
/// ranks on CPUs meet over MPI.
[[nodiscard]] std::optional<Launch> find_launch();

}  // namespace hdpsim::app
