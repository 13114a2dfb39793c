#pragma once

#include "sim/base/quantity_limits.h"
#include "sim/document/reader.h"

namespace hdpsim {

/// Limits of what a configuration may state. Some hundred times the largest trained models, and still such that the
/// elements of one tensor of the longest micro-batch and the parameters of one layer fit 64 bits.
namespace model_ranges {
inline constexpr Range layers{1, 10'000};
inline constexpr Range hidden{1, 1e6};
inline constexpr Range heads{1, 1e5};  ///< Number and size of heads.
inline constexpr Range width{1, 1e7};  ///< Inner width of an MLP or of all experts of a token, width of all heads.
inline constexpr Range vocabulary{1, 1e7};
inline constexpr Range positions{1, limits::most_tokens_of_sequence};
inline constexpr Range experts{1, 1e5};
inline constexpr Range chosen{1, 1000};  ///< Experts per token.
inline constexpr double most_parameters = 1e15;
}  // namespace model_ranges

}  // namespace hdpsim
