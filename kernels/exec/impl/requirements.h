#pragma once

#include "kernels/exec/tokens.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// Of the same sizes, whatever the names.
[[nodiscard]] bool same_shape(const Transformer& a, const Transformer& b);

/// UnsupportedInput if so many ranks that train `model` cannot run the program on these data.
void require_executable(const Program& program, const Transformer& model, const TokenSource& tokens, int ranks);

}  // namespace hdpsim::kernels::exec
