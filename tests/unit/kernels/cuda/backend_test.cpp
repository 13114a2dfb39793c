// What can be said of the CUDA backend where there may be no GPU.

#include "kernels/cuda/cuda_backend.h"

#include <cmath>

#include "kernels/cuda/library.h"
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

TEST_CASE("a library that is missing, or too old, is named", "[cuda]") {
  CHECK_THROWS_WITH(cuda::Library("rings between GPUs need NCCL", {"libhdpsim-missing.so.2", "libhdpsim-missing.so"}),
                    Contains("rings between GPUs need NCCL, but none of libhdpsim-missing.so.2, libhdpsim-missing.so "
                             "can be opened"));
  const cuda::Library library("mathematics need a library", {"libhdpsim-missing.so", "libm.so.6"});
  const auto cosine = library.function<double (*)(double)>("cos");
  CHECK(cosine(0.5) == Approx(std::cos(0.5)));
  CHECK_FALSE(library.has("hdpsim_no_such_function"));
  CHECK_THROWS_WITH(library.function<void (*)()>("hdpsim_no_such_function"),
                    "mathematics need a library, but libm.so.6 has no hdpsim_no_such_function: it is too old");
}

TEST_CASE("peaks by multiprocessor and clock are those of the data sheets", "[cuda]") {
  const auto teraflops = [](int capability, int multiprocessors, double clock_mhz) {
    return matrix_flops_per_clock(capability) * multiprocessors * clock_mhz * 1e-6;
  };
  CHECK(teraflops(80, 108, 1410) == Approx(312).epsilon(0.01));    // A100
  CHECK(teraflops(90, 132, 1830) == Approx(989.4).epsilon(0.01));  // H100 SXM, H200
}

}  // namespace hdpsim::kernels
