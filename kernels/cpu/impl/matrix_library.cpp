#include "kernels/cpu/impl/matrix_library.h"

#include <fmt/format.h>

#include "kernels/spec/shared_library.h"

namespace hdpsim::kernels::cpu {

const MatrixLibrary& matrix_library() {
  static const MatrixLibrary opened = [] {
    const SharedLibrary library("matrix products need OpenBLAS", {"libopenblas.so.0", "libopenblasp.so.0"});
    // One backend is one core; ranks are threads of their own.
    library.function<decltype(&openblas_set_num_threads)>("openblas_set_num_threads")(1);
    const auto core = library.function<decltype(&openblas_get_corename)>("openblas_get_corename");
    return MatrixLibrary{library.function<decltype(&cblas_sgemm)>("cblas_sgemm"),
                         fmt::format("OpenBLAS for {}", core())};
  }();
  return opened;
}

}  // namespace hdpsim::kernels::cpu
