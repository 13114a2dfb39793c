#include "sim/base/id.h"

#include <type_traits>
#include <unordered_set>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("ids of different kinds do not mix, and a number is no id", "[id]") {
  CHECK_FALSE(std::is_convertible_v<DeviceId, NodeId>);
  CHECK_FALSE(std::is_constructible_v<DeviceId, NodeId>);
  CHECK_FALSE(std::is_convertible_v<std::size_t, DeviceId>);
  CHECK(std::is_constructible_v<DeviceId, std::size_t>);
}

TEST_CASE("an id is its index: order, equality and hash follow it", "[id]") {
  CHECK(DeviceId().index() == 0);
  CHECK(DeviceId(7).index() == 7);
  CHECK(DeviceId(7) == DeviceId(7));
  CHECK(DeviceId(7) != DeviceId(8));
  CHECK(DeviceId(7) < DeviceId(8));
  CHECK(DeviceId(4'294'967'295).index() == 4'294'967'295);  // the largest of 32 bits
  const std::unordered_set<NodeId> nodes{NodeId(1), NodeId(2), NodeId(1)};
  CHECK(nodes.size() == 2);
}

}  // namespace
}  // namespace hdpsim
