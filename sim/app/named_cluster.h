#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/study/catalog.h"

namespace hdpsim::app {

/// The cluster that an option names: a shipped one or a file, with `gpus` GPUs if given. InputError if there is none.
[[nodiscard]] ClusterSpec named_cluster(const std::string& name, std::optional<std::int64_t> gpus,
                                        const Catalog& catalog);

}  // namespace hdpsim::app
