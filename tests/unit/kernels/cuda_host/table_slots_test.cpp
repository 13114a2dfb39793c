#include "kernels/cuda/impl/table_slots.h"

#include <cstddef>
#include <span>
#include <vector>

#include "tests/support/catch.h"

namespace hdpsim::kernels::cuda {
namespace {

std::vector<std::byte> table(int value, std::size_t bytes = 8) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

}  // namespace

TEST_CASE("a table is found again by its bytes, all of them", "[staging]") {
  TableSlots slots(4);
  CHECK_FALSE(slots.find(table(0)));
  slots.put(slots.oldest(), table(0));
  slots.put(slots.oldest(), table(1));
  CHECK(slots.find(table(0)) == 0U);
  CHECK(slots.find(table(1)) == 1U);
  CHECK_FALSE(slots.find(table(1, 7)));
  CHECK_FALSE(slots.find(table(1, 9)));
  CHECK_FALSE(slots.find(table(2)));
}

TEST_CASE("an empty table is a table, but an unused slot holds none", "[staging]") {
  TableSlots slots(2);
  CHECK_FALSE(slots.find({}));
  slots.put(1, {});
  CHECK(slots.find({}) == 1U);
}

TEST_CASE("the table that was used longest ago makes room", "[staging]") {
  TableSlots slots(3);
  for (const int value : {0, 1, 2}) slots.put(slots.oldest(), table(value));
  REQUIRE(slots.find(table(0)));
  slots.put(slots.oldest(), table(3));  // in place of 1: 0 has just been used
  CHECK_FALSE(slots.find(table(1)));
  for (const int value : {0, 2, 3}) CHECK(slots.find(table(value)));
}

}  // namespace hdpsim::kernels::cuda
