#include "sim/cost/coverage.h"

#include "tests/unit/cost/cost_support.h"

namespace hdpsim {
namespace {

using testing::launch_of;
using testing::round_device;

/// Forward attention of head dimension 128 from 256 to 4,096 tokens, products of one shape, kernels of 1 to 100 MB.
DeviceProfile measured_device() {
  DeviceProfile profile = round_device();
  AttentionFit fit;
  fit.head_dim = 128;
  fit.tile_queries = 128;
  fit.tile_keys = 128;
  fit.pairs = {{128, 1e-12}};
  fit.shortest = 256;
  fit.longest = 4096;
  profile.fits.attention = {fit};
  GemmTable table;
  table.tile_m = 128;
  table.tile_n = 128;
  table.full_rate = 100_TFLOPs;
  table.by_shape = {{1024, 4096, 4096, 400_us, {}}};
  profile.gemm = table;
  profile.fits.gemm = GemmFit{.form = "", .flop_s = 1e-14, .quality = {}};
  MemoryBoundFit kernels;
  kernels.kernel = every_kernel;
  kernels.curve = {3_us, {{Bytes(1'000'000), 1000_GBps}}};
  kernels.least = Bytes(1'000'000);
  kernels.most = Bytes(100'000'000);
  profile.fits.memory_bound = {kernels};
  return profile;
}

TEST_CASE("what a profile covers is no news", "[coverage]") {
  const DeviceProfile profile = measured_device();
  const auto model = make_cost_model(profile);
  WatchedCostModel watched(*model);
  const Attention op = launch_of({2048, 1024, Mask::full, 1});
  CHECK(watched.attention(op).time == model->attention(op).time);
  CHECK(watched.gemm({1024, 4096, 4096}).time == 400_us);
  CHECK(watched.memory_bound({Bytes(4'000'000), 2}).time == model->memory_bound({Bytes(4'000'000), 2}).time);
  CHECK(watched.take_coverage().warnings(profile).empty());
}

TEST_CASE("what lies beyond is told with counts, extents and what was measured", "[coverage]") {
  const DeviceProfile profile = measured_device();
  const auto model = make_cost_model(profile);
  WatchedCostModel watched(*model);
  (void)watched.attention(launch_of({2048, 1024, Mask::full, 1}));
  (void)watched.attention(launch_of({128, 64, Mask::full, 1}));
  (void)watched.attention(launch_of({65536, 1024, Mask::full, 1}));
  (void)watched.attention(launch_of({2048, 1024, Mask::full, 1}, Direction::backward));
  (void)watched.gemm({8192, 4096, 4096});
  (void)watched.gemm({1024, 4096, 4096});
  (void)watched.memory_bound({Bytes(2'000'000'000), 1});
  CHECK(
      watched.take_coverage().warnings(profile) ==
      std::vector<std::string>{
          "forward attention of head dimension 128: 2 of 3 launches are mostly of blocks of other sizes (64 ... 65536 "
          "tokens; measured 256 ... 4096)",
          "backward attention of head dimension 128: never measured, 1 launches are guessed",
          "matrix products: 1 of 2 are far from any that was measured (m 8192, n 4096, k 4096; measured m 1024, n "
          "4096, k 4096)",
          "memory-bound kernels: 1 of 1 move other amounts (2000 MB; measured 1 ... 100 MB)"});
}

TEST_CASE("products that are known by their work alone have no shapes to be told", "[coverage]") {
  DeviceProfile profile = measured_device();
  profile.gemm->by_shape.clear();
  profile.gemm->by_work = {{1, 0.5}};
  const auto model = make_cost_model(profile);
  WatchedCostModel watched(*model);
  (void)watched.gemm({8192, 4096, 4096});
  CHECK(watched.take_coverage().warnings(profile) ==
        std::vector<std::string>{"matrix products: never measured, 1 are guessed"});
}

TEST_CASE("coverage comes back from its numbers, and from no others", "[coverage]") {
  const auto model = make_cost_model(measured_device());
  WatchedCostModel watched(*model);
  CHECK(Coverage::of_numbers(Coverage().numbers()) == Coverage());
  (void)watched.attention(launch_of({65536, 1024, Mask::full, 1}));
  (void)watched.attention(launch_of({2048, 1024, Mask::full, 1}, Direction::backward));
  (void)watched.gemm({8192, 4096, 4096});
  (void)watched.memory_bound({Bytes(2'000'000'000), 1});
  const Coverage coverage = watched.take_coverage();
  std::vector<std::int64_t> numbers = coverage.numbers();
  CHECK(Coverage::of_numbers(numbers) == coverage);
  CHECK(watched.take_coverage() == Coverage());
  numbers.pop_back();
  CHECK_FALSE(Coverage::of_numbers(numbers));
  CHECK_FALSE(Coverage::of_numbers({}));
}

TEST_CASE("a mask that was not measured is told apart from sizes that were not", "[coverage]") {
  const DeviceProfile profile = measured_device();
  const auto model = make_cost_model(profile);
  WatchedCostModel watched(*model);
  (void)watched.attention(launch_of({1024, 1024, Mask::causal, 1}));
  CHECK(watched.take_coverage().warnings(profile) ==
        std::vector<std::string>{"forward attention of head dimension 128: 1 of 1 launches are under a mask that was "
                                 "never measured"});
}

TEST_CASE("parts add up in any order", "[coverage]") {
  Coverage first;
  first.add(Gemm{10, 20, 30}, Evidence::extrapolated);
  first.add(launch_of({7, 9, Mask::full, 1}), Evidence::measured);
  Coverage second;
  second.add(Gemm{40, 2, 30}, Evidence::formula);
  second.add(launch_of({70, 90, Mask::full, 1}), Evidence::extrapolated);
  Coverage one_way = first;
  one_way.add(second);
  Coverage other_way = second;
  other_way.add(first);
  CHECK(one_way == other_way);
  CHECK(one_way != first);
}

}  // namespace
}  // namespace hdpsim
