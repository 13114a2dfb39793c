// What the emulated instructions of Hopper do, each for itself: a reader of the kernels may look them up here.

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/gpu/emulator.h"
#include "tests/support/gpu/hopper.h"
// The kernels follow the emulator, which stands for nvcc.
#include "kernels/cuda/hopper/matrix.cuh"
#include "tests/support/catch.h"

namespace hdpsim::kernels::cuda::hopper {
namespace {

/// bf16 [rows, columns] of small integers, whose products fp32 holds exactly; aligned as tensors on a GPU are.
struct Matrix {
  Matrix(int rows_, int columns_, unsigned seed)
      : rows(rows_), columns(columns_), chunks(static_cast<std::size_t>(rows_ * columns_ / 8)) {
    std::mt19937 random(seed);
    for (int i = 0; i < rows * columns; ++i) {
      data()[i] = to_bf16(static_cast<float>(static_cast<int>(random() % 17) - 8));
    }
  }
  [[nodiscard]] bf16* data() { return reinterpret_cast<bf16*>(chunks.data()); }
  [[nodiscard]] float at(int row, int column) { return to_float(data()[row * columns + column]); }
  [[nodiscard]] ptx::TensorMap map(int box_rows) {
    return emulator::tensor_map(
        {.data = data(), .row_stride = columns, .columns = columns, .rows = rows, .box_rows = box_rows});
  }
  int rows;
  int columns;
  std::vector<ptx::Vector16> chunks;
};

/// One warpgroup loads `a` to the front of shared memory and `b` behind it, then does `work`.
template <class A, class B, class Work>
void with_operands(Matrix& a, Matrix& b, const Work& work) {
  const ptx::TensorMap a_map = a.map(A::rows);
  const ptx::TensorMap b_map = b.map(B::rows);
  emulator::launch_hopper({}, 128, A::bytes + B::bytes + 8, [&] {
    const auto& full = *reinterpret_cast<std::uint64_t*>(ptx::dynamic_shared() + A::bytes + B::bytes);
    const A a_matrix{0};
    const B b_matrix{A::bytes};
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(barrier_address(full), 2);
      load_panels(a_matrix, a_map, 0, 0, full);
      load_panels(b_matrix, b_map, 0, 0, full);
    }
    __syncthreads();
    await(full, 0);
    work(a_matrix, b_matrix);
  });
}

/// The thread's accumulators at their places of a [64, 8 n] result.
template <int n>
void collect(std::vector<float>& result, const float (&d)[n][4]) {
  for (int j = 0; j < n; ++j) {
    for (int e = 0; e < 4; ++e) {
      const int row = 16 * warp_of_group() + lane_row() + 8 * (e / 2);
      result[static_cast<std::size_t>(row) * 8 * n + static_cast<std::size_t>(8 * j + lane_column() + e % 2)] = d[j][e];
    }
  }
}

/// Sum over k < depth of a(row, k) b(k, column), of a [64, columns] result.
template <class A, class B>
std::vector<float> product(int columns, int depth, const A& a, const B& b) {
  std::vector<float> result;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < columns; ++column) {
      float sum = 0;
      for (int k = 0; k < depth; ++k) sum += a(row, k) * b(k, column);
      result.push_back(sum);
    }
  }
  return result;
}

template <int n>
void check_rows_by_rows() {
  Matrix a(128, 128, 1);
  Matrix b(8 * n, 128, 2);
  std::vector<float> result(std::size_t{64} * 8 * n);
  with_operands<Panels<128, 128>, Panels<8 * n, 128>>(a, b, [&](const auto& left, const auto& right) {
    float d[n][4];
    ptx::wgmma_fence(d);
    multiply_rows_by_rows(d, left, 64, right);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(d);
    collect(result, d);
  });
  CHECK(result ==
        product(
            8 * n, 128, [&](int i, int k) { return a.at(64 + i, k); }, [&](int k, int j) { return b.at(j, k); }));
}

