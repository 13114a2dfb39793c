#pragma once

#include "kernels/spec/expert_routing.h"
#include "kernels/spec/layer.h"

/// Kernels that move rows, or choose among few numbers, for any instruction set. Elements are fp32.
namespace hdpsim::kernels::cpu {

void copy_columns(const CopyColumns& op);
void silu(const SiluForward& op);
void silu_back(const SiluBackward& op);
void gate(const GateForward& op);
void gate_back(const GateBackward& op);
void route(const RouteForward& op);
void route_back(const RouteBackward& op);
void sort_copies(const SortCopies& op);
void spread_tokens(const SpreadTokens& op);
void sum_copies(const SumCopies& op);
void weight_gradients(const WeightGradients& op);

}  // namespace hdpsim::kernels::cpu
