#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hdpsim {

/// A part of a layer that a framework captures in a CUDA graph of its own, forward and backward (Transformer Engine,
/// make_graphed_callables; Megatron-LM, --cuda-graph-scope).
enum class GraphModule : std::uint8_t {
  attention,  ///< Norm, products, attention and residual ("attn").
  mlp,        ///< A dense MLP with its norm and residual ("mlp").
  router,     ///< The norm of a layer with experts, its router, and what follows from it ("moe_router",
              ///< "moe_preprocess").
  experts,    ///< What becomes of tokens behind the router, of which each expert takes as many ("moe").
};
inline constexpr std::size_t graph_modules = 4;
/// Names of the modules, in the order of the enumeration.
inline constexpr std::array<std::string_view, graph_modules> graph_module_names = {"attention", "mlp", "router",
                                                                                   "experts"};

/// The modules of a layer that are captured: the host issues a graph in place of the kernels of one.
class GraphScope {
 public:
  constexpr void add(GraphModule module) { bits_ = static_cast<std::uint8_t>(bits_ | bit_of(module)); }
  [[nodiscard]] constexpr bool has(GraphModule module) const { return (bits_ & bit_of(module)) != 0; }
  friend constexpr bool operator==(const GraphScope&, const GraphScope&) = default;

 private:
  static constexpr std::uint8_t bit_of(GraphModule module) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(module));
  }
  std::uint8_t bits_ = 0;
};

}  // namespace hdpsim
