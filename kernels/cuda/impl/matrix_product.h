#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>

#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/launch.h"
#include "kernels/spec/layer.h"

namespace hdpsim::kernels::cuda {

/// Matrix products by cuBLASLt, bf16 with fp32 accumulation, on one device. The library is opened with the first
/// product; the choice of its heuristic is kept for each shape. Two runs give the same bits.
class MatrixProducts {
 public:
  MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;
  ~MatrixProducts();

  /// UnsupportedInput for sizes below zero and where cuBLASLt has no kernel.
  void run(Launch& launch, const MatrixProduct& op);

 private:
  struct CublasLt;
  struct Plan;
  /// Everything that the choice of a kernel depends on: m, n, k, a and b transposed, fp32 result, beta = 0, alignment
  /// of the pointers.
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, bool, bool, bool, bool, std::size_t>;

  const Plan& plan(const MatrixProduct& op);

  std::unique_ptr<CublasLt> cublas_lt_;
  std::map<Key, Plan> plans_;
};

}  // namespace hdpsim::kernels::cuda
