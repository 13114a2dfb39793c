#include "sim/app/launcher.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "sim/base/diagnostic.h"

namespace hdpsim::app {
namespace {

// Open MPI, MPICH and its kin (Hydra, PMI), srun.
constexpr const char* size_variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};

}  // namespace

std::optional<int> launched_processes() {
  for (const char* const name : size_variables) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string_view text = value;
    int size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error == std::errc{} && end == text.data() + text.size() && size >= 1) return size;
  }
  if (std::getenv("TORCHELASTIC_RUN_ID") != nullptr) {
    throw InputError("torchrun has started this process, but ranks on CPUs meet over MPI",
                     "start them with mpirun or srun, or leave it to --ranks");
  }
  return std::nullopt;
}

}  // namespace hdpsim::app
