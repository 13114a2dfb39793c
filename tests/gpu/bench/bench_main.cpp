// usage: hdpsim_gpu_bench [--quick] [--out FILE]
//
// How fast the kernels are on this machine's first GPU: prints a line a measurement and writes all of it as JSON. The
// exit code is 3 without a GPU, 1 where a part could not be measured.

#include <cstdio>
#include <exception>
#include <string>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/spec/error.h"
#include "tests/gpu/bench/bench.h"

namespace hdpsim::kernels::bench {
namespace {

struct Options {
  bool quick = false;
  std::string out = "gpu_bench.json";
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--out" && i + 1 < argc) {
      options.out = argv[++i];
    } else {
      std::fprintf(stderr, "usage: hdpsim_gpu_bench [--quick] [--out FILE]\n");
      return false;
    }
  }
  return true;
}

int run(const Options& options) {
  const auto best = make_cuda_backend();
  const auto portable = make_cuda_backend(0, AttentionPath::portable);
  Report report(*best, options.out);
  report.part("memory", [&] { measure_memory(*best, report); });
  report.part("matrix products", [&] { measure_matrix_products(*best, report); });
  report.part("attention", [&] { measure_attention(*best, *portable, report, options.quick); });
  report.part("packed attention", [&] { measure_packed_attention(*best, report); });
  report.part("accumulation", [&] { measure_accumulation(*best, report); });
  report.part("virtual ring", [&] { measure_ring(*best, report); });
  report.part("offload", [&] { measure_offload(*best, report); });
  return report.complete() ? 0 : 1;
}

}  // namespace
}  // namespace hdpsim::kernels::bench

int main(int argc, char** argv) {
  hdpsim::kernels::bench::Options options;
  if (!hdpsim::kernels::bench::parse(argc, argv, options)) return 2;
  try {
    return hdpsim::kernels::bench::run(options);
  } catch (const hdpsim::kernels::DeviceError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
