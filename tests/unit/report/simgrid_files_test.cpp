#include "sim/report/simgrid_files.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/network_cases.h"

using namespace hdpsim;
using Catch::Matchers::Contains;

namespace {

/// Two messages over a link with a name that XML would not take as it is.
SimgridTraffic two_messages() {
  return {.links = {{"a \"<&>\" b", 1e9}, {"wide", 2.5e10}},
          .messages = {{.from = "x", .to = "y", .transfer = {{0, 1}, 1000}, .latency_s = 1e-6, .arrival_s = 3e-6},
                       {.from = "x", .to = "z", .transfer = {{0}, 1000}, .latency_s = 0, .arrival_s = 2e-6}}};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a platform has every link once, and for each message two hosts and the route between them", "[simgrid]") {
  const std::string platform = simgrid_platform(two_messages());
  CHECK_THAT(platform,
             Contains("<link id=\"a &quot;&lt;&amp;&gt;&quot; b\" bandwidth=\"1000000000Bps\" latency=\"0s\"/>"));
  CHECK_THAT(platform, Contains("<link id=\"wide\" bandwidth=\"25000000000Bps\" latency=\"0s\"/>"));
  CHECK_THAT(platform, Contains("<route src=\"message 0 from x\" dst=\"message 0 to y\" symmetrical=\"NO\">"
                                "<link_ctn id=\"a &quot;&lt;&amp;&gt;&quot; b\"/><link_ctn id=\"wide\"/></route>"));
  CHECK(count(platform, "<link ") == 2);
  CHECK(count(platform, "<host ") == 4);
  CHECK(count(platform, "<route ") == 2);
}

TEST_CASE("messages are a table with what SimGrid has to add and what it should find", "[simgrid]") {
  CHECK(simgrid_messages(two_messages()) ==
        "sender,receiver,bytes,latency_s,arrival_s\n"
        "message 0 from x,message 0 to y,1000,1e-06,3e-06\n"
        "message 1 from x,message 1 to z,1000,0,2e-06\n");
}

TEST_CASE("a platform grows with the messages, not with the pairs of devices", "[simgrid]") {
  const auto size = [](std::int64_t devices) {
    const ClusterLinks links(tests::fat_tree(16, devices / 64, 4), {});
    const std::vector<Message> messages = tests::pattern("ring", devices);
    return simgrid_platform(simgrid_traffic(links, messages, arrival_times(links, messages))).size();
  };
  const double growth = static_cast<double>(size(4096)) / static_cast<double>(size(1024));
  CHECK(growth > 3.5);
  CHECK(growth < 4.5);
}

TEST_CASE("only links that some message uses are written", "[simgrid]") {
  const ClusterLinks links(tests::star(8), {});
  const std::vector<Message> messages{{DeviceId(3), DeviceId(5), 1e6}, {DeviceId(4), DeviceId(5), 1e6}};
  const SimgridTraffic traffic = simgrid_traffic(links, messages, arrival_times(links, messages));
  REQUIRE(traffic.links.size() == 3);
  CHECK(traffic.links[1].name == "node 5 nic 0 in");
  CHECK(traffic.messages[1].transfer.links == std::vector<FairShare::Link>{2, 1});
  CHECK(traffic.messages[0].arrival_s == Approx(2e6 / 50e9));
}
