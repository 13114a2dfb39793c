// What can be said of the CUDA backend where there may be no GPU.

#include "kernels/cuda/cuda_backend.h"

#include <cmath>

#include "kernels/cuda/peak.h"
#include "kernels/spec/error.h"
#include "tests/support/catch.h"

namespace hdpsim::kernels {

using Catch::Matchers::Contains;

TEST_CASE("without a GPU the error names the call and what to do", "[cuda]") {
  if (cuda_device_count() > 0) return;  // tests/gpu has the rest
  CHECK_THROWS_AS(make_cuda_backend(), DeviceError);
  CHECK_THROWS_WITH(make_cuda_backend(), Contains("cudaGetDeviceCount: "));
}

TEST_CASE("peaks by multiprocessor and clock are those of the data sheets", "[cuda]") {
  const auto teraflops = [](int capability, int multiprocessors, double clock_mhz) {
    return matrix_flops_per_clock(capability) * multiprocessors * clock_mhz * 1e-6;
  };
  CHECK(teraflops(80, 108, 1410) == Approx(312).epsilon(0.01));    // A100
  CHECK(teraflops(90, 132, 1830) == Approx(989.4).epsilon(0.01));  // H100 SXM, H200
}

}  // namespace hdpsim::kernels
