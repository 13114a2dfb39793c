#include "kernels/cuda/impl/communicator_transport.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/spec/error.h"
#include "tests/support/catch.h"
#include "tests/support/deferred_backend.h"
#include "tests/support/fake_queues.h"
#include "tests/support/reference_backend.h"

namespace hdpsim::kernels::cuda {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

// What happens to a communicator, told to and by a test.
struct Story {
  std::atomic<bool> stuck = false;  // what is queued from now on never ends, unless it is aborted
  std::atomic<bool> fails = false;  // reported behind the caller's back
  std::atomic<bool> refuses = false;
  std::atomic<int> aborts = 0;
  std::vector<std::shared_ptr<bool>> held;
};

// Rank 0 of 2. The peer answers every message with its own bytes, and has the same numbers to add.
class FakeCommunicator final : public Communicator {
 public:
  FakeCommunicator(Story& story, FakeDevice& device, FakeQueues& queues)
      : story_(story), device_(device), queues_(queues) {}

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 2; }
  void exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
    if (story_.refuses) throw DeviceError("ncclGroupEnd: unhandled system error");
    if (story_.stuck) queues_.wait(Queue::out, story_.held.emplace_back(std::make_shared<bool>(false)));
    for (std::size_t i = 0; i < sends.size(); ++i) {
      queues_.copy(Queue::out, receives[i].data, sends[i].data, sends[i].bytes);
    }
  }
  void all_reduce(float* data, std::size_t count) override {
    device_.push(queues_.index(Queue::out), [=] {
      for (std::size_t i = 0; i < count; ++i) data[i] *= 2;
    });
  }
  void all_gather(const void*, void*, std::size_t) override {}
  void reduce_scatter(const float*, float*, std::size_t) override {}
  [[nodiscard]] std::optional<std::string> failure() override {
    return story_.fails ? std::optional<std::string>("NCCL: remote process exited") : std::nullopt;
  }
  void abort() override {
    ++story_.aborts;
    for (const auto& event : story_.held) *event = true;
  }

 private:
  Story& story_;
  FakeDevice& device_;
  FakeQueues& queues_;
};

struct World {
  explicit World(std::chrono::milliseconds limit, unsigned seed = 1)
      : device(3, seed),
        backend(device, 0, std::make_unique<ReferenceBackend>()),
        queues(device),
        transport(std::make_unique<CommunicatorTransport>(std::make_unique<FakeCommunicator>(story, device, queues),
                                                          backend, queues, limit)) {}
  [[nodiscard]] Ticket start() {
    const Send send{1, sent, sizeof sent};
    const Receive receive{1, received, sizeof received};
    return transport->start({&send, 1}, {&receive, 1});
  }
  // Until the watch has ended the communicator.
  void await_abort() {
    while (story.aborts == 0) std::this_thread::sleep_for(1ms);
    while (true) {
      try {
        transport->progress();
      } catch (const DeviceError&) {
        return;
      }
    }
  }

  Story story;
  FakeDevice device;
  DeferredBackend backend;
  FakeQueues queues;
  std::unique_ptr<CommunicatorTransport> transport;
  float sent[2] = {-1, -1};
  float received[2] = {-1, -1};
};

TEST_CASE("what is computed before start() is sent, what is received is computed with after wait()",
          "[nccl][property]") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    World world(60s, seed);
    float result[2] = {};
    for (int round = 1; round < 6; ++round) {
      world.device.push(0, [&, round] { world.sent[0] = static_cast<float>(round); });
      const Ticket ticket = world.start();
      world.transport->wait(ticket);
      world.device.push(0, [&] {
        result[0] += world.received[0];
        world.received[0] = -1;
        world.sent[0] = -1;
      });
    }
    world.backend.synchronize();
    REQUIRE(result[0] == 1 + 2 + 3 + 4 + 5);
  }
}

TEST_CASE("a collective is ordered with what is computed on both sides", "[nccl][property]") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    World world(60s, seed);
    float seen = 0;
    world.device.push(0, [&] { world.sent[0] = 1; });
    world.transport->all_reduce(world.sent, 1);
    world.device.push(0, [&] {
      seen = world.sent[0];
      world.sent[0] = -1;
    });
    world.transport->barrier();
    world.backend.synchronize();
    REQUIRE(seen == 2);
  }
}

