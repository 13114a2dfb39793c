// One GPU as a backend: memory, matrix products, times, tables on their way to the device, refusals.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

#include "kernels/cuda/copies.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/peak.h"
#include "kernels/spec/error.h"
#include "tests/gpu/sizes.h"
#include "tests/support/catch.h"
#include "tests/support/twin_launch.h"

namespace hdpsim::kernels {
namespace {

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace

TEST_CASE("a GPU says what it is and how it does", "[backend]") {
  const auto backend = make_cuda_backend();
  const DeviceInfo info = backend->info();
  CAPTURE(info.name, info.driver, info.cuda, info.instruction_set);
  CHECK_FALSE(info.name.empty());
  CHECK(info.multiprocessors > 1);
  CHECK(info.memory_bytes > std::int64_t{1} << 30);
  CHECK(info.cache_bytes > 1 << 20);
  CHECK_FALSE(info.driver.empty());
  CHECK(info.instruction_set.starts_with("sm_"));
  const DeviceState state = backend->state();
  if (state.temperature_c) CHECK((*state.temperature_c > 0 && *state.temperature_c < 120));
  if (state.clock_mhz) CHECK(*state.clock_mhz <= info.clock_mhz);
}

TEST_CASE("matrix products without rows do nothing, without k they give zeros", "[gemm]") {
  const auto backend = make_cuda_backend();
  TwinTensor c(*backend, {.rows = 2, .width = 3, .fp32 = true});
  c.fill(7, 0, 2);
  for (const auto& [rows, columns, beta, left] :
       {std::tuple(0, 4, 0.0F, 7.0F), std::tuple(2, 0, 1.0F, 7.0F), std::tuple(2, 0, 0.0F, 0.0F)}) {
    backend->run(
        MatrixProduct{.m = rows, .n = 3, .k = columns, .c = c[Side::device], .fp32_result = true, .beta = beta});
    CHECK(c.on_device(0, 2) == std::vector<float>(6, left));
  }
  CHECK_THROWS_AS(backend->run(MatrixProduct{.m = -1, .n = 3, .k = 4}), UnsupportedInput);
}

TEST_CASE("time calls the work as often as asked and measures the device, not the launches", "[time]") {
  const auto backend = make_cuda_backend();
  const std::size_t bytes = 256 * mebibyte;
  const DeviceMemory memory = backend->allocate(bytes);
  int calls = 0;
  const auto once = [&] {
    ++calls;
    backend->fill_bytes(memory.get(), 1, bytes);
  };
  CHECK(backend->time(3, false, once).size() == 3);
  CHECK(backend->time(40, true, once).size() == 40);
  CHECK(calls == 43);

  const double one = median(backend->time(21, false, once));
  const double four = median(backend->time(21, false, [&] {
    for (int i = 0; i < 4; ++i) once();
  }));
  const double rate = static_cast<double>(bytes) / one;
  CAPTURE(one, four, rate);
  CHECK((four >= 3.5 * one && four <= 4.5 * one));
  CHECK(rate <= cuda_device_peak().memory_bandwidth);
}

TEST_CASE("work that waits or fails behind the gate ends all the same", "[time]") {
  const auto backend = make_cuda_backend();
  CHECK(backend->time(2, false, [&] { backend->synchronize(); }).size() == 2);
  CHECK(backend->time(2, false, [&] { const DeviceMemory memory = backend->allocate(mebibyte); }).size() == 2);
  CHECK_THROWS_AS(backend->time(2, false, [] { throw UnsupportedInput("no"); }), UnsupportedInput);
  backend->synchronize();
}

TEST_CASE("staged tables arrive, many of them and large ones, also behind the gate", "[staging]") {
  const auto backend = make_cuda_backend();
  cuda::Launch& launch = launch_of(*backend);
  const std::size_t count = 200'000;
  const DeviceMemory kept = backend->allocate(count * sizeof(int));
  const auto stage_and_check = [&](std::size_t size, int first) {
    std::vector<int> table(size);
    std::iota(table.begin(), table.end(), first);
    const void* const staged = launch.stage(table.data(), table.size() * sizeof(int));
    std::vector<int> sent = table;
    std::ranges::fill(table, -1);  // the host's memory may be reused at once
    backend->copy(kept.get(), staged, size * sizeof(int));
    std::vector<int> found(size);
    backend->download(found.data(), kept.get(), size * sizeof(int));
    REQUIRE((found == sent));
  };
  for (int round = 0; round < 100; ++round) stage_and_check(1000, round % 40);
  stage_and_check(count, 1);
  stage_and_check(3, 1);
  int next = 0;
  CHECK(backend->time(40, false, [&] { stage_and_check(100, next++ % 30); }).size() == 40);
}

TEST_CASE("what a kernel counts in a staged table does not show when it is staged again", "[staging]") {
  const auto backend = make_cuda_backend();
  cuda::Launch& launch = launch_of(*backend);
  const std::vector<int> table(100, 7);
  for (int round = 0; round < 3; ++round) {
    const void* const staged = launch.stage(table.data(), table.size() * sizeof(int));
    std::vector<int> found(table.size());
    backend->download(found.data(), staged, found.size() * sizeof(int));
    REQUIRE((found == table));
    backend->fill_bytes(const_cast<void*>(staged), 1, table.size() * sizeof(int));
  }
}

TEST_CASE("copies to and from the host are timed, also while the other direction is busy", "[copies]") {
  const auto backend = make_cuda_backend();
  CopyTimer timer(*backend, 32 * mebibyte);
  for (const CopyDirection direction : {CopyDirection::to_host, CopyDirection::to_device}) {
    const double alone = median(timer.time(direction, 32 * mebibyte, false, 9));
    const double half = median(timer.time(direction, 16 * mebibyte, false, 9));
    const double both = median(timer.time(direction, 32 * mebibyte, true, 9));
    CAPTURE(alone, half, both);
    CHECK((half >= 0.4 * alone && half <= 0.7 * alone));
    CHECK(both >= 0.9 * alone);
  }
  CHECK_THROWS_AS(timer.time(CopyDirection::to_host, 33 * mebibyte, false, 1), UnsupportedInput);
}

TEST_CASE("kernels run beside traffic of every kind, and the traffic ends", "[copies]") {
  const auto backend = make_cuda_backend();
  const std::size_t bytes = 256 * mebibyte;
  const DeviceMemory memory = backend->allocate(bytes);
  const auto work = [&] { backend->fill_bytes(memory.get(), 1, bytes); };
  const double alone = median(backend->time(9, false, work));
  for (const TrafficKind kind :
       {TrafficKind::to_host, TrafficKind::to_device, TrafficKind::both_ways, TrafficKind::peer}) {
    const Traffic traffic(*backend, kind, kind == TrafficKind::peer ? 8 : 0);
    const double beside = median(backend->time(9, false, work));
    CAPTURE(static_cast<int>(kind), alone, beside);
    CHECK(beside >= 0.9 * alone);
  }
  CHECK_THROWS_AS(Traffic(*backend, TrafficKind::peer, 0), UnsupportedInput);
}

TEST_CASE("what a GPU cannot do is refused by name", "[backend]") {
  CHECK_THROWS_AS(make_cuda_backend(99), DeviceError);
  const auto backend = make_cuda_backend();
  const auto more_than_there_is = static_cast<std::size_t>(2 * backend->info().memory_bytes);
  CHECK_THROWS_WITH(backend->allocate(more_than_there_is),
                    Catch::Matchers::Contains("cudaMalloc of") && Catch::Matchers::Contains("are free"));
  CHECK_NOTHROW(backend->allocate(mebibyte));  // it goes on
}

}  // namespace hdpsim::kernels
