#include "kernels/cuda/impl/offload_stack.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/spec/error.h"
#include "tests/support/catch.h"
#include "tests/support/fake_queues.h"

namespace hdpsim::kernels::cuda {
namespace {

using Catch::Matchers::Contains;

// Three device slots of 1000 bytes and some slabs of 300, with everything that a pass needs.
struct OffloadWorld {
  static constexpr std::size_t slot_bytes = 1000;
  static constexpr std::size_t slab_bytes = 300;

  explicit OffloadWorld(std::size_t slabs, unsigned seed = 1, std::size_t slots = 3)
      : device(3, seed),
        queues(device),
        host(slabs * slab_bytes),
        pool(host.data(), slabs, slab_bytes),
        memory(slots, std::vector<unsigned char>(slot_bytes)),
        stack(queues, pool, pointers(), slot_bytes) {}

  [[nodiscard]] std::vector<void*> pointers() {
    std::vector<void*> all;
    for (auto& slot : memory) all.push_back(slot.data());
    return all;
  }

  // As kernels would: queued, not done. Byte i of layer l is a number that names both.
  void forward(int layer, std::size_t bytes) {
    auto* const slot = static_cast<unsigned char*>(stack.begin_forward());
    device.push(queues.index(Queue::compute), [=] {
      for (std::size_t i = 0; i < bytes; ++i) slot[i] = value(layer, i);
    });
    stack.end_forward();
  }
  // Reads what forward wrote, then writes over it, as backward kernels may.
  void backward(int layer, std::size_t bytes) {
    auto* const slot = static_cast<unsigned char*>(stack.begin_backward());
    device.push(queues.index(Queue::compute), [=, this] {
      for (std::size_t i = 0; i < bytes; ++i) wrong_bytes += slot[i] != value(layer, i) ? 1 : 0;
      std::fill_n(slot, bytes, static_cast<unsigned char>(0));
    });
    stack.end_backward();
  }
  // `steps`: of the 2 layers steps that the pass has; it is given up behind them.
  void pass(int layers, std::size_t bytes, int steps = 1000) {
    stack.begin(layers, bytes);
    for (int layer = 0; layer < std::min(layers, steps); ++layer) forward(layer, bytes);
    for (int layer = layers - 1; layer >= std::max(0, 2 * layers - steps); --layer) backward(layer, bytes);
  }
  static unsigned char value(int layer, std::size_t i) {
    return static_cast<unsigned char>(1 + (static_cast<std::size_t>(layer) * 37 + i) % 255);
  }

  FakeDevice device;
  FakeQueues queues;
  std::vector<unsigned char> host;
  SlabPool pool;
  std::vector<std::vector<unsigned char>> memory;
  OffloadStack stack;
  std::size_t wrong_bytes = 0;
};

std::size_t copied(const OffloadWorld& world, Queue queue) {
  return world.queues.copied_bytes[static_cast<std::size_t>(queue)];
}

TEST_CASE("backward finds what forward left, in whatever order the queues run", "[offload][property]") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const auto slots = 1 + random() % 4;
    const auto most_layers = 1 + random() % 9;
    CAPTURE(seed, slots, most_layers);
    OffloadWorld world(most_layers * 4, seed, slots);
    for (int pass = 0; pass < 6;
         ++pass) {  // slabs and slots are used again while copies of the last pass are under way
      const int layers = 1 + static_cast<int>(random() % most_layers);
      const std::size_t bytes = random() % (OffloadWorld::slot_bytes + 1);
      world.pass(layers, bytes, random() % 2 == 0 ? 1000 : static_cast<int>(random() % 64) % (2 * layers));
      world.device.run_some(random() % 40);
    }
    world.pass(static_cast<int>(most_layers), OffloadWorld::slot_bytes);
    world.device.finish();
    REQUIRE(world.wrong_bytes == 0);
    REQUIRE(world.pool.free() == world.pool.count());
  }
}

