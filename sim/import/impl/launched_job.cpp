#include "sim/import/impl/launched_job.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>

namespace hdpsim {
namespace {

using Count = std::optional<std::int64_t> LaunchedJob::*;

/// An option of a launcher that states a count.
struct LaunchOption {
  std::string_view option;
  Count count;
};

constexpr auto srun_options = std::to_array<LaunchOption>({{"-N", &LaunchedJob::nodes},
                                                           {"--nodes", &LaunchedJob::nodes},
                                                           {"-n", &LaunchedJob::processes},
                                                           {"--ntasks", &LaunchedJob::processes},
                                                           {"-G", &LaunchedJob::processes},
                                                           {"--gpus", &LaunchedJob::processes},
                                                           {"--ntasks-per-node", &LaunchedJob::per_node},
                                                           {"--gpus-per-node", &LaunchedJob::per_node},
                                                           {"--gres", &LaunchedJob::per_node}});
constexpr auto mpirun_options = std::to_array<LaunchOption>({{"-np", &LaunchedJob::processes},
                                                             {"--np", &LaunchedJob::processes},
                                                             {"-n", &LaunchedJob::processes},
                                                             {"-npernode", &LaunchedJob::per_node},
                                                             {"--npernode", &LaunchedJob::per_node},
                                                             {"-N", &LaunchedJob::per_node},
                                                             {"-ppn", &LaunchedJob::per_node},
                                                             {"--map-by", &LaunchedJob::per_node}});
constexpr auto deepspeed_options =
    std::to_array<LaunchOption>({{"--num_nodes", &LaunchedJob::nodes}, {"--num_gpus", &LaunchedJob::per_node}});
constexpr auto accelerate_options = std::to_array<LaunchOption>(
    {{"--num_processes", &LaunchedJob::processes}, {"--num_machines", &LaunchedJob::nodes}});

/// A program that starts others on many devices.
struct Launcher {
  std::string_view name;
  std::span<const LaunchOption> options;
};
constexpr auto launchers = std::to_array<Launcher>({{"srun", srun_options},
                                                    {"mpirun", mpirun_options},
                                                    {"mpiexec", mpirun_options},
                                                    {"orterun", mpirun_options},
                                                    {"deepspeed", deepspeed_options},
                                                    {"accelerate", accelerate_options}});

const Launcher* launcher_named(std::string_view word) {
  const std::string_view name = word.substr(word.find_last_of('/') + 1);
  const auto found =
      std::find_if(launchers.begin(), launchers.end(), [&](const auto& each) { return each.name == name; });
  return found == launchers.end() ? nullptr : &*found;
}

// The whole number of `16`, `gpu:8`, `gpu:h100:8` or `ppr:8:node`; empty if it has none, or says `2-4`.
std::optional<std::int64_t> count_in(std::string_view text) {
  constexpr std::int64_t most = 1'000'000;
  std::optional<std::int64_t> found;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(":,", at), text.size());
    std::int64_t value = 0;
    const auto [behind, error] = std::from_chars(text.data() + at, text.data() + end, value);
    if (error == std::errc{} && behind == text.data() + end && value > 0 && value <= most) found = value;
    at = end + 1;
  }
  return found;
}

void take_option(std::span<const LaunchOption> options, const std::vector<ShellText>& words, std::size_t at,
                 LaunchedJob& job) {
  const std::string_view word = words[at].text;
  const std::string_view name = word.substr(0, word.find('='));
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const auto& each) { return each.option == name; });
  if (found == options.end()) return;
  const bool is_joined = name.size() < word.size();
  const std::string_view value = is_joined               ? word.substr(name.size() + 1)
                                 : at + 1 < words.size() ? std::string_view(words[at + 1].text)
                                                         : std::string_view();
  if (const auto count = count_in(value)) job.*(found->count) = count;
}

void take_directives(const std::map<std::string, ShellText>& directives, LaunchedJob& job) {
  for (const LaunchOption& each : srun_options) {
    const auto stated = directives.find(std::string(each.option.substr(std::min<std::size_t>(2, each.option.size()))));
    if (!each.option.starts_with("--") || stated == directives.end()) continue;
    if (const auto count = count_in(stated->second.text)) job.*(each.count) = count;
  }
}

}  // namespace

std::optional<std::int64_t> LaunchedJob::gpus(std::optional<std::int64_t> on_node) const {
  const auto each = on_node ? on_node : per_node;
  if (nodes && each) return *nodes * *each;
  return on_node && processes ? std::optional(*processes * *on_node) : processes;
}

LaunchedJob launched_job(const std::vector<ShellText>& launcher, const std::map<std::string, ShellText>& directives) {
  LaunchedJob job;
  const Launcher* program = nullptr;
  for (std::size_t i = 0; i < launcher.size(); ++i) {
    if (const Launcher* begins = launcher_named(launcher[i].text)) {
      program = begins;
    } else if (program != nullptr) {
      take_option(program->options, launcher, i, job);
    }
  }
  if (job.gpus()) return job;
  LaunchedJob stated;
  take_directives(directives, stated);
  if (!job.processes) job.processes = stated.processes;
  if (!job.nodes) job.nodes = stated.nodes;
  if (!job.per_node) job.per_node = stated.per_node;
  return job;
}

}  // namespace hdpsim
