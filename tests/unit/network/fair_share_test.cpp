#include "sim/network/fair_share.h"

#include <limits>
#include <vector>

#include "tests/support/catch.h"

using namespace hdpsim;

namespace {

constexpr double no_cap = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("three flows on one link get a third each, a fourth elsewhere is not slowed", "[fair share]") {
  FairShare network({9, 5});
  const FairShare::Link shared[] = {0};
  const FairShare::Link other[] = {1};
  for (int i = 0; i < 3; ++i) network.add(shared, no_cap);
  const auto alone = network.add(other, no_cap);
  for (FairShare::Variable flow = 0; flow < 3; ++flow) CHECK(network.rate(flow) == 3);
  CHECK(network.rate(alone) == 5);
}

TEST_CASE("the parking lot: a flow over all links shares each of them with one short flow", "[fair share]") {
  // Links of 10, 6 and 8: the long flow gets half of the narrowest, the others what it leaves.
  FairShare network({10, 6, 8});
  const FairShare::Link all[] = {0, 1, 2};
  const auto long_flow = network.add(all, no_cap);
  FairShare::Variable short_flows[3];
  for (FairShare::Link link = 0; link < 3; ++link) short_flows[link] = network.add({&link, 1}, no_cap);
  CHECK(network.rate(long_flow) == 3);
  CHECK(network.rate(short_flows[0]) == 7);
  CHECK(network.rate(short_flows[1]) == 3);
  CHECK(network.rate(short_flows[2]) == 5);
}

TEST_CASE("the butterfly: what one flow cannot use, because another link holds it, goes to the rest", "[fair share]") {
  // Flow a crosses 0 (of 1) and 2 (of 10); b and c cross 2 alone: a has 1, b and c (10 - 1) / 2.
  FairShare network({1, 4, 10});
  const FairShare::Link narrow[] = {0, 2};
  const FairShare::Link wide[] = {2};
  const auto a = network.add(narrow, no_cap);
  const auto b = network.add(wide, no_cap);
  const auto c = network.add(wide, no_cap);
  CHECK(network.rate(a) == 1);
  CHECK(network.rate(b) == 4.5);
  CHECK(network.rate(c) == 4.5);
}

TEST_CASE("a capped flow leaves the rest of its share to the others", "[fair share]") {
  FairShare network({12});
  const FairShare::Link link[] = {0};
  const auto capped = network.add(link, 2);
  const auto first = network.add(link, no_cap);
  const auto second = network.add(link, no_cap);
  CHECK(network.rate(capped) == 2);
  CHECK(network.rate(first) == 5);
  CHECK(network.rate(second) == 5);
}

TEST_CASE("weights divide a link, and a variable of n flows counts n times", "[fair share]") {
  FairShare network({12});
  const FairShare::Link link[] = {0};
  const auto heavy = network.add(link, no_cap, 3);
  const auto three = network.add(link, no_cap, 1, 3);
  CHECK(network.rate(heavy) == 6);
  CHECK(network.rate(three) == 2);
  network.remove(three);
  const auto nine = network.add(link, no_cap, 1, 9);
  CHECK(network.rate(heavy) == 3);
  CHECK(network.rate(nine) == 1);
}

TEST_CASE("a flow over no link runs at its cap", "[fair share]") {
  FairShare network({1});
  CHECK(network.rate(network.add({}, 7)) == 7);
}

TEST_CASE("a flow that joins a link slows the flows there, and only those", "[fair share]") {
  FairShare network({10, 10});
  const FairShare::Link first[] = {0};
  const FairShare::Link second[] = {1};
  const auto slowed = network.add(first, no_cap);
  const auto other = network.add(second, no_cap);
  std::vector<FairShare::Variable> changed;
  network.take_changed(changed);
  CHECK(changed == std::vector<FairShare::Variable>{slowed, other});
  const auto joined = network.add(first, no_cap);
  CHECK(network.rate(slowed) == 5);
  network.take_changed(changed);
  CHECK(changed == std::vector<FairShare::Variable>{slowed, joined});
}

TEST_CASE("coupled flows all move at the pace of the slowest, and leave what they cannot use", "[fair share]") {
  // Links of 10, 6 and 10; two of the coupled flows cross link 1: 3 each, so link 0 has 10 - 3 left for a flow there.
  FairShare network({10, 6, 10});
  const FairShare::Load loads[] = {{0, 1}, {1, 2}, {2, 0.5}};
  const auto ring = network.add_coupled(loads, no_cap);
  const FairShare::Link first[] = {0};
  const auto other = network.add(first, no_cap);
  CHECK(network.rate(ring) == 3);
  CHECK(network.rate(other) == 7);
  CHECK(network.load(1) == 6);
  CHECK(network.load(2) == 1.5);
  CHECK(network.bottleneck(ring) == 1);
  CHECK(network.bottleneck(other) == 0);
}

TEST_CASE("k coupled flows get as much of a link beside another as k separate ones", "[fair share]") {
  FairShare network({12});
  const FairShare::Load loads[] = {{0, 3}};
  const FairShare::Link link[] = {0};
  const auto three = network.add_coupled(loads, no_cap);
  const auto one = network.add(link, no_cap);
  CHECK(network.rate(three) == 3);
  CHECK(network.rate(one) == 3);
  network.remove(one);
  CHECK(network.rate(three) == 4);
  network.remove(three);
  CHECK(network.rate(network.add_coupled(loads, 1)) == 1);
  CHECK_FALSE(network.bottleneck(0));
}
