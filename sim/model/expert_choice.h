#pragma once

#include <cstdint>

#include "sim/model/transformer.h"

namespace hdpsim {

/// The mean number of parts in which a token has an expert, itself included, where `parts` equal parts of a mixture's
/// experts follow each other (checked), as on the devices or the nodes of an expert group. Every choice that the router
/// may make is equally likely: of groups_per_token groups, and of experts_per_token experts in them. O(parts + groups)
/// times the logarithm of the groups of a part.
[[nodiscard]] double mean_parts(const MixtureOfExperts& moe, std::int64_t parts);

}  // namespace hdpsim
