#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/experts.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// How a layer is computed, as far as it decides what backward finds in memory.
struct ActivationRules {
  Recompute recompute = {};
  bool flash_attention = true;    ///< Keeps q, k, v, o and the log-sum-exp; otherwise the matrices of scores.
  bool sequence_parallel = true;  ///< Norms and residuals on tokens / tp (Korthikanti et al. 2022).
  bool dropout = false;           ///< Of scores and of both residual branches, with a byte of mask an element.
  /// Parameters and the residual stream are fp32, and products run in elements (DenseRules::autocast). A model with
  /// experts has none of this (checked).
  bool autocast = false;
  std::int64_t ep = 1;  ///< Devices of an expert group: see ExpertLayout.
  double hottest = 1;   ///< Copies on the expert device that has most, for one of an even share.
};

/// The rules with the expert groups of a model; as they are for one without experts.
[[nodiscard]] ActivationRules with_experts(ActivationRules rules, const Transformer& model, const ExpertLayout& layout);

/// A tensor that a layer keeps from its forward to its backward. Bytes are those of the whole tensor-parallel group.
struct KeptTensor {
  std::string_view name;
  std::int64_t bytes_per_token = 0;
  std::int64_t bytes_per_pair = 0;  ///< Per (query, key) pair that is computed; without flash attention only.
  bool cut = true;                  ///< Over the tensor-parallel group; otherwise each of its devices has all of it.
  bool of_experts = false;          ///< For a token of an expert group, and of one of its devices.
  bool of_mlp = false;              ///< Gone when attention's backward begins.
  bool goes_whole = false;          ///< Under token-wise offload: a layer's input, or attention's output.
  std::int64_t bytes = 0;           ///< However many tokens there are.
};

/// What one layer keeps, operation by operation: elements, log-sum-exp in fp32, masks in bytes. For a GPT layer in bf16
/// with dropout and without flash attention these are the 34 s b h + 5 a s^2 b bytes of Korthikanti et al. 2022, eq. 1.
/// What a module makes that is computed again is left out. Of the attention core that is what has a byte for each pair;
/// flash attention has no such tensor and runs as a whole, so that its output is not kept either. Of the projection it
/// is the input of the MLP's norm, and of the layer as a whole all but its input.
///
/// With experts it keeps the router's probabilities in fp32 and every copy of a token in place of the MLP's input. The
/// probabilities weigh the output of the activation, so that nothing is kept behind the experts' last product.
///
/// Under autocast a product keeps the cast of its weight. PyTorch has one for all uses of a leaf parameter
/// (aten/src/ATen/autocast_mode.cpp, cached_cast), but FSDP's weights are views of a flat one, so that it casts at every
/// product and keeps it for the gradient of the input. Of the residual stream a norm keeps what it casts to elements, as
/// llm-foundry's low_precision_layernorm does; one that is computed again keeps the stream itself, in fp32.
[[nodiscard]] std::vector<KeptTensor> kept_tensors(const Transformer& model, const ActivationRules& rules);

/// Bytes of these tensors on one device of a tensor-parallel group, for `tokens` tokens of an HDP rank. `expert_tokens`
/// are those of an expert group for each of its devices; without, as many as the rank has for each of its own.
[[nodiscard]] Bytes kept_bytes(const std::vector<KeptTensor>& tensors, std::int64_t tokens, std::int64_t tp,
                               std::int64_t pairs = 0, std::optional<std::int64_t> expert_tokens = {});

/// Of these bytes those that go to host memory under token-wise offload (MEMO, Zhao et al. 2024, section 4.1): of each
/// layer's input and of attention's output all, of the rest `share`.
[[nodiscard]] Bytes token_wise_bytes(const std::vector<KeptTensor>& tensors, std::int64_t tokens, std::int64_t tp,
                                     double share);

}  // namespace hdpsim
