#pragma once

#include "kernels/exec/tokens.h"
#include "sim/model/transformer.h"
#include "sim/plan/plan.h"

namespace hdpsim::kernels::exec {

/// Of the same sizes, whatever the names.
[[nodiscard]] bool same_shape(const Transformer& a, const Transformer& b);

/// UnsupportedInput if so many ranks that train `model` cannot run the plan on these data: another number of ranks,
/// another model, more different tokens than the model knows. Worth asking before ranks are started.
void require_executable(const Plan& plan, const Transformer& model, const TokenSource& tokens, std::int64_t ranks);

}  // namespace hdpsim::kernels::exec
