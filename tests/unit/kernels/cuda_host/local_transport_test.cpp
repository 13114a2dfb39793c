#include "kernels/cuda/impl/local_world.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/spec/error.h"
#include "tests/support/catch.h"
#include "tests/support/fake_job.h"
#include "tests/support/ring_laws.h"
#include "tests/support/transport_laws.h"

namespace hdpsim::kernels::cuda {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

// What is received is there when wait() returns, as in host memory: for laws that look at it at once.
class Finished final : public Transport {
 public:
  explicit Finished(FakeRank& rank) : rank_(rank) {}
  [[nodiscard]] int rank() const override { return transport().rank(); }
  [[nodiscard]] int size() const override { return transport().size(); }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override {
    return transport().start(sends, receives);
  }
  void wait(Ticket ticket) override {
    transport().wait(ticket);
    rank_.backend.synchronize();
  }
  void progress() override { transport().progress(); }
  void all_reduce(float* data, std::size_t count) override {
    transport().all_reduce(data, count);
    rank_.backend.synchronize();
  }
  void all_gather(const void* mine, void* all, std::size_t bytes_per_rank) override {
    transport().all_gather(mine, all, bytes_per_rank);
    rank_.backend.synchronize();
  }
  void reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) override {
    transport().reduce_scatter(all, mine, count_per_rank);
    rank_.backend.synchronize();
  }
  void all_to_all(const void* from, void* to, std::size_t bytes_per_rank) override {
    transport().all_to_all(from, to, bytes_per_rank);
    rank_.backend.synchronize();
  }
  void barrier() override { transport().barrier(); }

 private:
  [[nodiscard]] Transport& transport() const { return *rank_.transport; }
  FakeRank& rank_;
};

void require_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) REQUIRE_THAT(error, Equals(""));
}

TEST_CASE("collectives of virtual ranks are the plain sums and copies", "[local-gpu]") {
  for (const std::size_t ranks : {1, 2, 3, 4, 8}) {
    for (const std::size_t count : {0, 1, 7, 64, 1001}) {
      CAPTURE(ranks, count);
      LawReport report;
      const auto work = [&](FakeRank& rank) {
        Finished transport(rank);
        check_collectives(transport, count, report);
      };
      require_no_errors(run({.ranks = ranks, .seed = 7}, work));
      REQUIRE_THAT(report.text(), Equals(""));
    }
  }
}

TEST_CASE("a storm of messages between virtual ranks arrives whole and in order", "[local-gpu][property]") {
  for (const unsigned seed : {1U, 2U, 3U}) {
    for (const std::size_t ranks : {1, 2, 3, 5}) {
      CAPTURE(seed, ranks);
      LawReport report;
      const auto work = [&](FakeRank& rank) {
        Finished transport(rank);
        check_storm(transport, seed, report);
      };
      require_no_errors(run({.ranks = ranks, .seed = seed}, work));
      REQUIRE_THAT(report.text(), Equals(""));
    }
  }
}

// A counter goes round a ring of ranks, each of which adds to it by a kernel; nobody waits for the device until the
// end.
TEST_CASE("messages keep their order with kernels before and behind them, on both ends", "[local-gpu][property]") {
  constexpr int rounds = 5;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    for (const int ranks : {1, 2, 3, 4}) {
      CAPTURE(seed, ranks);
      std::vector<float> results(static_cast<std::size_t>(ranks));
      const auto work = [&](FakeRank& rank) {
        const int self = rank.transport->rank();
        const DeviceMemory memory = rank.backend.allocate(3 * sizeof(float));
        auto* const value = static_cast<float*>(memory.get());
        float* const arriving = value + 1;
        float* const one = value + 2;
        const std::vector<float> start = {static_cast<float>(self), 0, 1};
        rank.backend.upload(value, start.data(), 3 * sizeof(float));
        for (int round = 0; round < rounds * ranks; ++round) {
          const Send send{(self + 1) % ranks, value, sizeof(float)};
          const Receive receive{(self + ranks - 1) % ranks, arriving, sizeof(float)};
          const Ticket ticket = rank.transport->start({&send, 1}, {&receive, 1});
          rank.transport->wait(ticket);
          // Overwrites what was sent and what will be received into.
          rank.backend.run(Add{.count = 1, .a = arriving, .b = one, .y = value, .fp32 = true});
          rank.backend.fill_bytes(arriving, 0xFF, sizeof(float));
        }
        rank.backend.download(&results[static_cast<std::size_t>(self)], value, sizeof(float));
      };
      require_no_errors(run({.ranks = static_cast<std::size_t>(ranks), .seed = seed}, work));
      for (int self = 0; self < ranks; ++self) {
        REQUIRE(results[static_cast<std::size_t>(self)] == static_cast<float>(self + rounds * ranks));
      }
    }
  }
}

