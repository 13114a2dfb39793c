#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/expert_division.h"
#include "sim/base/units.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// How copies of tokens travel to the experts of a group and back.
enum class ExpertDispatch : std::uint8_t {
  per_copy,  ///< Each copy by itself, in all-to-alls of NCCL.
  /// A token travels once to each node that has some of its experts, where it is forwarded once to each device that has
  /// some; results are added up on the way back (DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.2; DeepEP).
  per_node,
  /// The same; its kernels also put the copies in the order of the device's experts, and back, and pad them (Hybrid-EP,
  /// deepseek-ai/DeepEP pull request 420; Megatron-Core, token_dispatcher.py, _HybridEPManager).
  hybrid_ep,
};
[[nodiscard]] constexpr bool sends_once_per_node(ExpertDispatch dispatch) {
  return dispatch != ExpertDispatch::per_copy;
}

/// Compression of what travels to experts and back (LSH-MoE, Nie et al. 2024, arXiv 2411.08446): of the copies that a
/// device sends to an expert, those with equal hashes are a cluster, whose mean alone travels and is computed; a copy's
/// difference from the mean stays with its sender, who adds it to the result. What that costs: expert_compression.h.
struct ExpertCompression {
  double rate = 1;           ///< Clusters by copies; token_clusters.h measures it.
  std::int64_t hashes = 6;   ///< Of a copy.
  std::int64_t columns = 0;  ///< Of each rotation that a hash looks at.
  bool is_free = false;      ///< Senders take no time for it.
  friend bool operator==(const ExpertCompression&, const ExpertCompression&) = default;
};

/// How a job divides the experts of a layer, and how the router fills them.
struct ExpertLayout {
  std::int64_t ep = 1;   ///< See ExpertDivision.
  std::int64_t etp = 1;  ///< See ExpertDivision.
  /// An expert takes at most this many times the even share of copies; copies beyond that are dropped. Empty if it
  /// takes all (dropless).
  std::optional<double> capacity_factor = {};
  /// Share of all copies that each expert gets, in the order of the devices that hold them; sums to 1. Empty: all
  /// alike.
  std::vector<double> shares = {};
  ExpertDispatch dispatch = ExpertDispatch::per_copy;
  /// Tokens, and in backward gradients of results, travel to experts in fp8; results travel back as elements.
  bool fp8_sent = false;
  /// The router pads what each expert gets to whole blocks of a narrow format; otherwise kernels copy it for that, and
  /// back, but those of Hybrid-EP (Megatron-Core, moe_router_padding_for_quantization; moe_utils.py,
  /// skip_routed_expert_padding).
  bool router_padding = false;
  std::optional<ExpertCompression> compression = {};

  [[nodiscard]] ExpertDivision division() const { return {ep, etp}; }
  friend bool operator==(const ExpertLayout&, const ExpertLayout&) = default;
};

/// The shares of all copies that the router of a mixture sends to each expert if popularity falls as 1 / rank^s (Zipf).
/// A token takes different experts, so none gets more than 1 / top-k of the copies: the excess goes to the others in
/// proportion. The seed draws which expert has which popularity. With `s` 0 all are alike.
[[nodiscard]] std::vector<double> zipf_shares(const MixtureOfExperts& moe, double s, std::uint64_t seed);

/// The share of all copies that experts take, by their shares and the capacity factor; 1 without experts.
[[nodiscard]] double kept_copies(const Transformer& model, const ExpertLayout& layout);

/// HDP ranks that an expert group spans: 1 inside a rank, else its devices / tp.
[[nodiscard]] std::int64_t expert_ranks(const ExpertDivision& division, std::int64_t tp);

/// Tokens that the devices of one expert group have when a layer begins.
struct ExpertTokens {
  std::int64_t most = 0;  ///< Tokens of the device that has most of them.
  std::int64_t all = 0;   ///< Tokens of all devices of the group.
  friend bool operator==(const ExpertTokens&, const ExpertTokens&) = default;
};
/// The tokens of a group of `devices` inside an HDP rank of `tokens` tokens, under sequence parallelism; without groups
/// (1) all devices of the rank gather all tokens.
[[nodiscard]] ExpertTokens tokens_inside(std::int64_t tokens, std::int64_t tp, std::int64_t devices);

/// Rows of the products of each expert on one device: copies from all devices of its group, or the means of their
/// clusters.
struct ExpertRows {
  std::vector<std::int64_t> slowest;  ///< Rows on the device that has most of them.
  std::vector<std::int64_t> even;     ///< Rows on every device if the computed copies were spread evenly.
  std::int64_t sent = 0;              ///< Copies that leave the device that has most tokens.
  std::int64_t etp = 1;               ///< Devices that cut an expert, each of which receives a part of its copies.

  /// Copies that the device with most rows computes / of them, those that arrive in the all-to-all: devices that cut an
  /// expert bring theirs together.
  [[nodiscard]] std::int64_t computed() const;
  [[nodiscard]] std::int64_t received() const;
};
/// The rows for a model with experts; ep must divide their number (checked). With compression a
/// cluster is a copy.
[[nodiscard]] ExpertRows expert_rows(const MixtureOfExperts& moe, const ExpertLayout& layout,
                                     const ExpertTokens& tokens);
/// Rows of the fullest device relative to an even share of copies; below 1 if all devices drop copies, or compress
/// them.
[[nodiscard]] double hottest_device(const MixtureOfExperts& moe, const ExpertLayout& layout);

/// What the memory of layers with experts needs to know of a layout.
struct ExpertUse {
  std::int64_t ep = 1;   ///< See ExpertDivision.
  double hottest = 1;    ///< Copies on the expert device that has most, relative to an even share.
  std::int64_t etp = 1;  ///< See ExpertDivision.

  [[nodiscard]] ExpertDivision division() const { return {ep, etp}; }
};
/// The use that a layout makes of a model's experts; the default for a model without experts.
[[nodiscard]] ExpertUse expert_use(const Transformer& model, const ExpertLayout& layout);

/// Bytes of the all-to-all that brings copies to their experts or back, as nccl-tests counts them: what the device with
/// most to send or receive sends or receives, its own part included. That device sets the pace of the all-to-all. In
/// fp8 each 128 columns of a token have an fp32 scale.
[[nodiscard]] Bytes expert_exchange_bytes(const Transformer& model, const ExpertRows& rows, bool fp8 = false);
/// Bytes of the all-gather in which the devices that cut experts bring their copies together, and of the reduce-scatter
/// of the results' partial sums, as nccl-tests counts them: all copies that the device computes (Megatron-Core,
/// token_dispatcher.py, MoEAlltoAllTokenDispatcher.dispatch_postprocess and combine_preprocess).
[[nodiscard]] Bytes expert_gather_bytes(const Transformer& model, const ExpertRows& rows, bool fp8 = false);
/// expert_exchange_bytes() with each token counted once, and not for each of its experts: ExpertDispatch::per_node.
[[nodiscard]] Bytes token_exchange_bytes(const Transformer& model, const ExpertRows& rows, bool fp8 = false);

/// The mean number of parts in which a token has an expert, itself included, where `parts` equal parts of a mixture's
/// experts follow each other (checked), as on the devices or the nodes of an expert group. Every choice that the router
/// may make is equally likely: of groups_per_token groups, and of experts_per_token experts in them. O(parts + groups)
/// times the logarithm of the groups of a part.
[[nodiscard]] double mean_parts(const MixtureOfExperts& moe, std::int64_t parts);

}  // namespace hdpsim
