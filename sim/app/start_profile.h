#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/profile/device_profile.h"
#include "sim/study/catalog.h"

namespace hdpsim::app {

using ProfilePtr = std::shared_ptr<const DeviceProfile>;

/// What --like says: a profile to start from, and the GPUs of a node if it is a cluster.
struct StartProfile {
  ProfilePtr profile;
  std::optional<std::int64_t> gpus_per_node;
};

/// Sorted.
[[nodiscard]] std::vector<std::string> shipped_profile_names(const Catalog& catalog);

/// A profile by its name or file. InputError with every problem of it.
[[nodiscard]] ProfilePtr start_profile(const std::string& name, Catalog& catalog);

/// The start that `name` is or has: a profile, shipped or a file, or a cluster, whose device's profile it then is.
/// Empty for an empty name. InputError if there is none.
[[nodiscard]] std::optional<StartProfile> start_like(const std::string& name, Catalog& catalog);

}  // namespace hdpsim::app
