#include "sim/app/launcher.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "sim/base/diagnostic.h"

namespace hdpsim::app {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Nothing for what is no positive number.
std::optional<int> count_of(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

// Open MPI; MPICH, Intel MPI and their kin.
std::optional<Launch> by_mpirun() {
  for (const char* const size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const std::optional<int> processes = count_of(variable(size))) return Launch{*processes, {}};
  }
  return std::nullopt;
}

// One task is a shell that srun has opened as often as it is a rank.
std::optional<Launch> by_srun() {
  const std::optional<int> tasks = count_of(variable("SLURM_STEP_NUM_TASKS"));
  if (!tasks || *tasks == 1) return std::nullopt;
  return Launch{*tasks, "srun joins them with --mpi=pmix or --mpi=pmi2, as MPI was built: srun --mpi=list"};
}

void refuse_torchrun() {
  const std::string_view size = variable("WORLD_SIZE");
  const bool by_variables = !variable("RANK").empty() && !size.empty() && !variable("MASTER_ADDR").empty();
  if (variable("TORCHELASTIC_RUN_ID").empty() && !by_variables) return;
  const std::optional<int> processes = count_of(size);
  if (processes && *processes == 1) return;
  const std::string count = processes ? std::to_string(*processes) : "RANKS";
  throw InputError(
      fmt::format("torchrun or a launcher like it has started this process{}, but ranks on CPUs meet over MPI",
                  processes ? fmt::format(" as one of {}", count) : ""),
      fmt::format("start them with mpirun or srun: mpirun -n {} hdpsim execute ..., or leave it to --ranks {}", count,
                  count));
}

}  // namespace

std::optional<Launch> find_mpi_launch() {
  if (std::optional<Launch> launch = by_mpirun()) return launch;
  return by_srun();
}

std::optional<Launch> find_launch() {
  if (std::optional<Launch> launch = find_mpi_launch()) return launch;
  refuse_torchrun();
  return std::nullopt;
}

}  // namespace hdpsim::app
