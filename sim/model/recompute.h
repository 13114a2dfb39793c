#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace hdpsim {

/// A module of a layer: forward work whose results are either kept for backward or recomputed there.
enum class LayerModule : std::uint8_t {
  norm,        ///< Both norms: they make the inputs of the QKV product and of the MLP from the residual stream.
  qkv,         ///< Queries, keys and values, with rope applied.
  attention,   ///< The attention core: everything between queries, keys and values and its output.
  projection,  ///< The projection of attention's output, and the residual behind it: the input of the MLP's norm.
  mlp,         ///< The dense MLP as a whole: everything between its input and its output.
  activation,  ///< The activation of the MLP or of the experts alone: its output, from its input.
  experts,     ///< The MLP of layers with experts as a whole, router and shared experts included.
};
inline constexpr std::size_t layer_modules = 7;  // of the 8 bits of a Recompute
/// Names of the modules, in the order of the enumeration.
inline constexpr std::array<std::string_view, layer_modules> layer_module_names = {
    "norm", "qkv", "attention", "projection", "mlp", "activation", "experts"};

/// The activations of a layer that backward recomputes: those of a set of modules, as in Megatron-LM
/// (`--recompute-modules`), all of them, or what no saved operation makes.
class Recompute {
 public:
  constexpr Recompute() = default;
  constexpr Recompute(std::initializer_list<LayerModule> modules) {
    for (const LayerModule module : modules) add(module);
  }
  constexpr void add(LayerModule module) { bits_ = static_cast<std::uint8_t>(bits_ | bit_of(module)); }
  [[nodiscard]] constexpr bool has(LayerModule module) const { return (bits_ & bit_of(module)) != 0; }
  [[nodiscard]] constexpr bool intersects(const Recompute& other) const { return (bits_ & other.bits_) != 0; }
  friend constexpr bool operator==(const Recompute&, const Recompute&) = default;

  static const Recompute none;
  static const Recompute selective;  ///< The attention core (Korthikanti et al. 2022).
  static const Recompute full;       ///< The layer as a whole: only its input is kept.
  /// Outputs of the layer's first, third, ... product, of its attention and of its sums over tensor-parallel devices
  /// are kept, and all else is computed again, every second product included (torchtitan's selective checkpointing
  /// `op`: distributed/activation_checkpoint.py). It has no modules.
  static const Recompute per_operation;

 private:
  static constexpr std::uint8_t of_operations = 0x80;
  constexpr explicit Recompute(std::uint8_t bits) : bits_(bits) {}
  static constexpr std::uint8_t bit_of(LayerModule module) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(module));
  }
  std::uint8_t bits_ = 0;
};
inline constexpr Recompute Recompute::none{};
inline constexpr Recompute Recompute::selective{LayerModule::attention};
inline constexpr Recompute Recompute::full{LayerModule::norm,       LayerModule::qkv, LayerModule::attention,
                                           LayerModule::projection, LayerModule::mlp, LayerModule::activation,
                                           LayerModule::experts};
inline constexpr Recompute Recompute::per_operation{Recompute::of_operations};

/// Names of sets of modules.
inline constexpr std::array<std::string_view, 4> recompute_names = {"none", "selective", "full", "per_operation"};
inline constexpr std::array<Recompute, 4> named_recomputes = {Recompute::none, Recompute::selective, Recompute::full,
                                                              Recompute::per_operation};

}  // namespace hdpsim
