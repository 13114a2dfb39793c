#include <chrono>
#include <thread>
#include <vector>

#include "kernels/cpu/core_peak.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/spec/error.h"
#include "tests/support/catch.h"

using namespace hdpsim::kernels;

TEST_CASE("the processor is described", "[backend]") {
  const auto backend = make_cpu_backend();
  const DeviceInfo info = backend->info();
  CHECK_FALSE(info.name.empty());
  CHECK(info.multiprocessors == 1);
  CHECK(info.memory_bytes > 0);
  CHECK(info.instruction_set == name_of(best_instruction_set()));
  CHECK(backend->element() == Element::fp32);
  CHECK_FALSE(backend->state().throttled);
}

TEST_CASE("the plain instruction set is always there, and the best comes last", "[backend]") {
  const auto sets = instruction_sets();
  REQUIRE_FALSE(sets.empty());
  CHECK(sets.front() == InstructionSet::portable);
  CHECK(sets.back() == best_instruction_set());
}

TEST_CASE("an instruction set that this machine lacks is refused by name", "[backend]") {
  for (const InstructionSet set : {InstructionSet::avx2, InstructionSet::avx512}) {
    if (set <= best_instruction_set()) continue;
    CHECK_THROWS_AS(make_cpu_backend(set), DeviceError);
  }
}

TEST_CASE("memory is aligned to 256 bytes, carries what is copied, and is refused where there is none", "[backend]") {
  const auto backend = make_cpu_backend();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{5} << 20}) {
    const DeviceMemory memory = backend->allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % 256 == 0);
    backend->fill_bytes(memory.get(), 7, bytes);
  }
  const DeviceMemory there = backend->allocate(12);
  const DeviceMemory beside = backend->allocate(12);
  const float sent[] = {1, 2, 3};
  float received[] = {0, 0, 0};
  backend->upload(there.get(), sent, sizeof sent);
  backend->copy(beside.get(), there.get(), sizeof sent);
  backend->download(received, beside.get(), sizeof sent);
  CHECK(received[2] == 3);
  CHECK_THROWS_AS(backend->allocate(std::size_t{1} << 60), DeviceError);
}

TEST_CASE("time runs the work as often as asked and counts what this thread computes, not how long it waits",
          "[backend]") {
  const auto backend = make_cpu_backend();
  std::vector<double> waited;  // within what is timed: a clock on the wall would count more
  const auto sleeping = backend->time(3, false, [&] {
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    waited.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  });
  REQUIRE(waited.size() == 3);
  REQUIRE(sleeping.size() == 3);
  for (std::size_t run = 0; run < 3; ++run) CHECK(sleeping[run] < waited[run]);
  CHECK_FALSE(backend->state().emptying_s);
  CHECK(backend->time(1, true, [] {}).size() == 1);
  CHECK(backend->state().emptying_s.value_or(0) > 0);
}

TEST_CASE("a matrix product is refused that OpenBLAS cannot count, an empty one does nothing", "[backend]") {
  const auto backend = make_cpu_backend();
  CHECK_THROWS_AS(backend->run(MatrixProduct{.m = 1, .n = 1, .k = std::int64_t{1} << 31}), UnsupportedInput);
  CHECK_THROWS_AS(backend->run(MatrixProduct{.m = -1, .n = 1, .k = 1}), UnsupportedInput);
  CHECK_NOTHROW(backend->run(MatrixProduct{.m = 0, .n = 5, .k = 5}));
}

TEST_CASE("measured peaks are rates that a processor can have", "[backend]") {
  const double flops = fma_peak_flops();
  CHECK(flops > 1e8);
  CHECK(flops < 2e12);
  const double bandwidth = copy_bandwidth();
  CHECK(bandwidth > 1e8);
  CHECK(bandwidth < 2e12);
}
