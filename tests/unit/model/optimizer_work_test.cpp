#include "sim/model/optimizer_work.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

const OptimizerShare a_quarter{.held = 400, .updated = 100, .averages = true};

TEST_CASE("Adam reads a gradient, a weight and two moments, and writes these three and the parameter", "[model]") {
  CHECK(optimizer_work(a_quarter, 2, {}).elementwise.traffic == Bytes(100 * (4 + 3 * 4 + 3 * 4 + 2)));
  CHECK(optimizer_work(a_quarter, 2, {.gradient_bytes = 2}).elementwise.traffic ==
        Bytes(100 * (2 + 3 * 4 + 3 * 4 + 2)));
}

TEST_CASE("a buffer of gradients is cleared, checked and scaled whole; the norm and a copy are of what is updated",
          "[model]") {
  const Recipe buffered{.gradient_buffer = true};
  const Bytes adam = optimizer_work(a_quarter, 2, {}).elementwise.traffic;
  const Bytes more = Bytes(100 * (4 + 4));
  CHECK(optimizer_work(a_quarter, 2, buffered).elementwise.traffic == adam + more + Bytes(400 * (4 + 4 + 2 * 4)));
  OptimizerShare of_one = a_quarter;
  of_one.averages = false;
  CHECK(optimizer_work(of_one, 2, buffered).elementwise.traffic == adam + more + Bytes(400 * (4 + 4)));
}

TEST_CASE("gradients that are sharded in every micro-batch have no such buffer", "[model]") {
  for (const std::int64_t zero : {2, 3}) {
    const Recipe buffered{.zero = zero, .gradient_buffer = true};
    CHECK(optimizer_work(a_quarter, 2, buffered).elementwise.traffic ==
          optimizer_work(a_quarter, 2, {.zero = zero}).elementwise.traffic);
  }
}

TEST_CASE("LAMB writes and reads its update, and takes two norms, besides what Adam does", "[model]") {
  const Bytes adam = optimizer_work(a_quarter, 2, {}).elementwise.traffic;
  const Bytes lamb = optimizer_work(a_quarter, 2, {.optimizer = Optimizer::lamb}).elementwise.traffic;
  // The update is written, and read for its norm and by the second kernel; weights are read for theirs and again.
  CHECK(lamb == adam + Bytes(100 * 5 * 4));
}

TEST_CASE("Muon has one moment less and orthogonalizes every matrix by fifteen products", "[model]") {
  const Recipe recipe{.optimizer = Optimizer::muon};
  OptimizerShare share = a_quarter;
  share.matrices = {{{.rows = 20, .columns = 8, .count = 3}, 4}};
  const OptimizerWork work = optimizer_work(share, 2, recipe);
  // Gradient; weight and momentum read and written; the copy in bf16 written and looked at, the update read; parameter.
  CHECK(work.elementwise.traffic == Bytes(100 * (4 + 4 * 4 + 3 * 2 + 2)));
  REQUIRE(work.orthogonal.size() == 1);
  const Orthogonalization& matrices = work.orthogonal.front();
  CHECK(matrices.matrices == 3);
  CHECK(matrices.ranks == 4);
  REQUIRE(matrices.products.size() == 15);
  double multiplied = 0;
  for (const Gemm& product : matrices.products) {
    multiplied += 2 * static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k);
  }
  CHECK(multiplied == 5 * (4.0 * 8 * 8 * 20 + 2.0 * 8 * 8 * 8));  // 4 m^2 n + 2 m^3 an iteration
  CHECK(optimizer_work(share, 2, {}).orthogonal.empty());
}

}  // namespace
}  // namespace hdpsim
