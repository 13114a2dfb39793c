#pragma once

#include <cstdint>

namespace hdpsim::kernels {

// A mixture of experts on one device: every token goes through `chosen` of the experts. "element" is the backend's
// type, as in layer.h; gradients are written.

/// The experts of each token: those with the largest scores, the lower one where two are equal, by falling score. Their
/// weights are the softmax over the chosen scores (Jiang et al. 2024, section 2.1).
/// scores: element [tokens, experts]; ids: [tokens, chosen]; weights: fp32 [tokens, chosen].
struct RouteForward {
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;
  const void* scores = nullptr;
  std::int32_t* ids = nullptr;
  float* weights = nullptr;
};

/// d_scores = w (d_weights - sum over the chosen of w d_weights) of the chosen experts, 0 of the others.
/// d_weights: fp32 [tokens, chosen]; d_scores: element [tokens, experts].
struct RouteBackward {
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;
  const std::int32_t* ids = nullptr;
  const float* weights = nullptr;
  const float* d_weights = nullptr;
  void* d_scores = nullptr;
};

/// A row for each copy of a token, in the order of the experts, and of the tokens for each of them.
/// ids: [tokens, chosen]; rows: [tokens, chosen], of each copy; begins: [experts + 1], where each expert's rows begin.
struct SortCopies {
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;
  const std::int32_t* ids = nullptr;
  std::int32_t* rows = nullptr;
  std::int32_t* begins = nullptr;
};

/// What tokens and their copies are to each other. tokens: element [tokens, width]; copies: element [tokens chosen,
/// width]; rows: of SortCopies; weights: fp32 [tokens, chosen], null for 1.
struct CopiesOfTokens {
  std::int64_t tokens = 0;
  std::int64_t chosen = 0;
  std::int64_t width = 0;
  const std::int32_t* rows = nullptr;
  const float* weights = nullptr;
};

/// copies[rows[t, j]] = weights[t, j] x[t].
struct SpreadTokens {
  CopiesOfTokens of;
  const void* x = nullptr;
  void* copies = nullptr;
};

/// y[t] = sum over j of weights[t, j] copies[rows[t, j]], in the order of j, to which y is added where `add`.
struct SumCopies {
  CopiesOfTokens of;
  const void* copies = nullptr;
  void* y = nullptr;
  bool add = false;
};

/// d_weights[t, j] = d_y[t] . copies[rows[t, j]]; fp32. The weights are not read.
struct WeightGradients {
  CopiesOfTokens of;
  const void* d_y = nullptr;
  const void* copies = nullptr;
  float* d_weights = nullptr;
};

}  // namespace hdpsim::kernels
