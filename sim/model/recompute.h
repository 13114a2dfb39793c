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
inline constexpr std::size_t layer_modules = 7;
/// Names of the modules, in the order of the enumeration.
inline constexpr std::array<std::string_view, layer_modules> layer_module_names = {
    "norm", "qkv", "attention", "projection", "mlp", "activation", "experts"};

/// The activations of a layer that backward recomputes: those of a set of modules, as in Megatron-LM
/// (`--recompute-modules`), or all of them.
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

 private:
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

/// Names of sets of modules.
inline constexpr std::array<std::string_view, 3> recompute_names = {"none", "selective", "full"};
inline constexpr std::array<Recompute, 3> named_recomputes = {Recompute::none, Recompute::selective, Recompute::full};

}  // namespace hdpsim
