#pragma once

#include "sim/tune/contenders.h"

namespace hdpsim {

/// Candidates whose closed form is not known, although their bound is near the best of their policy by closed form: of
/// every policy in ascending order of their bounds, policy by policy. As long as a policy has fewer closed forms than
/// places, all of its candidates. At most `of_each` of every policy. O(n log n).
[[nodiscard]] CandidateNumbers closed_forms_to_come(const Contenders& contenders, std::size_t of_each = SIZE_MAX);

}  // namespace hdpsim
