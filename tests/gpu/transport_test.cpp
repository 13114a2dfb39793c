// Transports of GPUs, as far as one GPU goes: local-gpu with any number of virtual ranks, NCCL with one rank.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/local_gpu_transport.h"
#include "kernels/cuda/nccl_transport.h"
#include "kernels/spec/error.h"
#include "tests/gpu/mirrored_transport.h"
#include "tests/support/catch.h"
#include "tests/support/not_run.h"
#include "tests/support/transport_laws.h"

namespace hdpsim::kernels {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

TEST_CASE("collectives of virtual ranks on one GPU are the plain sums and copies", "[gpu][local-gpu]") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const std::size_t count : {0, 1, 1001, 300'000}) {
      CAPTURE(ranks, count);
      LawReport report;
      run_local_gpu_ranks(ranks, [&](Backend& backend, Transport& transport) {
        MirroredTransport mirrored(backend, transport);
        check_collectives(mirrored, count, report);
      });
      REQUIRE_THAT(report.text(), Equals(""));
    }
  }
}

TEST_CASE("a storm of messages between virtual ranks on one GPU arrives whole and in order", "[gpu][local-gpu]") {
  for (const unsigned seed : {1U, 2U, 3U}) {
    for (const int ranks : {1, 2, 3, 5}) {
      CAPTURE(seed, ranks);
      LawReport report;
      run_local_gpu_ranks(ranks, [&](Backend& backend, Transport& transport) {
        MirroredTransport mirrored(backend, transport);
        check_storm(mirrored, seed, report);
      });
      REQUIRE_THAT(report.text(), Equals(""));
    }
  }
}

// A counter goes round a ring of ranks, each of which adds to it on its own stream; nobody waits for the device until
// the end.
TEST_CASE("messages on a GPU keep their order with kernels before and behind them", "[gpu][local-gpu]") {
  constexpr std::size_t count = std::size_t{1} << 22;  // long enough that a copy out of order would be seen
  constexpr int rounds = 40;
  constexpr int ranks = 4;
  LawReport report;
  run_local_gpu_ranks(ranks, [&](Backend& backend, Transport& transport) {
    const int self = transport.rank();
    const DeviceMemory memory = backend.allocate(3 * count * sizeof(float));
    auto* const value = static_cast<float*>(memory.get());
    float* const arriving = value + count;
    float* const ones = arriving + count;
    std::vector<float> host(count, static_cast<float>(self));
    backend.upload(value, host.data(), count * sizeof(float));
    host.assign(count, 1);
    backend.upload(ones, host.data(), count * sizeof(float));
    for (int round = 0; round < rounds; ++round) {
      const Send send{(self + 1) % ranks, value, count * sizeof(float)};
      const Receive receive{(self + ranks - 1) % ranks, arriving, count * sizeof(float)};
      transport.wait(transport.start({&send, 1}, {&receive, 1}));
      backend.run(Add{.count = static_cast<std::int64_t>(count), .a = arriving, .b = ones, .y = value, .fp32 = true});
      backend.fill_bytes(arriving, 0xFF, count * sizeof(float));
    }
    backend.download(host.data(), value, count * sizeof(float));
    const auto expected = static_cast<float>((self + ranks - rounds % ranks) % ranks + rounds);
    for (const float found : host) {
      if (found == expected) continue;
      report.fail("rank " + std::to_string(self) + " has " + std::to_string(found) + ", not " +
                  std::to_string(expected));
      break;
    }
  });
  REQUIRE_THAT(report.text(), Equals(""));
}

TEST_CASE("a virtual rank that dies on a GPU ends those who wait for it", "[gpu][local-gpu]") {
  const auto work = [](Backend& backend, Transport& transport) {
    if (transport.rank() == 1) throw DeviceError("rank 1 has had enough");
    const DeviceMemory memory = backend.allocate(1024);
    const Receive receive{1, memory.get(), 1024};
    transport.wait(transport.start({}, {&receive, 1}));
  };
  REQUIRE_THROWS_WITH(run_local_gpu_ranks(3, work), "rank 1 has had enough");
}

// NCCL's transport with this process alone, or none where NCCL is not installed.
std::unique_ptr<Transport> lone_nccl_rank(Backend& backend) {
  try {
    return make_nccl_transport(backend, 0, 1, [](std::span<std::byte>) {});
  } catch (const DeviceError& error) {
    if (std::string(error.what()).find("need NCCL") == std::string::npos) throw;
    test::say_not_run(error.what());
    return nullptr;
  }
}

TEST_CASE("one rank of NCCL sends to itself, and its collectives are copies", "[gpu][nccl]") {
  const auto backend = make_cuda_backend();
  const auto transport = lone_nccl_rank(*backend);
  if (!transport) return;
  MirroredTransport mirrored(*backend, *transport);
  LawReport report;
  for (const std::size_t count : {0, 1, 1001, 300'000}) check_collectives(mirrored, count, report);
  for (const unsigned seed : {1U, 2U}) check_storm(mirrored, seed, report);
  transport->progress();
  REQUIRE_THAT(report.text(), Equals(""));
}

TEST_CASE("a rank of NCCL whose peers never come gives up after the limit", "[gpu][nccl]") {
  const auto backend = make_cuda_backend();
  if (!lone_nccl_rank(*backend)) return;
  REQUIRE_THROWS_WITH(make_nccl_transport(*backend, 0, 2, [](std::span<std::byte>) {}, {.limit = 2s}),
                      Contains("rank 0 of 2 cannot join the others through NCCL"));
}

}  // namespace
}  // namespace hdpsim::kernels
