#include "sim/import/impl/slurm_variables.h"

#include <algorithm>
#include <array>
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

}  // namespace hdpsim
