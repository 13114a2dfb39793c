#include "kernels/spec/shared_library.h"

#include <cmath>

#include "tests/support/catch.h"

namespace hdpsim::kernels {

using Catch::Matchers::Contains;

TEST_CASE("a library that is missing, or too old, is named", "[library]") {
  CHECK_THROWS_WITH(SharedLibrary("rings between GPUs need NCCL", {"libhdpsim-missing.so.2", "libhdpsim-missing.so"}),
                    Contains("rings between GPUs need NCCL, but none of libhdpsim-missing.so.2, libhdpsim-missing.so "
                             "can be opened"));
  const SharedLibrary library("mathematics need a library", {"libhdpsim-missing.so", "libm.so.6"});
  const auto cosine = library.function<double (*)(double)>("cos");
  CHECK(cosine(0.5) == Approx(std::cos(0.5)));
  CHECK_FALSE(library.has("hdpsim_no_such_function"));
  CHECK_THROWS_WITH(library.function<void (*)()>("hdpsim_no_such_function"),
                    "mathematics need a library, but libm.so.6 has no hdpsim_no_such_function: it is too old");
}

}  // namespace hdpsim::kernels
