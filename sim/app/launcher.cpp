#include "sim/app/launcher.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "sim/app/environment.h"
#include "sim/base/diagnostic.h"

namespace hdpsim::app {
namespace {

// Empty for a text that is not a number, or is less than `least`.
std::optional<int> number_of(std::string_view text, int least) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < least) return std::nullopt;
  return count;
}

// Detects Open MPI, MPICH, Intel MPI and related ones.
std::optional<Launch> by_mpirun() {
  for (const auto& [size, own] :
       {std::pair{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, {"PMI_SIZE", "PMI_RANK"}}) {
    if (const std::optional<int> processes = number_of(environment_variable(size), 1)) {
      return Launch{*processes, {}, number_of(environment_variable(own), 0)};
    }
  }
  return std::nullopt;
}

// One task may also be a shell of srun, which cannot be told from a rank.
std::optional<Launch> by_srun() {
  const std::optional<int> tasks = number_of(environment_variable("SLURM_STEP_NUM_TASKS"), 1);
  if (!tasks || *tasks == 1) return std::nullopt;
  return Launch{*tasks, "srun joins them with --mpi=pmix or --mpi=pmi2, as MPI was built: srun --mpi=list",
                number_of(environment_variable("SLURM_PROCID"), 0)};
}

void refuse_torchrun() {
  const std::string_view size = environment_variable("WORLD_SIZE");
  const bool by_variables =
      !environment_variable("RANK").empty() && !size.empty() && !environment_variable("MASTER_ADDR").empty();
  if (environment_variable("TORCHELASTIC_RUN_ID").empty() && !by_variables) return;
  const std::optional<int> processes = number_of(size, 1);
  if (processes && *processes == 1) return;
  const std::string count = processes ? std::to_string(*processes) : "RANKS";
  throw InputError(
      fmt::format("torchrun or a launcher like it has started this process{}, but ranks on CPUs meet over MPI",
                  processes ? fmt::format(" as one of {}", count) : ""),
      fmt::format("start them with mpirun or srun: mpirun -n {} hdpsim execute ..., or leave it to --ranks {}", count,
                  count));
}

// ---- The other processes, as this machine sees them

// All processes of a launch have the same namespace, and a number each.
constexpr const char* launch_variable = "PMIX_NAMESPACE";
constexpr const char* number_variable = "PMIX_RANK";

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The value of a variable in an environment as /proc has it: NAME=VALUE, each followed by a null character.
std::string value_in(const std::string& environment, const std::string& name) {
  const std::string begin = std::string(1, '\0') + name + "=";
  const std::string whole = std::string(1, '\0') + environment;
  const std::size_t at = whole.find(begin);
  if (at == std::string::npos) return {};
  return whole.substr(at + begin.size(), whole.find('\0', at + begin.size()) - at - begin.size());
}

// Parses "4711 (sh) T ...": the name may contain anything, so that the state follows the last bracket.
std::string words_of(const std::string& stat) {
  const std::size_t name = stat.find('(');
  const std::size_t end = stat.rfind(") ");
  if (name == std::string::npos || end == std::string::npos || end + 2 >= stat.size()) return {};
  const char state = stat[end + 2];
  const bool is_stopped = state == 'T' || state == 't';
  return fmt::format("{}, {}, {}", stat.substr(name + 1, end - name - 1), stat.substr(0, name - 1),
                     is_stopped ? "is stopped" : "is there");
}

}  // namespace

std::vector<ProcessState> processes_of_launch(const Launch& launch) {
  const std::string_view job = environment_variable(launch_variable);
  std::error_code failed;
  std::filesystem::directory_iterator all("/proc", failed);
  if (job.empty() || failed) return {};
  std::map<int, std::string> words;
  for (; all != std::filesystem::directory_iterator(); all.increment(failed)) {
    if (!number_of(all->path().filename().string(), 1)) continue;  // "self" is a second name of a numbered one
    const std::string environment = text_of(all->path() / "environ");
    if (value_in(environment, launch_variable) != job) continue;
    const std::optional<int> number = number_of(value_in(environment, number_variable), 0);
    if (!number) continue;
    std::string& own = words[*number];
    own += (own.empty() ? "" : "; ") + words_of(text_of(all->path() / "stat"));
  }
  std::vector<ProcessState> states;
  for (int rank = 0; rank < launch.processes; ++rank) {
    const auto found = words.find(rank);
    const bool is_here = found != words.end();
    states.push_back({rank, is_here ? found->second : "is not here", is_here});
  }
  return states;
}

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
