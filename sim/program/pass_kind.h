#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hdpsim {

enum class PassKind : std::uint8_t {
  whole,            ///< Forward and backward together: the only kind with one stage, but for chunks in order.
  forward,          ///< F
  backward,         ///< B: all of backward.
  input_gradient,   ///< B of a split backward: the part that the previous stage waits for.
  weight_gradient,  ///< W: the other part, which no stage waits for before the end of the step.
};
inline constexpr std::size_t pass_kinds = 5;
/// `whole`, `forward`, `backward`, `input gradient`, `weight gradient`.
[[nodiscard]] std::string_view pass_kind_name(PassKind kind);

/// Whether the activations of the chunk are in memory from this pass on, as from a forward pass.
[[nodiscard]] bool keeps_activations(PassKind kind);
/// Whether the pass reads the activations and computes gradients of hidden states, at least at its end. Memory is then
/// fullest.
[[nodiscard]] bool goes_backward(PassKind kind);
/// Whether the activations of the chunk are released after the pass. A weight-gradient pass still needs those of the
/// input-gradient pass.
[[nodiscard]] bool releases_activations(PassKind kind);
/// Whether the result goes to the next chunk of the model, as that of a forward pass in a pipeline.
[[nodiscard]] bool sends_forward(PassKind kind);
/// Whether the result, the gradients of hidden states, goes to the previous chunk in a pipeline.
[[nodiscard]] bool sends_backward(PassKind kind);

}  // namespace hdpsim
