#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/model/impl/config_reader.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

using namespace model_ranges;

// Queries, keys and values of equal heads, and a gate (MiniMax-01, 2025, section 2.2).
LinearMixing lightning(const LinearKeys& keys, const Transformer& model) {
  const std::int64_t columns = model.heads * model.head_dim;
  return {.heads = model.heads,
          .key_heads = model.heads,
          .key_dim = model.head_dim,
          .value_dim = model.head_dim,
          .chunk = keys.usual_chunk,
          .inputs = 4 * columns,
          .parameters = columns};  // of the norm
}

// Channels of the width of the hidden states, times a factor; each has a state of its own (Gu and Dao 2023).
LinearMixing mamba(ConfigMap& config, const LinearKeys& keys, const Transformer& model) {
  const std::int64_t channels = config.number({keys.expand, 2}, chosen) * model.hidden;
  const std::int64_t state = config.number({keys.key_dim, 16}, heads);
  const std::int64_t rank = config.number_or(keys.step_rank, width, (model.hidden + 15) / 16);
  return {.heads = channels,
          .key_heads = 1,
          .key_dim = state,
          .value_dim = 1,
          .chunk = keys.usual_chunk,
          .inputs = 2 * channels,
          .convolved = channels,
          .taps = config.number({keys.taps, 4}, heads),
          .step_rank = rank,
          .parameters = channels * (state + 3) + rank + 2 * state};  // A, D and two biases; three norms
}

// A convolution of each channel over a few tokens, between a gate of what it reads and one of what it writes (Liquid AI
// 2025, LFM2, arXiv 2511.23404, section 2.1); its state is the tokens that the taps still reach.
LinearMixing convolution(ConfigMap& config, const LinearKeys& keys, const Transformer& model) {
  const std::int64_t channels = model.hidden;
  const std::int64_t taps = config.number({keys.taps, 3}, {2, heads.most});
  const bool has_biases = config.truth({.key = keys.biases});
  return {.heads = channels,
          .key_heads = 1,
          .key_dim = taps - 1,
          .value_dim = 1,
          .chunk = keys.usual_chunk,
          .inputs = 3 * channels,
          .convolved = channels,
          .taps = taps,
          .parameters = has_biases ? 5 * channels : 0};
}

// A gated delta net whose keys have a decay for each column (Kimi Team 2025, Kimi Linear, arXiv 2510.26692, section 3):
// queries, keys and values of equal heads, the strength a head, and two latents as wide as a head, which products widen
// to the decays and to the gate of the output. These products are counted, and not priced: a fortieth of the others.
LinearMixing kimi_delta(ConfigMap& config, const LinearKeys& keys) {
  const std::int64_t count = config.number({keys.heads}, heads);
  const std::int64_t width = config.number({keys.key_dim}, heads);
  const std::int64_t columns = count * width;
  return {.heads = count,
          .key_heads = count,
          .key_dim = width,
          .value_dim = width,
          .chunk = keys.usual_chunk,
          .inputs = 3 * columns + count + 2 * width,
          .convolved = 3 * columns,
          .taps = config.number({keys.taps, 4}, heads),
          .delta_rule = true,
          // Both products, the decay and its bias, and a norm of one head.
          .parameters = 2 * width * columns + count + columns + width};
}

void check_heads(ConfigMap& config, const LinearKeys& keys, const LinearMixing& mixing, std::int64_t channels) {
  if (mixing.heads == 0 || mixing.key_heads == 0 || mixing.value_dim == 0) return;  // reported
  if (mixing.heads % mixing.key_heads != 0) {
    config.error_at(
        keys.key_heads,
        fmt::format("'{}' is {}, which does not divide {} heads", keys.key_heads, mixing.key_heads, mixing.heads),
        "every group of keys serves equally many heads");
  }
  if (channels > 0 && mixing.heads * mixing.value_dim != channels) {
    config.error_at(
        keys.heads,
        fmt::format("{} heads of {} are not the {} channels, '{}' x the hidden size", mixing.heads, mixing.value_dim,
                    channels, keys.expand),
        fmt::format("state '{}' and '{}' of which the product is the channels", keys.heads, keys.value_dim));
  }
}

// Both have values, a gate as wide, keys and queries (B and C of Mamba-2, Dao and Gu 2024), and numbers a head: the
// step of Mamba-2; the decay and the strength of a delta net (Yang et al. 2024).
LinearMixing with_gate(ConfigMap& config, const LinearKeys& keys, const Transformer& model) {
  LinearMixing mixing{.heads = config.number({keys.heads}, heads),
                      .key_heads = config.number({keys.key_heads}, heads),
                      .key_dim = config.number({keys.key_dim}, heads)};
  const std::int64_t channels = keys.expand.empty() ? 0 : config.number_or(keys.expand, chosen, 2) * model.hidden;
  mixing.value_dim = config.number({keys.value_dim, divided(channels, std::max<std::int64_t>(1, mixing.heads))}, heads);
  check_heads(config, keys, mixing, channels);
  mixing.chunk = config.number_or(keys.chunk, {1, 1e5}, keys.usual_chunk);
  mixing.taps = config.number({keys.taps, 4}, heads);
  mixing.delta_rule = keys.kind == LinearKind::gated_delta;
  const std::int64_t values = mixing.heads * mixing.value_dim;
  const std::int64_t both_keys = 2 * mixing.key_heads * mixing.key_dim;
  mixing.convolved = values + both_keys;
  mixing.inputs = 2 * values + both_keys + (mixing.delta_rule ? 2 : 1) * mixing.heads;
  // A, D and the step's bias, the convolution's bias and the norm; or the decay, its bias and a norm of one head.
  mixing.parameters =
      mixing.delta_rule ? 2 * mixing.heads + mixing.value_dim : 3 * mixing.heads + mixing.convolved + values;
  return mixing;
}

}  // namespace

LinearMixing read_linear_mixing(ConfigMap& config, const LinearKeys& keys, const Transformer& model) {
  switch (keys.kind) {
    case LinearKind::lightning:
      return lightning(keys, model);
    case LinearKind::mamba:
      return mamba(config, keys, model);
    case LinearKind::convolution:
      return convolution(config, keys, model);
    case LinearKind::kimi_delta:
      return kimi_delta(config, keys);
    case LinearKind::mamba2:
    case LinearKind::gated_delta:
      return with_gate(config, keys, model);
    case LinearKind::none:
      break;
  }
  config.error_at("layer_types", "some of the model's layers mix tokens in linear time, which its family does not",
                  "state 'architectures' of a family that has such layers, or other 'layer_types'");
  return {};
}

}  // namespace hdpsim