template <int n>
void check_registers_by_columns() {
  Matrix a(64, 64, 3);
  Matrix b(64, 8 * n, 4);
  std::vector<float> result(std::size_t{64} * 8 * n);
  with_operands<Panels<64, 64>, Panels<64, 8 * n>>(a, b, [&](const auto&, const auto& right) {
    float a_rows[8][4];
    for (int j = 0; j < 8; ++j) {
      for (int e = 0; e < 4; ++e) {
        a_rows[j][e] = a.at(16 * warp_of_group() + lane_row() + 8 * (e / 2), 8 * j + lane_column() + e % 2);
      }
    }
    std::uint32_t operand[4][4];
    round_to_operand(operand, a_rows);
    float d[n][4];
    for (auto& tile : d) std::fill_n(tile, 4, 1.0F);
    ptx::wgmma_fence(d, operand);
    multiply_registers_by_columns(d, operand, right);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(d, operand);
    collect(result, d);
  });
  std::vector<float> expected = product(
      8 * n, 64, [&](int i, int k) { return a.at(i, k); }, [&](int k, int j) { return b.at(k, j); });
  for (float& value : expected) value += 1;  // what d held
  CHECK(result == expected);
}

}  // namespace

TEST_CASE("wgmma multiplies rows by rows of swizzled shared memory", "[hopper]") {
  check_rows_by_rows<8>();
  check_rows_by_rows<16>();
}

TEST_CASE("wgmma multiplies registers by columns and adds", "[hopper]") {
  check_registers_by_columns<8>();
  check_registers_by_columns<16>();
}

TEST_CASE("wgmma multiplies columns by columns: both operands transposed, in any panel", "[hopper]") {
  Matrix a(128, 128, 5);
  Matrix b(128, 128, 6);
  std::vector<float> result(std::size_t{64} * 64);
  with_operands<Panels<128, 128>, Panels<128, 128>>(a, b, [&](const auto& left, const auto& right) {
    float d[8][4];
    ptx::wgmma_fence(d);
    multiply_columns_by_columns(d, left, 64, right, 64);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(d);
    collect(result, d);
  });
  CHECK(result ==
        product(
            64, 128, [&](int i, int k) { return a.at(k, 64 + i); }, [&](int k, int j) { return b.at(k, 64 + j); }));
}

TEST_CASE("a box lands swizzled, zeros outside of the tensor, and not before it is waited for", "[hopper]") {
  Matrix tensor(20, 128, 7);
  const ptx::TensorMap map = tensor.map(16);
  emulator::launch_hopper({}, 1, 2048 + 8, [&] {
    const auto& full = *reinterpret_cast<std::uint64_t*>(ptx::dynamic_shared() + 2048);
    const auto* const shared = reinterpret_cast<const bf16*>(ptx::dynamic_shared());
    ptx::mbarrier_init(barrier_address(full), 1);
    ptx::mbarrier_arrive_expecting(barrier_address(full), 2048);
    ptx::load_box(0, map, 64, 8, barrier_address(full));
    REQUIRE(std::isnan(to_float(shared[0])));
    await(full, 0);
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 64; ++column) {
        const int place = (column / 8) ^ (row % 8);
        const float expected = 8 + row < 20 ? tensor.at(8 + row, 64 + column) : 0;
        REQUIRE(to_float(shared[64 * row + 8 * place + column % 8]) == expected);
      }
    }
  });
}

TEST_CASE("a box is added as it lies in shared memory when that is waited for, within the tensor", "[hopper]") {
  std::vector<ptx::Vector16> memory(10 * 32 / 4);
  auto* const tensor = reinterpret_cast<float*>(memory.data());
  std::fill_n(tensor, 320, 1.0F);
  const ptx::TensorMap map = emulator::tensor_map(
      {.data = tensor, .row_stride = 32, .columns = 32, .rows = 10, .box_rows = 8, .element_bytes = 4});
  emulator::launch_hopper({}, 1, 1024, [&] {
    auto* const shared = reinterpret_cast<float*>(ptx::dynamic_shared());
    ptx::add_box(map, 0, 4, 0);
    ptx::commit_boxes();
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 32; ++column) {
        shared[32 * row + 4 * ((column / 4) ^ row) + column % 4] = static_cast<float>(100 * row + column);
      }
    }
    ptx::wait_for_boxes();
  });
  for (int row = 0; row < 10; ++row) {
    for (int column = 0; column < 32; ++column) {
      REQUIRE(tensor[32 * row + column] == (row < 4 ? 1 : 1 + static_cast<float>(100 * (row - 4) + column)));
    }
  }
}

