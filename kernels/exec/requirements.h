#pragma once

#include "kernels/exec/tokens.h"
#include "sim/model/transformer.h"
#include "sim/plan/plan.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// Of the same sizes, whatever the names.
[[nodiscard]] bool same_shape(const Transformer& a, const Transformer& b);

/// UnsupportedInput, with everything that is in the way, if `model` cannot be executed on the mesh:
/// execution_problems(), too few layers for the pipeline.
void require_executable(const Transformer& model, const Mesh& mesh, const PipelineOptions& pipeline);

/// UnsupportedInput if so many ranks that train `model` in `chunks` parts (one without a pipeline) cannot run the plan
/// on these data: another number of ranks, another model, more different tokens than the model knows. Worth asking
/// before ranks are started.
void require_executable(const Plan& plan, const Transformer& model, const TokenSource& tokens, std::int64_t ranks,
                        std::int64_t chunks = 1);

}  // namespace hdpsim::kernels::exec
