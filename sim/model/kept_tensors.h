#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/experts.h"
#include "sim/model/recipe.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// A tensor that a layer keeps from its forward to its backward. Its bytes are those of the whole tensor-parallel
/// group.
struct KeptTensor {
  std::string_view name;
  std::int64_t bytes_per_token = 0;
  std::int64_t bytes_per_pair = 0;  ///< Bytes per (query, key) pair that is computed; only without flash attention.
  bool cut = true;                  ///< Divided over the tensor-parallel group; otherwise each device has all of it.
  bool of_experts = false;          ///< Counted per token of an expert group and per device of it.
  bool of_mlp = false;              ///< Freed before attention's backward begins.
  bool goes_whole = false;          ///< Token-wise offload moves it whole: a layer's input, or attention's output.
  bool of_trade = false;            ///< Kept only in a group that trades heads.
  bool of_sum = false;              ///< Kept only where several tensor-parallel devices sum it.
  std::int64_t bytes = 0;           ///< Bytes that do not depend on the number of tokens.
};

/// The tokens for which a device keeps tensors.
struct KeptLoad {
  std::int64_t tokens = 0;  ///< Tokens of the HDP rank.
  std::int64_t tp = 1;      ///< Devices of its tensor-parallel group.
  double pairs = 0;         ///< (query, key) pairs; only read without flash attention.
  /// Tokens of an expert group per device of the group; if empty, the tokens of the rank per device of the rank.
  std::optional<std::int64_t> expert_tokens = {};
  bool trades_heads = false;  ///< Its group trades heads (SharingForm::keeps_traded).
};

/// The tensors that one layer keeps, operation by operation: elements, log-sum-exp in fp32, masks in bytes. For a GPT
/// layer in bf16 with dropout and without flash attention these are the 34 s b h + 5 a s^2 b bytes of Korthikanti et
/// al. 2022, eq. 1. Tensors that a recomputed module makes are left out. If the attention core is recomputed, these are
/// the tensors with a byte count per pair, or flash attention's log-sum-exp. If the projection is recomputed, it is the
/// input of the MLP's norm; if the whole layer is, everything except its input.
///
/// The projection's weight gradient needs attention's output, so that it is kept even if the attention core is
/// recomputed, in the elements in which the projection multiplies. Flash attention's backward needs it as well: the
/// same tensor, unless the group trades heads (Jacobs et al. 2023), where attention has the output of all tokens for a
/// part of the heads, and the projection that of the rank's tokens for all heads.
///
/// A norm of queries and keys keeps its input beside its output, which attention keeps (PyTorch's and Transformer
/// Engine's RMSNorm save their input); recomputed queries and keys are normed again.
///
/// With experts a layer keeps the router's probabilities in fp32, and every copy of a token in place of the MLP's
/// input. The probabilities weight the output of the activation, so that nothing is kept behind the experts' last
/// product.
///
/// Under per-operation recompute these are the outputs of operations, in the model's type: of every second product, of
/// attention with its log-sum-exp, and of sums over tensor-parallel devices; and the layer's input. Eager PyTorch keeps
/// them whether or not backward reads them, and of the last product the part of each device before it is summed.
///
/// Under autocast a product keeps the cast of its weight. PyTorch has one for all uses of a leaf parameter
/// (aten/src/ATen/autocast_mode.cpp, cached_cast), but FSDP's weights are views of a flat one, so that it casts at
/// every product and keeps the cast for the gradient of the input. A norm keeps its input as it casts it to elements,
/// as llm-foundry's low_precision_layernorm does; a recomputed norm keeps the residual stream itself, in fp32.
[[nodiscard]] std::vector<KeptTensor> kept_tensors(const Transformer& model, const Recipe& recipe,
                                                   const ExpertUse& experts = {});

/// Bytes of these tensors on one device.
[[nodiscard]] Bytes kept_bytes(const std::vector<KeptTensor>& tensors, const KeptLoad& load);

/// The part of these bytes that token-wise offload moves to host memory (MEMO, Zhao et al. 2024, section 4.1): each
/// layer's input and attention's output whole, and `share` of the rest.
[[nodiscard]] Bytes token_wise_bytes(const std::vector<KeptTensor>& tensors, const KeptLoad& load, double share);

/// Bytes of activations that one layer keeps for backward per device (flash attention, no dropout), from
/// kept_tensors().
[[nodiscard]] Bytes activation_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                     Recompute recompute = {}, bool sequence_parallel = true);

}  // namespace hdpsim
