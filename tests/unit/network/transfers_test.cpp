#include "sim/network/transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/catch.h"

using namespace hdpsim;

namespace {

struct Case {
  std::vector<Transfer> transfers;
  std::vector<double> ends;
  std::size_t links = 0;
};

/// A line a transfer: bytes, the second at which it ends, and the numbers of its links.
Case read_case(const std::string& name) {
  std::ifstream file(fmt::format("{}/tests/unit/network/simgrid/{}.csv", HDPSIM_SOURCE_DIR, name));
  REQUIRE(file);
  Case result;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    Transfer& transfer = result.transfers.emplace_back();
    fields >> transfer.bytes >> result.ends.emplace_back();
    for (FairShare::Link link = 0; fields >> link;) {
      transfer.links.push_back(link);
      result.links = std::max<std::size_t>(result.links, link + 1);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("two transfers on one link: the longer one has it alone once the shorter one has ended", "[transfers]") {
  FairShare network({10});
  const std::vector<Transfer> transfers{{{0}, 10}, {{0}, 30}};
  const std::vector<double> ends = end_times(network, transfers);
  CHECK(ends[0] == Approx(2));                   // 10 bytes at 5 B/s
  CHECK(ends[1] == Approx(2 + 2));               // 10 of its 30 bytes by then, the rest at 10 B/s
  CHECK(end_times(network, transfers) == ends);  // the network is idle again
}

TEST_CASE("a coupled transfer ends when its slowest link has carried its part", "[transfers]") {
  FairShare network({10, 6});
  const std::vector<Transfer> transfers{{.links = {}, .bytes = 30, .loads = {{0, 1}, {1, 2}}}, {{0}, 35}};
  const std::vector<double> ends = end_times(network, transfers);
  CHECK(ends[0] == Approx(10));  // twice 30 bytes over 6 B/s
  CHECK(ends[1] == Approx(5));   // at 10 - 3 B/s
  const std::vector<Transfer> capped{{.links = {0}, .bytes = 30, .cap = 2}};
  CHECK(end_times(network, capped)[0] == Approx(15));
}

TEST_CASE("no transfers take no time, and one without links is a bug", "[transfers]") {
  FairShare network({10});
  CHECK(end_times(network, {}).empty());
  CHECK_THROWS(end_times(network, std::vector<Transfer>{{{}, 1}}));
}

// Computed by SimGrid 3.32 (model CM02, cross-traffic and TCP gamma off, no latency, 50 GB/s a link and direction) on
// fat trees of three tiers; its own precision is 1e-5.
TEST_CASE("transfers end when SimGrid says they do", "[transfers]") {
  const std::string name = GENERATE("four_permutations_16_hosts", "permutation_64_hosts");
  CAPTURE(name);
  const Case simgrid = read_case(name);
  REQUIRE(simgrid.transfers.size() == 64);
  FairShare network(std::vector<double>(simgrid.links, 50e9));
  const std::vector<double> ends = end_times(network, simgrid.transfers);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    CAPTURE(i);
    CHECK(ends[i] == Approx(simgrid.ends[i]).epsilon(1e-5));
  }
}
