#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/operation.h"
#include "sim/model/parameters.h"
#include "sim/model/recipe.h"

namespace hdpsim {

/// Matrices of a device, which are dealt to so many ranks.
struct DealtMatrices {
  WeightMatrix matrix;
  std::int64_t ranks = 1;
};

/// The parameters of a device at the end of a step.
struct OptimizerShare {
  std::int64_t held = 0;                     ///< Those that it computes with ...
  std::int64_t updated = 0;                  ///< ... and those that it updates: a shard of them, or all.
  bool averages = true;                      ///< Several ranks sum gradients.
  std::vector<DealtMatrices> matrices = {};  ///< Those among the parameters that it holds; only Muon reads them.
};

/// The products that orthogonalize matrices of one shape: those of one matrix, the number of matrices, and the ranks to
/// which they are dealt.
struct Orthogonalization {
  std::vector<Gemm> products;
  std::int64_t matrices = 0;
  std::int64_t ranks = 1;
};

/// What a host does of a device's optimizer once a step (HostStates): it takes gradients, updates parameters and gives
/// them back, one after another or overlapped.
struct HostUpdate {
  std::int64_t parameters = 0;
  double per_s = 0;  ///< Parameters a second that it updates for each of its devices.
  Bytes from_device = {};
  Bytes to_device = {};
  bool overlaps = false;
};

/// What a device computes once a step for the optimizer.
struct OptimizerWork {
  MemoryBound elementwise;  ///< At the bandwidth of Adam's kernel.
  /// Under Muon, of all matrices of the device's parameters. They are dealt evenly to the ranks that hold the same,
  /// whole: a rank has an equal part of the work, or that of the largest matrix if it is more.
  std::vector<Orthogonalization> orthogonal = {};
  HostUpdate host = {};  ///< At the same time.
};

/// Adam reads the gradient, the master weight and both moments; it writes these three and the parameter. Without a
/// master weight it reads and writes the parameter in its place.
///
/// LAMB (You et al. 2020) does so in two kernels, the first of which writes the update, and takes the norms of weights
/// and updates of each tensor in between: five more passes in fp32 (Apex, csrc/multi_tensor_lamb.cu).
///
/// Muon (Jordan et al. 2024) has one moment. It orthogonalizes the momentum of every matrix by five iterations of
/// Newton and Schulz in bf16, three products each for m x n with m <= n: X X^T, the square of that, and its product
/// with X. With ZeRO-1 whole matrices are dealt to the ranks of the pool, so that gradients and parameters move as for
/// Adam. Under tensor parallelism every device orthogonalizes its part of a matrix by itself (Megatron-LM,
/// --muon-tp-mode blockwise). A pass reads the gradient, another reads and writes the momentum; the scaled copy
/// in bf16 is written and its norm is read, the update is read, the master weight read and written, and the parameter
/// written. Vectors and tables keep Adam; their kernels are counted like the matrices'.
///
/// With Recipe::gradient_buffer, as in Megatron-Core 0.8 (distributed/param_and_grad_buffer.py, optimizer/
/// clip_grads.py, distrib_optimizer.py): the buffer of gradients is cleared (a write), its norm is looked at for NaN (a
/// read) and, where ranks average, it is scaled (a read and a write); of the reduced gradients the norm is taken (a
/// read), and master weights are read and copied to the parameters (a write in place of Adam's). Gradients are only
/// multiplied where the norm is above the limit; that is not counted.
[[nodiscard]] OptimizerWork optimizer_work(const OptimizerShare& share, std::int64_t element_bytes,
                                           const Recipe& recipe);

/// Bytes that the optimizer keeps for so many parameters, the share `of_matrices` of which are in matrices of layers:
/// the master weight (Recipe::has_master()), and two moments, or for a matrix under Muon one.
[[nodiscard]] Bytes optimizer_bytes(const Recipe& recipe, std::int64_t parameters, double of_matrices);

}  // namespace hdpsim