TEST_CASE("matrices that are stored for the async proxy are there once they are fenced", "[hopper]") {
  emulator::launch_hopper({}, 32, 2048, [&] {
    const Panels<16, 64> matrix{0};
    const auto* const shared = reinterpret_cast<const bf16*>(ptx::dynamic_shared());
    float values[2][4];
    for (int j = 0; j < 2; ++j) {
      for (int e = 0; e < 4; ++e) {
        const int row = lane_row() + 8 * (e / 2);
        values[j][e] = static_cast<float>(16 * row + 8 * j + lane_column() + e % 2);
      }
    }
    std::uint32_t operand[1][4];
    round_to_operand(operand, values);
    ptx::store_matrix_for_async(matrix.chunk(lane_index() % 16, lane_index() / 16 * 8), operand[0]);
    if (lane_index() == 0) REQUIRE(std::isnan(to_float(shared[0])));
    ptx::fence_async();
    __syncwarp();
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 16; ++column) {
        REQUIRE(to_float(shared[matrix.chunk(row, column) / 2 + static_cast<unsigned>(column % 8)]) ==
                static_cast<float>(16 * row + column));
      }
    }
  });
}

TEST_CASE("the phases of a barrier end when all have arrived, one after the other", "[hopper]") {
  std::vector<unsigned> order;
  emulator::launch_hopper({}, 3, 8, [&] {
    const auto& barrier = *reinterpret_cast<std::uint64_t*>(ptx::dynamic_shared());
    if (threadIdx.x == 0) ptx::mbarrier_init(barrier_address(barrier), 2);
    __syncthreads();
    if (threadIdx.x > 0) {
      order.push_back(threadIdx.x);
      ptx::mbarrier_arrive(barrier_address(barrier));
      return;
    }
    await(barrier, 1);  // There was no phase yet: passes.
    await(barrier, 0);
    order.push_back(0);
    for (int arrivals = 0; arrivals < 2; ++arrivals) ptx::mbarrier_arrive(barrier_address(barrier));
    await(barrier, 1);
  });
  REQUIRE(order.size() == 3);
  CHECK(order.back() == 0);
}

namespace {

/// Launches a warpgroup that multiplies registers, with `before` and `after` the product, and says how that ends.
template <class Before, class After>
void multiply_between(const Before& before, const After& after) {
  Matrix a(64, 64, 8);
  Matrix b(64, 64, 9);
  with_operands<Panels<64, 64>, Panels<64, 64>>(a, b, [&](const auto&, const auto& right) {
    float d[8][4] = {};
    std::uint32_t operand[4][4] = {};
    before(d, operand);
    multiply_registers_by_columns(d, operand, right);
    after(d, operand);
  });
}

const auto fence = [](auto& d, auto& operand) { ptx::wgmma_fence(d, operand); };

}  // namespace

TEST_CASE("products without a fence, without a commit or that nobody waits for are told", "[hopper]") {
  const auto nothing = [](auto&, auto&) {};
  REQUIRE_THROWS_WITH(multiply_between(nothing, nothing), Catch::Contains("without wgmma_fence()"));
  REQUIRE_THROWS_WITH(multiply_between(fence, [](auto& d, auto&) { ptx::wgmma_wait<0>(d); }),
                      Catch::Contains("not committed"));
  REQUIRE_THROWS_WITH(multiply_between(fence, [](auto&, auto&) { ptx::wgmma_commit(); }),
                      Catch::Contains("ended with products under way"));
}

TEST_CASE("registers that are touched while a product runs are told", "[hopper]") {
  REQUIRE_THROWS_WITH(multiply_between(fence,
                                       [](auto& d, auto&) {
                                         ptx::wgmma_commit();
                                         d[3][1] += 1;
                                         ptx::wgmma_wait<0>(d);
                                       }),
                      Catch::Contains("the result of a product was touched"));
  REQUIRE_THROWS_WITH(multiply_between(fence,
                                       [](auto& d, auto& operand) {
                                         ptx::wgmma_commit();
                                         operand[1][2] = 7;
                                         ptx::wgmma_wait<0>(d);
                                       }),
                      Catch::Contains("the left operand of a product was touched"));
}

TEST_CASE("an arrival too many, a barrier that was not made and a store without its fence are told", "[hopper]") {
  REQUIRE_THROWS_WITH(emulator::launch_hopper({}, 1, 8, [] { ptx::mbarrier_arrive(0); }),
                      Catch::Contains("no barrier was made"));
  REQUIRE_THROWS_WITH(emulator::launch_hopper({}, 1, 8,
                                              [] {
                                                ptx::mbarrier_init(0, 1);
                                                ptx::mbarrier_wait(0, 0);
                                              }),
                      Catch::Contains("cannot go on") && Catch::Contains("mbarrier"));
  REQUIRE_THROWS_WITH(emulator::launch_hopper({}, 1, 16, [] { ptx::store16_for_async(0, {}); }),
                      Catch::Contains("without fence_async()"));
}

}  // namespace hdpsim::kernels::cuda::hopper