// Takes the slab that another stack has just fetched from, while that copy is still queued.
TEST_CASE("a slab is not filled again before what was in it has left, whoever fills it", "[offload][property]") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    OffloadWorld world(12, seed);
    std::vector<unsigned char> other_slot(OffloadWorld::slot_bytes);
    OffloadStack other(world.queues, world.pool, {other_slot.data()}, OffloadWorld::slot_bytes);
    world.stack.begin(6, 1000);
    for (int layer = 0; layer < 6; ++layer) world.forward(layer, 1000);
    for (int layer = 5; layer >= 0; --layer) {
      world.backward(layer, 1000);
      if (layer < 3) continue;  // nothing was fetched
      other.begin(2, 1000);
      for (int other_layer = 0; other_layer < 2; ++other_layer) {
        auto* const slot = static_cast<unsigned char*>(other.begin_forward());
        world.device.push(world.queues.index(Queue::compute),
                          [=] { std::fill_n(slot, 1000, OffloadWorld::value(99, 0)); });
        other.end_forward();
      }
    }
    world.device.finish();
    REQUIRE(world.wrong_bytes == 0);
  }
}

TEST_CASE("the last layers of a pass never leave the device", "[offload]") {
  OffloadWorld world(100);
  world.pass(3, 1000);
  REQUIRE(copied(world, Queue::out) == 0);
  REQUIRE(copied(world, Queue::in) == 0);
  world.pass(10, 900);
  REQUIRE(copied(world, Queue::out) == std::size_t{7} * 900);  // 3 of 10 stay in the 3 slots
  REQUIRE(copied(world, Queue::in) == std::size_t{7} * 900);
}

TEST_CASE("layers are fetched while the ones above them are computed: as many ahead as there are slots but one",
          "[offload]") {
  OffloadWorld world(100);
  world.stack.begin(6, 600);
  for (int layer = 0; layer < 6; ++layer) world.forward(layer, 600);
  world.backward(5, 600);  // layers 4 and 3 are on the device still; layer 2 takes the place of 5
  REQUIRE(copied(world, Queue::in) == 600);
  world.backward(4, 600);
  REQUIRE(copied(world, Queue::in) == std::size_t{2} * 600);
  world.backward(3, 600);
  REQUIRE(copied(world, Queue::in) == std::size_t{3} * 600);
  world.backward(2, 600);  // 1 and 0 are under way already, and there is nothing below them
  REQUIRE(copied(world, Queue::in) == std::size_t{3} * 600);
}

TEST_CASE("a pass that does not fit the host memory is refused before it begins", "[offload]") {
  OffloadWorld world(11);  // 4 slabs a layer of 1000 bytes
  REQUIRE_THROWS_AS(world.stack.begin(6, 1000), DeviceError);
  REQUIRE_THROWS_WITH(world.stack.begin(6, 1000),
                      Contains("3 layers of 1000 bytes need 12 slabs of 300 bytes") && Contains("11 of 11 are free"));
  REQUIRE(world.pool.free() == 11);
  world.stack.begin(5, 1000);
  REQUIRE(world.stack.offloaded_layers() == 2);
  REQUIRE(world.pool.free() == 11 - 8);
}

TEST_CASE("a pass that is given up leaves nothing behind", "[offload]") {
  OffloadWorld world(16);
  for (int given_up = 0; given_up < 3; ++given_up) {
    world.stack.begin(7, 1000);
    for (int layer = 0; layer < 5; ++layer) world.forward(layer, 1000);
  }
  world.pass(7, 1000);
  world.device.finish();
  REQUIRE(world.wrong_bytes == 0);
  REQUIRE(world.pool.free() == 16);
  {
    OffloadStack other(world.queues, world.pool, {world.memory[0].data()}, OffloadWorld::slot_bytes);
    other.begin(4, 1000);
    REQUIRE(world.pool.free() == 16 - 12);
  }
  REQUIRE(world.pool.free() == 16);
}

TEST_CASE("calls out of order and layers that are too large are refused", "[offload]") {
  OffloadWorld world(16);
  REQUIRE_THROWS_WITH(world.stack.begin_forward(), Contains("begin_forward() out of order"));
  REQUIRE_THROWS_AS(world.stack.begin(0, 10), UnsupportedInput);
  REQUIRE_THROWS_WITH(world.stack.begin(2, 1001), Contains("1001 bytes a layer, but its device memory has 1000"));
  world.stack.begin(2, 10);
  REQUIRE_THROWS_AS(world.stack.begin_backward(), UnsupportedInput);
  world.forward(0, 10);
  REQUIRE_THROWS_AS(world.stack.end_forward(), UnsupportedInput);
  world.forward(1, 10);
  REQUIRE_THROWS_AS(world.stack.begin_forward(), UnsupportedInput);
  world.backward(1, 10);
  world.backward(0, 10);
  REQUIRE_THROWS_AS(world.stack.begin_backward(), UnsupportedInput);
}

}  // namespace
}  // namespace hdpsim::kernels::cuda
