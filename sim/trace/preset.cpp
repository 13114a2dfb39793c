#include "sim/trace/preset.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/diagnostic.h"

namespace hdpsim {

std::vector<std::string> preset_names(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code failure;
  for (std::filesystem::directory_iterator it(directory, failure), end; !failure && it != end; it.increment(failure)) {
    if (it->path().extension() == ".csv") names.push_back(it->path().stem().string());
  }
  if (failure) {
    throw InputError(Position{directory.string(), 0, 0},
                     fmt::format("cannot list the shipped traces: {}", failure.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

LengthDistributionPtr load_preset(std::string_view name, const std::filesystem::path& directory,
                                  const MixtureOptions& mixture) {
  const std::vector<std::string> names = preset_names(directory);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw InputError(fmt::format("there is no length preset '{}'", name), suggestion(name, names));
  }
  return read_distribution(directory / fmt::format("{}.csv", name), {}, mixture);
}

}  // namespace hdpsim
