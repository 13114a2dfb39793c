#include "sim/study/profile_choice.h"

#include <fmt/format.h>

#include <vector>

#include "sim/base/text.h"
#include "sim/profile/profile_file.h"

namespace hdpsim {

std::shared_ptr<const DeviceProfile> profile_of_device(const std::string& device, const Position& where,
                                                       Catalog& catalog, Diagnostics& diagnostics) {
  const std::vector<std::string> names = profile_names(catalog.profiles().string());
  std::vector<std::string> suitable;
  std::shared_ptr<const DeviceProfile> found;
  for (const std::string& name : names) {
    Diagnostics none;
    const auto profile = catalog.profile(Value::scalar(name), none);
    if (profile == nullptr || profile->provenance.device != device) continue;
    suitable.push_back(name);
    found = profile;
  }
  if (suitable.size() == 1) return found;
  if (suitable.empty()) {
    diagnostics.error(where, fmt::format("the study names no profile, and none is of a {}", device),
                      fmt::format("write profile: and one of {}, or a file", joined(names, ", ")));
  } else {
    diagnostics.error(where, fmt::format("the study names no profile, and {} are of a {}", suitable.size(), device),
                      fmt::format("write profile: {}", joined(suitable, ", or ")));
  }
  return nullptr;
}

}  // namespace hdpsim