TEST_CASE("a peer that does not come is noticed, its exchange is ended, and the next call says who waited", "[nccl]") {
  World world(30ms);
  world.story.stuck = true;
  const Ticket ticket = world.start();
  world.transport->wait(ticket);
  world.device.run_some(100);  // all but what the peer holds up
  world.await_abort();
  REQUIRE(world.story.aborts == 1);
  REQUIRE_THROWS_WITH(world.transport->progress(),
                      Contains("rank 0 waits for 8 B from rank 1; rank 0 waits for rank 1 to "
                               "take 8 B, and nothing has moved for 0.03 s"));
  REQUIRE_THROWS_AS(world.start(), DeviceError);
  REQUIRE_THROWS_AS(world.transport->barrier(), DeviceError);
  world.backend.synchronize();  // the abort has freed the queue
}

TEST_CASE("kernels that take long before an exchange are no fault of the peer", "[nccl]") {
  World world(20ms);
  world.device.push(0, [] {});  // of a kernel that is not done as long as the device is not asked to run
  const Ticket ticket = world.start();
  std::this_thread::sleep_for(100ms);
  REQUIRE(world.story.aborts == 0);  // however long it is: the exchange cannot have begun
  world.transport->wait(ticket);
  world.backend.synchronize();
}

TEST_CASE("a failure that the library reports behind the caller's back ends the communicator", "[nccl]") {
  World world(60s);
  world.transport->wait(world.start());
  world.story.fails = true;
  world.await_abort();
  REQUIRE_THROWS_WITH(world.transport->wait(1), Contains("not under way"));
  REQUIRE_THROWS_WITH(world.start(), Contains("remote process exited"));
}

TEST_CASE("an operation that the library refuses names the exchange, and the communicator is ended once", "[nccl]") {
  World world(60s);
  world.story.refuses = true;
  REQUIRE_THROWS_WITH(world.start(), Contains("rank 0 waits for 8 B from rank 1; rank 0 waits for rank 1 to take 8 B: "
                                              "ncclGroupEnd: unhandled system error"));
  REQUIRE_THROWS_AS(world.transport->progress(), DeviceError);
  std::this_thread::sleep_for(20ms);
  REQUIRE(world.story.aborts == 1);
}

TEST_CASE("a transport that an error destroys does not wait for its peers", "[nccl]") {
  Story story;
  FakeDevice device(3, 1);
  DeferredBackend backend(device, 0, std::make_unique<ReferenceBackend>());
  FakeQueues queues(device);
  try {
    const CommunicatorTransport transport(std::make_unique<FakeCommunicator>(story, device, queues), backend, queues,
                                          60s);
    throw std::runtime_error("elsewhere");
  } catch (const std::runtime_error&) {
    REQUIRE(story.aborts == 1);
  }
}

TEST_CASE("an operation is stuck when all before it has happened and the limit has passed", "[nccl]") {
  const auto event = [] { return std::make_shared<bool>(false); };
  const auto ready = event();
  const auto first = event();
  const auto second = event();
  ExchangeWatch watch(100ms, [](const Event& asked) { return *std::static_pointer_cast<const bool>(asked); });
  watch.add("first", ready, first);
  watch.add("second", ready, second);
  const auto at = [](int ms) { return ExchangeWatch::Clock::time_point{} + std::chrono::milliseconds(ms); };
  REQUIRE_FALSE(watch.stuck(at(0)));
  REQUIRE_FALSE(watch.stuck(at(1000)));  // kernels run before it
  *ready = true;
  REQUIRE_FALSE(watch.stuck(at(1010)));
  REQUIRE_FALSE(watch.stuck(at(1109)));
  REQUIRE(watch.stuck(at(1110)) == "first");
  *first = true;
  REQUIRE_FALSE(watch.stuck(at(1120)));  // now it is the turn of the second
  REQUIRE_FALSE(watch.stuck(at(1219)));
  REQUIRE(watch.stuck(at(1220)) == "second");
  *second = true;
  REQUIRE_FALSE(watch.stuck(at(2000)));
  REQUIRE(watch.under_way() == 0);
}

}  // namespace
}  // namespace hdpsim::kernels::cuda