TEST_CASE("a ring over virtual ranks equals one device, in whatever order their queues run", "[local-gpu][property]") {
  const std::vector<std::vector<std::int64_t>> mixes = {{64}, {17, 0, 1, 40}, {5, 130, 3}};
  for (unsigned seed = 1; seed <= 6; ++seed) {
    for (const std::size_t ranks : {1, 2, 3, 4, 8}) {
      RingCase ring_case{.lengths = mixes[seed % mixes.size()], .members = {}, .seed = seed};
      ring_case.heads = {.heads = 2, .kv_heads = 1, .dim = 64, .scale = 0.125F};
      if (seed % 2 == 0) {
        ring_case.element = Element::bf16;
        ring_case.tolerance = 2e-5;
      }
      for (std::size_t rank = 0; rank < ranks; ++rank) ring_case.members.push_back(static_cast<int>(rank));
      CAPTURE(ring_case.text());
      const WholeAttention whole(ring_case);
      LawReport report;
      const auto work = [&](FakeRank& rank) {
        RingRank(rank.backend, *rank.transport).check(ring_case, whole, report);
      };
      require_no_errors(run({.ranks = ranks, .seed = seed, .element = ring_case.element}, work));
      REQUIRE_THAT(report.text(), Equals(""));
    }
  }
}

TEST_CASE("a virtual rank that leaves ends those who wait for it", "[local-gpu]") {
  // Rank 1 waits for rank 2 alone, and so does rank 3: neither sees the other leave, whichever leaves first.
  const auto work = [](FakeRank& rank) {
    const DeviceMemory memory = rank.backend.allocate(64);
    const Send send{2, memory.get(), 64};
    const Receive receive{2, memory.get(), 64};
    switch (rank.transport->rank()) {
      case 1:
        return rank.transport->wait(rank.transport->start({&send, 1}, {}));
      case 2:
        throw std::runtime_error("rank 2 has had enough");
      case 3:
        return rank.transport->wait(rank.transport->start({}, {&receive, 1}));
      default:
        return;
    }
  };
  const auto errors = run({.ranks = 4}, work);
  REQUIRE(errors[2] == "rank 2 has had enough");
  REQUIRE_THAT(errors[3], Contains("rank 3 waits for 64 B from rank 2, which has left"));
  REQUIRE_THAT(errors[1], Contains("rank 1 waits for rank 2 to take 64 B, which has left"));
}

TEST_CASE("an error of one message does not free the buffers of others before they are copied", "[local-gpu]") {
  // Rank 0 sends to rank 1, which takes it, and waits for rank 2, which has left.
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    FakeDevice device(9, seed);
    FakeQueues queues[] = {FakeQueues(device, 0), FakeQueues(device, 1), FakeQueues(device, 2)};
    LocalWorld world({&queues[0], &queues[1], &queues[2]}, 1min);
    const std::string source = "sent";
    std::string target = "----";
    std::string never(4, '-');
    const Send send{1, source.data(), 4};
    const Receive taken{0, target.data(), 4};
    const Receive missing{2, never.data(), 4};
    const Ticket ticket = world.start(0, {&send, 1}, {&missing, 1});
    REQUIRE(world.start(1, {}, {&taken, 1}) == 1);
    CHECK(world.leave(2).empty());
    REQUIRE_THROWS_AS(world.wait(0, ticket), DeviceError);
    device.finish(queues[0].index(Queue::compute));  // as memory does that is freed on rank 0
    CHECK(target == source);
  }
}

TEST_CASE("a virtual rank that does not come is reported after the limit, with what all wait for", "[local-gpu]") {
  std::atomic<bool> reported = false;
  const auto work = [&](FakeRank& rank) {
    std::vector<char> data(1234);
    if (rank.transport->rank() == 1) {
      while (!reported) std::this_thread::sleep_for(1ms);
      return;
    }
    const Receive receive{1, data.data(), data.size()};
    try {
      rank.transport->wait(rank.transport->start({}, {&receive, 1}));
    } catch (const DeviceError&) {
      reported = true;
      throw;
    }
  };
  const auto errors = run({.ranks = 2, .limit = 50ms}, work);
  REQUIRE_THAT(errors[0], Contains("rank 0 waits for 1,234 B from rank 1, which has not come for 0.05 s. State: ") &&
                              Contains("rank 1 waits for nobody"));
}

TEST_CASE("sizes that differ are an error on both virtual ranks", "[local-gpu]") {
  const auto work = [](FakeRank& rank) {
    std::vector<char> data(32);
    const Send send{1, data.data(), 16};
    const Receive receive{0, data.data(), 32};
    const bool sends = rank.transport->rank() == 0;
    rank.transport->wait(sends ? rank.transport->start({&send, 1}, {}) : rank.transport->start({}, {&receive, 1}));
  };
  const auto errors = run({.ranks = 2}, work);
  REQUIRE_THAT(errors[0] + errors[1], Contains("rank 0 sends 16 B where rank 1 expects 32 B"));
  for (const std::string& error : errors) REQUIRE_FALSE(error.empty());
}

TEST_CASE("what is not under way cannot be waited for", "[local-gpu]") {
  const auto work = [](FakeRank& rank) { rank.transport->wait(99); };
  REQUIRE_THAT(run({}, work)[0], Contains("rank 0 waits for exchange 99, which is not under way"));
}

}  // namespace
}  // namespace hdpsim::kernels::cuda
