#include "sim/study/profile_choice.h"

#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/profile/profile_file.h"

namespace hdpsim {

std::vector<std::string> profiles_of(const std::string& device, Catalog& catalog) {
  std::vector<std::string> names = profile_names(catalog.profiles().string());
  std::erase_if(names, [&](const std::string& name) {
    Diagnostics none;
    const auto profile = catalog.profile(Value::scalar(name), none);
    return profile == nullptr || profile->provenance.device != device || !profile->provenance.implied_by.empty();
  });
  return names;
}

std::shared_ptr<const DeviceProfile> profile_of_device(const std::string& device, const Position& where,
                                                       Catalog& catalog, Diagnostics& diagnostics) {
  const std::vector<std::string> suitable = profiles_of(device, catalog);
  if (suitable.size() == 1) return catalog.profile(Value::scalar(suitable.front()), diagnostics);
  if (suitable.empty()) {
    const std::vector<std::string> names = profile_names(catalog.profiles().string());
    diagnostics.error(where, fmt::format("the study names no profile, and none is of a {}", device),
                      fmt::format("write profile: and one of {}, or a file", joined(names, ", ")));
  } else {
    diagnostics.error(where, fmt::format("the study names no profile, and {} are of a {}", suitable.size(), device),
                      fmt::format("write profile: {}", joined(suitable, ", or ")));
  }
  return nullptr;
}

}  // namespace hdpsim
