#include "sim/import/impl/launched_job.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

namespace hdpsim {
namespace {

constexpr std::string_view beginning = "#SBATCH";
constexpr std::string_view word_breaks = " \t\r=";

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> short_options = {
    {{"-N", "nodes"}, {"-n", "ntasks"}, {"-G", "gpus"}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> set_by_options = {
    {{"SLURM_NNODES", "nodes"},
     {"SLURM_JOB_NUM_NODES", "nodes"},
     {"SLURM_NTASKS", "ntasks"},
     {"SLURM_NPROCS", "ntasks"},
     {"SLURM_NTASKS_PER_NODE", "ntasks-per-node"},
     {"SLURM_GPUS_PER_NODE", "gpus-per-node"},
     {"SLURM_GPUS_ON_NODE", "gpus-per-node"}}};

// Where a part of a line that does not begin with one of these characters ends.
std::size_t end_of_part(std::string_view line, std::size_t begin) {
  return std::min(line.find_first_of(word_breaks, begin), line.size());
}

std::string long_name(std::string_view option) {
  if (option.starts_with("--")) return std::string(option.substr(2));
  for (const auto& [letter, name] : short_options) {
    if (option == letter) return std::string(name);
  }
  return {};
}

void take_line(std::string_view line, std::size_t offset, std::map<std::string, ShellText>& directives) {
  std::size_t at = beginning.size();
  while ((at = line.find_first_not_of(word_breaks, at)) != std::string_view::npos && line[at] == '-') {
    const std::size_t end = end_of_part(line, at);
    const std::string name = long_name(line.substr(at, end - at));
    const std::size_t value = line.find_first_not_of(word_breaks, end);
    if (value == std::string_view::npos) return;
    const std::size_t behind = end_of_part(line, value);
    const std::string_view text = line.substr(value, behind - value);
    at = text.starts_with('-') ? value : behind;
    if (name.empty() || text.starts_with('-') || text.find('$') != std::string_view::npos) continue;
    ShellText stated;
    for (std::size_t i = value; i < behind; ++i) stated.add(line[i], static_cast<std::uint32_t>(offset + i));
    stated.begin = static_cast<std::uint32_t>(offset + value);
    directives[name] = std::move(stated);
  }
}

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

std::map<std::string, ShellText> slurm_directives(const std::string& script) {
  std::map<std::string, ShellText> directives;
  for (std::size_t at = 0; at < script.size();) {
    const std::size_t end = std::min(script.find('\n', at), script.size());
    const std::string_view line = std::string_view(script).substr(at, end - at);
    if (line.starts_with(beginning)) take_line(line, at, directives);
    at = end + 1;
  }
  return directives;
}

std::map<std::string, ShellText> slurm_variables(const std::map<std::string, ShellText>& directives) {
  std::map<std::string, ShellText> variables;
  for (const auto& [variable, option] : set_by_options) {
    const auto stated = directives.find(std::string(option));
    if (stated != directives.end()) variables.emplace(variable, stated->second);
  }
  return variables;
}

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
