#include "calib/fit/impl/families.h"
#include "sim/cost/fitted_gemm.h"
#include "tests/unit/calib/fit/fit_support.h"

namespace hdpsim::calib {
namespace {

using testing::mean_of_normal;
using testing::Measured;

GemmTable table_of_tiles() {
  GemmTable table;
  table.tile_m = 128;
  table.tile_n = 256;
  table.launch = Duration{};
  table.full_rate = FlopRate(1e15);
  return table;
}

/// A grid over all sides with times from `seconds`.
template <class Seconds>
GemmTable grid(Seconds seconds, double noise) {
  GemmTable table = table_of_tiles();
  Measured measured(noise);
  for (const std::int64_t m : {256, 512, 1024, 2048, 4096, 8192}) {
    for (const std::int64_t n : {1024, 2048, 4096, 8192}) {
      for (const std::int64_t k : {1024, 2048, 4096, 8192}) {
        const double time = measured(seconds(Gemm{m, n, k})).median_s;
        table.by_shape.push_back({m, n, k, Duration::seconds(time), {}});
      }
    }
  }
  return table;
}

TEST_CASE("the coefficients of a law of matrix products are recovered", "[fit]") {
  GemmFit law;
  law.launch_s = 4e-6;
  law.flop_s = 1 / 700e12;
  law.element_s = 1e-12;
  const FittedGemm truth(law, table_of_tiles(), 132);
  const GemmTable table = grid([&](const Gemm& op) { return truth.law_seconds(op); }, 0);
  const GemmFit found = fit_gemm(table, 132, 1);
  INFO(found.form);
  // Times in the table are whole picoseconds.
  CHECK(found.launch_s == Approx(law.launch_s).epsilon(1e-4));
  CHECK(found.flop_s == Approx(law.flop_s).epsilon(1e-4));
  CHECK(found.element_s == Approx(law.element_s).epsilon(1e-3));
  CHECK(found.quality.held_out.max <= 1e-4);
}

TEST_CASE("where no law holds, samples near by predict a product that was left out", "[fit]") {
  // A library whose efficiency falls with n and rises with k: 300 to 700 TFLOP/s.
  const auto seconds = [](const Gemm& op) {
    const double work = 2.0 * static_cast<double>(op.m) * static_cast<double>(op.n) * static_cast<double>(op.k);
    const double efficiency =
        0.5 - 0.05 * std::log2(static_cast<double>(op.n) / 2896) + 0.08 * std::log2(static_cast<double>(op.k) / 2896);
    return 3e-6 + work / (efficiency * 1e15);
  };
  constexpr double noise = 0.01;
  const GemmFit found = fit_gemm(grid(seconds, noise), 1, 1);
  INFO(found.form << ", held out " << found.quality.held_out.mean);
  CHECK(found.neighbours > 0);
  CHECK(found.quality.held_out.mean <= 0.04);
  CHECK(found.quality.held_out.p95 <= 0.12);
}

TEST_CASE("noise alone calls for no neighbours", "[fit]") {
  GemmFit law;
  law.flop_s = 1 / 700e12;
  const FittedGemm truth(law, table_of_tiles(), 132);
  const GemmTable table = grid([&](const Gemm& op) { return truth.law_seconds(op); }, 0.02);
  const GemmFit found = fit_gemm(table, 132, 1);
  CHECK(found.neighbours == 0);
  CHECK(found.quality.held_out.mean <= 1.5 * mean_of_normal * 0.02);
}

}  // namespace
}  // namespace hdpsim::calib
