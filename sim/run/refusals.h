#pragma once

#include <vector>

#include "sim/analysis/metrics.h"

namespace hdpsim {

/// Throws an InputError with what the policies say, at the entries of their plans, if each of these runs was refused.
void require_one_that_ran(const std::vector<const Run*>& runs);

}  // namespace hdpsim
