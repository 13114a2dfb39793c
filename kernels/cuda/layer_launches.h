#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/layer.h"

/// Everything of a transformer layer that is neither attention nor a matrix product: one launch or two each on
/// launch.stream(), element bf16. Errors: DeviceError where a launch fails, UnsupportedInput for sizes that no kernel
/// takes.
///
/// Two runs give the same bits, except where a comment says that they add with atomics.
namespace hdpsim::kernels::cuda::layer {

void run(Launch& launch, const AttentionDelta& op);
void run(Launch& launch, const RmsNormForward& op);
void run(Launch& launch, const RmsNormBackward& op);
void run(Launch& launch, const Rope& op);
void run(Launch& launch, const SwigluForward& op);
void run(Launch& launch, const SwigluBackward& op);
void run(Launch& launch, const Add& op);
void run(Launch& launch, const EmbeddingForward& op);
void run(Launch& launch, const EmbeddingBackward& op);  ///< Atomics: the last bits depend on the order of tokens.
void run(Launch& launch, const CrossEntropy& op);
void run(Launch& launch, const LogSumExp& op);
void run(Launch& launch, const JoinLogSumExp& op);
void run(Launch& launch, const Adam& op);
void run(Launch& launch, const Cast& op);

}  // namespace hdpsim::kernels::cuda::layer
