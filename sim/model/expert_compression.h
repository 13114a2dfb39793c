#pragma once

#include <cstdint>

#include "sim/model/experts.h"
#include "sim/model/operation.h"
#include "sim/model/transformer.h"
#include "sim/model/work.h"

namespace hdpsim {

// What a device that sends `copies` of tokens to experts does for ExpertCompression, before the first all-to-all and
// behind the second. It needs the copies themselves, so that nothing of it overlaps with either.
//
//   forward, before:  a product of the copies with the columns of all rotations: 2 x hashes x columns FLOPs an element
//                     of the copies; the largest component of each; a radix sort by the hashes; the mean of each
//                     cluster and what each copy differs from it
//   forward, behind:  each copy's result is that of its mean plus its difference
//   backward, before: the sum of each cluster's gradients. The clusters are those of forward
//   backward, behind: a copy's gradient is its part of that of its mean, plus its own less the mean of its cluster's
//
// Kernels read and write whole tensors; the copies are read or written five times forward (mean 1, difference 2, result
// 2) and three times backward. Assumed: the paper states no kernels.

[[nodiscard]] LinearPart clustering(const Transformer& model, const ExpertCompression& compression, std::int64_t copies,
                                    Direction direction);
[[nodiscard]] LinearPart restoring(const Transformer& model, const ExpertCompression& compression, std::int64_t copies,
                                   Direction direction);

}  // namespace hdpsim
