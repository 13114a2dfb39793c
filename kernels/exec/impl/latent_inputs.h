#pragma once

#include "kernels/exec/impl/dense_kernels.h"

namespace hdpsim::kernels::exec {

/// Queries, keys and values made through latents (DeepSeek-V2, 2024, section 2.1), with n the layer's normed input:
///   q = norm(n W_dq^T) W_uq^T, or n W_uq^T where queries have no latent
///   c = norm(n W_dkv^T), r = n W_kr^T
///   of each head k = [c W_uk^T, r], v = c W_uv^T
/// The last columns of each head's query, and r, are rotated by their positions.
void latent_inputs(const LayerWork& work);
/// The gradient of n goes to SharedActivations::d_normed, from those of q, k and v as elements (d_q_rounded,
/// d_kv_rounded).
void latent_inputs_back(const LayerWork& work);

}  // namespace hdpsim::kernels::exec
