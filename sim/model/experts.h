#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/transformer.h"
#include "sim/model/work.h"

namespace hdpsim {

/// How a job divides the experts of a layer, and how the router fills them.
struct ExpertLayout {
  /// Devices of an expert group: each has 1 / ep of a layer's experts, whole, and tokens travel to them. 1: no groups;
  /// the tensor-parallel devices cut every expert as they cut a dense MLP.
  std::int64_t ep = 1;
  /// An expert takes at most so many times the even share of copies; what comes beyond is dropped. Nothing: it takes
  /// all (dropless).
  std::optional<double> capacity_factor = {};
  /// Of all copies, by expert in the order of the devices that hold them; sums to 1. Empty: all alike.
  std::vector<double> shares = {};

  friend bool operator==(const ExpertLayout&, const ExpertLayout&) = default;
};

/// What the router of a mixture sends to each expert if its popularity falls as 1 / rank^s (Zipf), as shares of all
/// copies. A token takes different experts, so none gets more than 1 / top-k of the copies: what would come beyond goes
/// to the others in proportion. Which expert is how popular is drawn by the seed. `s` 0: all alike.
[[nodiscard]] std::vector<double> zipf_shares(const MixtureOfExperts& moe, double s, std::uint64_t seed);

/// HDP ranks over which an expert group reaches: 1 inside a rank, else ep / tp.
[[nodiscard]] std::int64_t expert_ranks(std::int64_t ep, std::int64_t tp);

/// Tokens that the devices of one expert group have when a layer begins.
struct ExpertTokens {
  std::int64_t most = 0;  ///< Of the device that has most of them.
  std::int64_t all = 0;   ///< Of all devices of the group.
  friend bool operator==(const ExpertTokens&, const ExpertTokens&) = default;
};
/// Of a group inside an HDP rank that has `tokens` tokens, under sequence parallelism; with ep 1 all devices of the
/// rank gather them all.
[[nodiscard]] ExpertTokens tokens_inside(std::int64_t tokens, std::int64_t tp, std::int64_t ep);

/// Rows of the products of each expert on one device.
struct ExpertRows {
  std::vector<std::int64_t> slowest;  ///< On the device that has most rows.
  std::vector<std::int64_t> even;     ///< On every device, if what is computed were spread evenly.
  std::int64_t sent = 0;              ///< Copies that leave the device that has most tokens.

  [[nodiscard]] std::int64_t received() const;  ///< By the device that has most rows.
};
/// For a model with experts; ep must divide them (checked).
[[nodiscard]] ExpertRows expert_rows(const MixtureOfExperts& moe, const ExpertLayout& layout,
                                     const ExpertTokens& tokens);
/// Rows of the fullest device for one of an even share; below 1 if all devices drop copies.
[[nodiscard]] double hottest_device(const MixtureOfExperts& moe, const ExpertLayout& layout);

/// Bytes of the all-to-all that brings copies to their experts or back, as nccl-tests counts them: what the
/// device with most to send or to receive sends or receives, its own part included. Its pace is that of this device.
[[nodiscard]] Bytes expert_exchange_bytes(const Transformer& model, const ExpertRows& rows);

/// Parameters of one expert / of one layer's experts together, those that every token takes not counted.
[[nodiscard]] std::int64_t expert_parameter_count(const Transformer& model);
[[nodiscard]] std::int64_t expert_layer_parameter_count(const Transformer& model);

/// Consecutive layers of one kind.
struct LayerRun {
  std::int64_t count = 0;
  bool has_experts = false;
};
/// Layers first ... first + count - 1 of a model, in their order; one run of a model without experts.
[[nodiscard]] std::vector<LayerRun> layer_runs(const Transformer& model, std::int64_t first, std::int64_t count);
/// How many of them have experts.
[[nodiscard]] std::int64_t expert_layers(const Transformer& model, std::int64_t first, std::int64_t count);
/// The model as if all of its layers were like those that have a dense MLP.
[[nodiscard]] Transformer with_dense_layers(const Transformer& model);

/// The work of a layer with experts, per device; in backward with the gradients of inputs and weights. Memory-bound
/// kernels read and write elements but for the router's fp32 probabilities.
///
/// Router on `tokens` tokens: its product, softmax and choice of the top k.
[[nodiscard]] LinearPart router_work(const Transformer& model, std::int64_t tokens, Direction direction);
/// Copies of `tokens` tokens in the order of their experts, or the sum of copies of each token: both read or write each
/// token once and each copy once, and each is the other's backward.
[[nodiscard]] LinearPart permutation_work(const Transformer& model, std::int64_t tokens, Direction direction);
/// The experts of one device with so many rows each, their inner width cut in `cut`: products one after the other, as
/// if a grouped kernel gained nothing over them, and one activation kernel. Where a device has several experts, the
/// copies that come from the devices of a group are put in their order first and back afterwards (`sorted`).
[[nodiscard]] LinearPart expert_work(const Transformer& model, const std::vector<std::int64_t>& rows, std::int64_t cut,
                                     bool sorted, Direction direction);
/// Of expert_work() and shared_expert_work(), forward, the activation alone: where it alone is done again.
[[nodiscard]] LinearPart expert_activation_work(const Transformer& model, const std::vector<std::int64_t>& rows,
                                                std::int64_t cut);
[[nodiscard]] LinearPart shared_activation_work(const Transformer& model, std::int64_t tokens, std::int64_t tp);
/// The experts that every token takes, cut over the tensor-parallel devices: all `tokens` tokens of the HDP rank.
[[nodiscard]] LinearPart shared_expert_work(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                            Direction direction);

}  // namespace hdpsim
