#pragma once

#include <cstdint>

#include "kernels/exec/tokens.h"
#include "sim/model/recipe.h"
#include "sim/model/transformer.h"
#include "sim/plan/plan.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// UnsupportedInput, with everything that is in the way, if `model` cannot be executed on so many tensor-parallel
/// devices: kinds of layers for which there are no kernels, heads or an MLP width that the devices do not divide,
/// experts and latents on several devices.
void require_executable(const Transformer& model, std::int64_t devices);

/// The same on the mesh: also too few layers for the pipeline, a schedule that splits the backward of what is computed
/// as one.
void require_executable(const Transformer& model, const Mesh& mesh, const PipelineOptions& pipeline);

/// The same for what there are no kernels for on a GPU.
void require_executable_on_gpu(const Transformer& model);
void require_executable_on_gpu(KeyExchange key_exchange);
void require_executable_on_gpu(const Plan& plan);

/// UnsupportedInput if ranks cannot train in this way: the sharing of keys, the optimizer, the format of products.
void require_executable(const Recipe& recipe);

/// UnsupportedInput if `ranks` ranks that train `model`, whose layers are dealt so to chunks, cannot run the plan
/// on these data: another number of ranks, another model, several updates, padded sequences, a larger vocabulary than
/// the model's, or a cut other than per document where keys are not gathered. Call it before ranks are started.
void require_executable(const Plan& plan, const Transformer& model, const TokenSource& tokens, std::int64_t ranks,
                        const LayerDeal& deal = {}, KeyExchange key_exchange = KeyExchange::ring);

}  // namespace hdpsim::kernels::exec
