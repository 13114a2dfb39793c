#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "sim/model/number_type.h"

namespace hdpsim {

/// Products of a layer to which adapters are added, by the names that frameworks have for the modules.
enum class AdapterTarget : std::uint8_t {
  q_proj,  ///< HuggingFace: each weight has an adapter of its own.
  k_proj,
  v_proj,
  o_proj,
  gate_proj,
  up_proj,
  down_proj,
  linear_qkv,  ///< Megatron: one adapter for weights that are one product; o_proj and down_proj are the other two.
  linear_fc1,
};
inline constexpr std::size_t adapter_targets = 9;
inline constexpr std::array<std::string_view, adapter_targets> adapter_target_names = {
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "linear_qkv", "linear_fc1"};

/// A set of these.
class AdapterTargets {
 public:
  constexpr AdapterTargets() = default;
  constexpr AdapterTargets(std::initializer_list<AdapterTarget> targets) {
    for (const AdapterTarget target : targets) add(target);
  }
  constexpr void add(AdapterTarget target) { bits_ = static_cast<std::uint16_t>(bits_ | bit_of(target)); }
  [[nodiscard]] constexpr bool has(AdapterTarget target) const { return (bits_ & bit_of(target)) != 0; }
  [[nodiscard]] constexpr bool intersects(const AdapterTargets& other) const { return (bits_ & other.bits_) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  friend constexpr bool operator==(const AdapterTargets&, const AdapterTargets&) = default;

  static const AdapterTargets all_linear;  ///< PEFT's `all-linear`.

 private:
  static constexpr std::uint16_t bit_of(AdapterTarget target) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(target));
  }
  std::uint16_t bits_ = 0;
};
inline constexpr AdapterTargets AdapterTargets::all_linear{
    AdapterTarget::q_proj,    AdapterTarget::k_proj,  AdapterTarget::v_proj,   AdapterTarget::o_proj,
    AdapterTarget::gate_proj, AdapterTarget::up_proj, AdapterTarget::down_proj};

/// Low-rank adapters (Hu et al. 2021, arXiv 2106.09685): the model is frozen, and to the output of a target's product
/// with W (n x k) that of B A is added, with A of rank x k and B of n x rank. Only A and B are trained.
///
/// Each adapter is two products, of which backward has both gradients, and two kernels: one scales its output, another
/// adds it to the product's; backward scales the gradient of the output, and adds that of the input to the product's
/// (PEFT, tuners/lora/layer.py, Linear.forward; Megatron-Bridge, peft/lora_layers.py, LoRALinear.forward). With dropout
/// an adapter drops its input first, and keeps what is left with its mask.
///
/// Frozen products have no gradient of their weight, and keep their input for adapters alone. Weights in 4 bits are
/// dequantized by a kernel for every product, in backward again (bitsandbytes, autograd/_functions.py, MatMul4Bit).
/// Tables, norms and the head stay elements (transformers keeps the head out of 4 bits).
///
/// Under tensor parallelism A is whole where the weight's rows are cut and cut where its columns are, and B the other
/// way round (PEFT, tuners/lora/tp_layer.py); the sum of the rank's columns over the group is not counted.
struct Lora {
  std::int64_t rank = 0;  ///< 0: there are no adapters, and all parameters are trained.
  AdapterTargets targets = AdapterTargets::all_linear;
  bool dropout = false;
  NumberType base = NumberType::bf16;  ///< Of frozen weights of layers: bf16 (elements), nf4 or nf4_double.

  [[nodiscard]] bool is_on() const { return rank > 0; }
  [[nodiscard]] bool dequantizes() const { return is_on() && base != NumberType::bf16; }
  friend bool operator==(const Lora&, const Lora&) = default;
};

}  // namespace hdpsim
