#pragma once

#include <cblas.h>

#include <string>

namespace hdpsim::kernels::cpu {

/// OpenBLAS on one core. It is opened with the first backend: where it is linked, it starts a thread for every core of
/// the machine before main(), and these spin for some 25 ms, in every process that multiplies nothing.
struct MatrixLibrary {
  decltype(&cblas_sgemm) sgemm = nullptr;
  std::string name;  ///< With the processor whose kernels it has chosen.
};

/// The same for the whole process. DeviceError if the machine has none.
[[nodiscard]] const MatrixLibrary& matrix_library();

}  // namespace hdpsim::kernels::cpu
