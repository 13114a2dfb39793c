#pragma once

#include <string>
#include <vector>

#include "sim/document/key.h"
#include "sim/model/experts.h"
#include "sim/plan/expert_waves.h"

namespace hdpsim {

/// The distribution of a model's experts over devices, and of tokens over experts, in a study.
struct ExpertOptions {
  ExpertLayout layout;
  ExpertSpan across = ExpertSpan::inside;

  /// " x ep 8 x etp 2 (waves, once per node)"; empty without expert groups.
  [[nodiscard]] std::string text() const;
};

/// The keys of `moe`.
[[nodiscard]] const std::vector<KeyText>& expert_keys();

/// Reads a study's `moe`, which may be missing, for experts divided in this way:
///   moe: {across: inside | waves | padding, capacity_factor: none | FACTOR,
///         dispatch: per_copy | per_node, fp8_sent: true | false, compression: none | {hashes: N, rate: R},
///         routing: uniform | {zipf: S, seed: N} | {file: PATH}}
/// A file is a list of numbers, one per expert, in the order of the devices: each expert's share of all copies, in any
/// unit. `moe` for a model without experts is reported, and so is what does not fit the model.
[[nodiscard]] ExpertOptions read_experts(const Value& study, const Transformer& model, const ExpertDivision& division,
                                         Diagnostics& diagnostics);

}  // namespace hdpsim
