#pragma once

#include <cstdint>
#include <string_view>

namespace hdpsim {

/// What an operator of a CPU does, as far as its name says.
enum class OperatorClass : std::uint8_t {
  attention_forward,
  attention_backward,
  product,
  memory_bound,  ///< All other operators that compute.
  message,       ///< Starts messages or waits for them, on the thread that calls it.
  transfer,      ///< A message under way, from its start to its end: other operators run meanwhile.
  frame,         ///< Calls others, and computes only where it calls none: nodes of autograd, functions of the user.
};

/// The class of a "cpu_op" of PyTorch: aten::mm is a product, c10d::send and gloo:send are messages.
[[nodiscard]] OperatorClass operator_class(std::string_view name);

}  // namespace hdpsim
