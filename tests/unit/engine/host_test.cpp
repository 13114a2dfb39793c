#include "sim/engine/impl/pricer.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::HandCosts;
using test::HandMachine;
using test::one_device_nodes;

constexpr Duration kernel_issue = 4_us;
constexpr Duration dispatch_issue = 3_us;

// The wait in a layer of a product, an all-to-all to experts and their product.
Duration waited(bool host_waits, Duration before, Duration exchange, Duration experts) {
  PricedProgram priced;
  priced.program.dense.resize(1);
  priced.program.dense.front().gemms = {{1, 1, 1}};
  priced.program.collectives.resize(1);
  priced.program.collectives.front().among = CollectiveGroup::experts;
  priced.program.collectives.front().host_waits = host_waits;
  std::vector<Instruction> body(4);
  body[0].opcode = body[2].opcode = Opcode::dense;
  body[1].opcode = Opcode::collective;
  body[3].opcode = Opcode::issue;
  priced.program.blocks = {{2, body}};
  priced.times = {{before, exchange, experts, Duration{}}};
  HandMachine world(one_device_nodes(1, 1_GBps), std::make_unique<HandCosts>(1_us));
  world.machine.host = {kernel_issue, kernel_issue, {}, dispatch_issue};
  wait_for_host(priced, world.machine);
  return priced.times.front().back();
}

TEST_CASE("a host that runs ahead delays a layer only if it takes longer than the device", "[engine][host]") {
  CHECK(waited(false, 10_us, 1_us, 10_us) == Duration{});
  CHECK(waited(false, 2_us, 1_us, 3_us) == 2 * kernel_issue + dispatch_issue - 6_us);
}

TEST_CASE("a host that waits for the device has no lead behind that point", "[engine][host]") {
  // The product of the experts begins when it has been issued, and not when the all-to-all is done.
  CHECK(waited(true, 10_us, 1_us, 10_us) == kernel_issue - 1_us);
  // An all-to-all that takes as long hides the issue.
  CHECK(waited(true, 10_us, 4_us, 10_us) == Duration{});
  // Where the host takes longer, all is as without the wait but for what the last kernels take: the second product
  // ends 8 + 5 us behind the wait, and the next all-to-all is issued 11 us behind it.
  CHECK(waited(true, 5_us, 1_us, 1_us) == 2 * kernel_issue + 5_us - 7_us);
  CHECK(waited(true, 1_us, 1_us, 1_us) == 2 * kernel_issue + dispatch_issue - 3_us);
}

}  // namespace
}  // namespace hdpsim
