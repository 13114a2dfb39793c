#include "kernels/cuda/impl/matrix_product.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/spec/error.h"
#include "kernels/spec/shared_library.h"

namespace hdpsim::kernels::cuda {
namespace {

/// The size that NVIDIA recommends for Hopper (cuBLAS documentation, cublasSetWorkspace).
constexpr std::size_t most_workspace = std::size_t{32} << 20;

std::string text(const MatrixProduct& op) {
  return fmt::format("matrix product of {} x {} x {}{}{}", op.m, op.n, op.k, op.a_transposed ? ", A transposed" : "",
                     op.b_transposed ? ", B transposed" : "");
}

/// The largest power of two that divides all addresses; kernels do not check beyond 256 bytes.
std::size_t alignment_of(const MatrixProduct& op) {
  const auto bits = reinterpret_cast<std::uintptr_t>(op.a) | reinterpret_cast<std::uintptr_t>(op.b) |
                    reinterpret_cast<std::uintptr_t>(op.c) | std::uintptr_t{256};
  return std::size_t{1} << static_cast<unsigned>(std::countr_zero(bits));
}

}  // namespace

struct MatrixProducts::CublasLt {
  SharedLibrary library{
      "matrix products need cuBLASLt",
      {"libcublasLt.so." HDPSIM_CUDA_MAJOR, "/usr/local/cuda/lib64/libcublasLt.so." HDPSIM_CUDA_MAJOR}};

// NOLINTBEGIN(bugprone-macro-parentheses): a part of names, not a value
#define HDPSIM_CUBLASLT(name) \
  decltype(&cublasLt##name) name = library.function<decltype(&cublasLt##name)>("cublasLt" #name)
  // NOLINTEND(bugprone-macro-parentheses)
  HDPSIM_CUBLASLT(Create);
  HDPSIM_CUBLASLT(Destroy);
  HDPSIM_CUBLASLT(GetStatusString);
  HDPSIM_CUBLASLT(Matmul);
  HDPSIM_CUBLASLT(MatmulAlgoGetHeuristic);
  HDPSIM_CUBLASLT(MatmulDescCreate);
  HDPSIM_CUBLASLT(MatmulDescDestroy);
  HDPSIM_CUBLASLT(MatmulDescSetAttribute);
  HDPSIM_CUBLASLT(MatmulPreferenceCreate);
  HDPSIM_CUBLASLT(MatmulPreferenceDestroy);
  HDPSIM_CUBLASLT(MatmulPreferenceSetAttribute);
  HDPSIM_CUBLASLT(MatrixLayoutCreate);
  HDPSIM_CUBLASLT(MatrixLayoutDestroy);
#undef HDPSIM_CUBLASLT

  cublasLtHandle_t handle = nullptr;

  CublasLt() {
    check(Create(&handle), "cublasLtCreate");
  }
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;
  ~CublasLt() {
    Destroy(handle);
  }

  void check(cublasStatus_t status, std::string_view call) const {
    if (status != CUBLAS_STATUS_SUCCESS) throw DeviceError(fmt::format("{}: {}", call, GetStatusString(status)));
  }

  template <class Object>
  using Handle = std::unique_ptr<std::remove_pointer_t<Object>, cublasStatus_t (*)(Object)>;

  [[nodiscard]] Handle<cublasLtMatrixLayout_t> layout(cudaDataType_t type, std::int64_t rows,
                                                      std::int64_t columns) const {
    cublasLtMatrixLayout_t made = nullptr;
    check(MatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows),
          "cublasLtMatrixLayoutCreate");
    return {made, MatrixLayoutDestroy};
  }
  [[nodiscard]] Handle<cublasLtMatmulDesc_t> product(cublasOperation_t first, cublasOperation_t second) const {
    cublasLtMatmulDesc_t made = nullptr;
    check(MatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    Handle<cublasLtMatmulDesc_t> product{made, MatmulDescDestroy};
    check(MatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
          "CUBLASLT_MATMUL_DESC_TRANSA");
    check(MatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
          "CUBLASLT_MATMUL_DESC_TRANSB");
    return product;
  }
  [[nodiscard]] Handle<cublasLtMatmulPreference_t> preference(std::size_t alignment) const {
    cublasLtMatmulPreference_t made = nullptr;
    check(MatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
    Handle<cublasLtMatmulPreference_t> preference{made, MatmulPreferenceDestroy};
    check(MatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most_workspace,
                                       sizeof most_workspace),
          "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES");
    const auto bytes = static_cast<std::uint32_t>(alignment);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      check(MatmulPreferenceSetAttribute(made, attribute, &bytes, sizeof bytes), "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT");
    }
    return preference;
  }
};

/// cuBLASLt is column-major, and reads a row-major matrix as its transpose. So it is asked for C^T = B^T A^T: B comes
/// first, and its n rows are those of the result.
struct MatrixProducts::Plan {
  CublasLt::Handle<cublasLtMatmulDesc_t> product;
  CublasLt::Handle<cublasLtMatrixLayout_t> b, a, c;
  cublasLtMatmulHeuristicResult_t choice{};
};

MatrixProducts::MatrixProducts() = default;
MatrixProducts::~MatrixProducts() = default;

const MatrixProducts::Plan& MatrixProducts::plan(const MatrixProduct& op) {
  const std::size_t alignment = alignment_of(op);
  const Key key{op.m, op.n, op.k, op.a_transposed, op.b_transposed, op.fp32_result, op.beta == 0, alignment};
  if (const auto known = plans_.find(key); known != plans_.end()) return known->second;

  const CublasLt& lt = *cublas_lt_;
  Plan plan{
      .product = lt.product(op.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, op.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N),
      .b = op.b_transposed ? lt.layout(CUDA_R_16BF, op.k, op.n) : lt.layout(CUDA_R_16BF, op.n, op.k),
      .a = op.a_transposed ? lt.layout(CUDA_R_16BF, op.m, op.k) : lt.layout(CUDA_R_16BF, op.k, op.m),
      .c = lt.layout(op.fp32_result ? CUDA_R_32F : CUDA_R_16BF, op.n, op.m)};
  int found = 0;
  const cublasStatus_t status =
      lt.MatmulAlgoGetHeuristic(lt.handle, plan.product.get(), plan.b.get(), plan.a.get(), plan.c.get(), plan.c.get(),
                                lt.preference(alignment).get(), 1, &plan.choice, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) {
    throw UnsupportedInput(fmt::format("{}: cuBLASLt has no kernel for it", text(op)));
  }
  lt.check(status, "cublasLtMatmulAlgoGetHeuristic, " + text(op));
  return plans_.emplace(key, std::move(plan)).first->second;
}

void MatrixProducts::run(Launch& launch, const MatrixProduct& op) {
  if (std::min({op.m, op.n, op.k}) < 0) throw UnsupportedInput(text(op) + ": a negative size");
  if (op.m == 0 || op.n == 0) return;
  if (op.k == 0) {
    if (op.beta == 1) return;
    if (op.beta != 0) throw UnsupportedInput(text(op) + ": without k, beta must be 0 or 1");
    const auto bytes = static_cast<std::size_t>(op.m * op.n) * (op.fp32_result ? 4 : 2);
    cuda::check(cudaMemsetAsync(op.c, 0, bytes, launch.stream()), "cudaMemsetAsync");
    return;
  }
  if (!cublas_lt_) cublas_lt_ = std::make_unique<CublasLt>();
  const Plan& chosen = plan(op);
  const float alpha = 1;
  const std::size_t workspace_bytes = chosen.choice.workspaceSize;
  void* workspace = workspace_bytes > 0 ? launch.scratch(workspace_bytes) : nullptr;
  cublas_lt_->check(cublas_lt_->Matmul(cublas_lt_->handle, chosen.product.get(), &alpha, op.b, chosen.b.get(), op.a,
                                       chosen.a.get(), &op.beta, op.c, chosen.c.get(), op.c, chosen.c.get(),
                                       &chosen.choice.algo, workspace, workspace_bytes, launch.stream()),
                    "cublasLtMatmul, " + text(op));
}

}  // namespace hdpsim::kernels::cuda
