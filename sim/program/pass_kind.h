#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hdpsim {

enum class PassKind : std::uint8_t {
  whole,            ///< Forward and backward: of a pipeline of one stage, the only kind.
  forward,          ///< F
  backward,         ///< B: all of backward.
  input_gradient,   ///< B of a backward in two parts: what the stage before waits for.
  weight_gradient,  ///< W: the other part, which nobody waits for before the end of the step.
};
inline constexpr std::size_t pass_kinds = 5;
/// `whole`, `forward`, `backward`, `input gradient`, `weight gradient`.
[[nodiscard]] std::string_view pass_kind_name(PassKind kind);

/// Whether activations of the pass's chunk are in memory from it on: forward's are.
[[nodiscard]] bool keeps_activations(PassKind kind);
/// Whether it is (or ends in) a pass that reads the activations and makes gradients of hidden states: the fullest moment.
[[nodiscard]] bool goes_backward(PassKind kind);
/// Whether nobody needs the activations of the chunk behind it. A weight gradient needs what backward needed.
[[nodiscard]] bool releases_activations(PassKind kind);
/// Whether its result goes to the next chunk of the model: a forward pass of a pipeline.
[[nodiscard]] bool sends_forward(PassKind kind);
/// Whether its result goes to the chunk before it: the gradients of hidden states in a pipeline.
[[nodiscard]] bool sends_backward(PassKind kind);

}  // namespace hdpsim
