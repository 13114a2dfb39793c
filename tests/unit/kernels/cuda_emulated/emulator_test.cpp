#include "tests/support/gpu/emulator.h"

#include <cmath>
#include <random>

#include "tests/support/catch.h"

using namespace hdpsim;
using namespace hdpsim::emulator;
namespace ptx = hdpsim::kernels::cuda::ptx;
using kernels::cuda::bf16;
using kernels::cuda::to_bf16;
using kernels::cuda::to_float;

namespace {

/// An integer matrix: its products are exact in bf16 and fp32.
std::vector<bf16> small_integers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> digit(-8, 8);
  std::vector<bf16> values(count);
  for (bf16& value : values) {
    value = to_bf16(static_cast<float>(digit(random)));
  }
  return values;
}

}  // namespace

TEST_CASE("bf16 rounds to the nearest, ties to even, and keeps NaN") {
  REQUIRE(to_float(to_bf16(1.0F)) == 1.0F);
  REQUIRE(to_float(to_bf16(1.0F + 1.0F / 256)) == 1.0F);               // a tie: 1 has the even mantissa
  REQUIRE(to_float(to_bf16(1.0F + 3.0F / 256)) == 1.0F + 4.0F / 256);  // a tie: up to even
  REQUIRE(to_float(to_bf16(1.0F + 1.1F / 256)) == 1.0F + 2.0F / 256);
  REQUIRE(std::isnan(to_float(to_bf16(NAN))));
  REQUIRE(std::isinf(to_float(to_bf16(INFINITY))));
}

TEST_CASE("every thread of every block runs once") {
  std::vector<int> runs(std::size_t{3} * 2 * 64);
  launch({3, 2, 1}, 64, 0, [&] { ++runs[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x]; });
  REQUIRE(std::all_of(runs.begin(), runs.end(), [](int n) { return n == 1; }));
}

TEST_CASE("a barrier shows every thread what the others wrote before it") {
  const std::uint64_t seed = GENERATE(0U, 1U, 2U);
  std::vector<int> from_neighbour(128);
  launch(
      {}, 128, 128 * sizeof(int),
      [&] {
        auto* shared = reinterpret_cast<int*>(ptx::dynamic_shared());
        shared[threadIdx.x] = static_cast<int>(threadIdx.x);
        __syncthreads();
        from_neighbour[threadIdx.x] = shared[(threadIdx.x + 37) % 128];
      },
      seed);
  for (int i = 0; i < 128; ++i) {
    REQUIRE(from_neighbour[static_cast<std::size_t>(i)] == (i + 37) % 128);
  }
}

TEST_CASE("without the barrier some order of the threads shows that it is missing") {
  bool seen = false;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    launch(
        {}, 64, 64 * sizeof(float),
        [&] {
          auto* shared = reinterpret_cast<float*>(ptx::dynamic_shared());
          shared[threadIdx.x] = 1.0F;
          seen = seen || std::isnan(shared[63 - threadIdx.x]);
        },
        seed);
  }
  REQUIRE(seen);
}

TEST_CASE("a barrier that not all threads reach is told, not waited for") {
  REQUIRE_THROWS_WITH(launch({}, 64, 0,
                             [] {
                               if (threadIdx.x >= 32) {
                                 __syncthreads();
                               }
                             }),
                      Catch::Contains("cannot go on") &&
                          Catch::Contains("warp 1, 32 lanes from lane 0: __syncthreads") &&
                          Catch::Contains("warp 0, 32 lanes from lane 0: ended"));
}

TEST_CASE("lanes that are at different instructions are told") {
  REQUIRE_THROWS_WITH(launch({}, 32, 0,
                             [] {
                               if (threadIdx.x < 16) {
                                 __syncwarp();
                               } else {
                                 (void)ptx::any(true);
                               }
                             }),
                      Catch::Contains("any where other lanes of the group are at __syncwarp"));
}

TEST_CASE("a copy behind the thread's back lands when it is waited for and not before") {
  alignas(16) std::array<float, 4> source = {1, 2, 3, 4};
  float before = 0;
  float after = 0;
  float zero = 1;
  launch({}, 1, 32, [&] {
    const auto* shared = reinterpret_cast<const float*>(ptx::dynamic_shared());
    ptx::cp_async_16(0, source.data(), true);
    ptx::cp_async_16(16, nullptr, false);
    ptx::cp_async_commit();
    before = shared[2];
    ptx::cp_async_wait<0>();
    after = shared[2];
    zero = shared[7];
  });
  REQUIRE(std::isnan(before));
  REQUIRE(after == 3.0F);
  REQUIRE(zero == 0.0F);
}

TEST_CASE("shared memory ends where the launch said") {
  REQUIRE_THROWS_WITH(launch({}, 1, 64, [] { ptx::store4_shared(64, 0); }), Catch::Contains("where the launch has 64"));
  REQUIRE_THROWS_WITH(launch({}, 1, 64, [] { ptx::store4_shared(2, 0); }), Catch::Contains("not aligned"));
}

TEST_CASE("ldmatrix and mma multiply matrices of shared memory exactly") {
  const std::vector<bf16> a = small_integers(16 * 16, 1);
  const std::vector<bf16> b = small_integers(16 * 8, 2);  // [k, n]
  std::vector<float> product(16 * 8);
  launch({}, 32, 2 * (16 * 16 + 16 * 8), [&] {
    const unsigned lane = threadIdx.x;
    auto* shared = reinterpret_cast<bf16*>(ptx::dynamic_shared());
    std::copy_n(a.begin() + 8 * lane, 8, shared + 8 * lane);
    if (lane < 16) {
      std::copy_n(b.begin() + 8 * lane, 8, shared + 16 * 16 + 8 * lane);
    }
    __syncwarp();
    std::uint32_t a_fragment[4];
    std::uint32_t b_fragment[4];
    // Matrices in the order of the a registers: rows 0-7 and 8-15 of columns 0-7, then of columns 8-15.
    ptx::ldmatrix_x4(a_fragment, 2 * (16 * (lane % 16) + 8 * (lane / 16)));
    // b is stored by rows of n, so its columns come by transposition; the second pair of matrices is not used.
    ptx::ldmatrix_x4_transposed(b_fragment, 2 * (16 * 16 + 8 * (lane % 16)));
    float d[4] = {0, 0, 0, 0};
    ptx::mma_16x8x16(d, a_fragment, b_fragment[0], b_fragment[1]);
    for (unsigned i = 0; i < 4; ++i) {
      product[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2] = d[i];
    }
  });
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < 16; ++k) {
        sum += to_float(a[16 * row + k]) * to_float(b[8 * k + column]);
      }
      REQUIRE(product[8 * row + column] == sum);
    }
  }
}

TEST_CASE("rows of one matrix that lie in the same banks are counted as conflicts") {
  const auto conflicts = [](std::uint32_t row_bytes) {
    return launch({}, 32, std::size_t{32} * row_bytes,
                  [row_bytes] {
                    std::uint32_t r[4];
                    ptx::ldmatrix_x4(r, threadIdx.x * row_bytes);
                  })
        .ldmatrix_conflicts;
  };
  REQUIRE(conflicts(16) == 0);
  REQUIRE(conflicts(144) == 0);      // padded rows of 64 elements
  REQUIRE(conflicts(128) == 4 * 7);  // eight rows, all in one group of banks
}
