#pragma once

#include "kernels/exec/impl/dense_kernels.h"

namespace hdpsim::kernels::exec {

/// The experts of a layer on one device, with n the input of the MLP's half, part by part as programs have them:
///   router         s = n W_r^T; the experts of each token, and their weights (RouteForward)
///   copies         of n, in the order of the experts (SortCopies)
///   experts        of each one (silu(g) u) W_down^T with g, u = copy W_gate_up^T
///   sum_of_copies  the branch's output: a token's copies by their weights, and what the shared experts made
/// Backward takes them in reverse; there is no loss that balances experts, and none of them drops tokens. The element
/// is fp32, in memory of the host: the rows of each expert are known only when the router has run.
class ExpertMixture {
 public:
  explicit ExpertMixture(const LayerWork& work) : work_(work), moe_(*work.kind.moe) {}

  void router();
  void copies();
  void experts();
  void activation();
  void sum_of_copies();

  void sum_of_copies_back();
  void experts_back();
  void copies_back();
  void router_back();

 private:
  [[nodiscard]] const Linear& scores() const { return work_.tensors.product(DensePart::router); }
  [[nodiscard]] CopiesOfTokens of_tokens(const float* weights) const;
  /// Where the rows of one expert begin, and how many they are.
  struct Rows {
    std::int64_t begin = 0;
    std::int64_t count = 0;
  };
  /// Calls visit(kernels for the rows, gate and up, down, rows) for every expert that has some.
  template <class Visit>
  void for_each_expert(Visit visit);
  [[nodiscard]] void* at(void* data, std::int64_t row, std::int64_t width) const {
    return static_cast<std::byte*>(data) + work_.kernels.bytes_of(row * width);
  }

  LayerWork work_;
  const MixtureOfExperts& moe_;
};

}  // namespace hdpsim::kernels::exec
