#include "kernels/transport/mpi_transport.h"

#include <string>
#include <vector>

#include "tests/mpi/mpi_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/transport_laws.h"

namespace hdpsim::kernels {
namespace {

TEST_CASE("collectives of processes are the plain sums and copies", "[mpi]") {
  for (const std::size_t count : {0, 1, 2, 7, 64, 1001, 50'000}) {
    CAPTURE(count);
    LawReport report;
    check_collectives(mpi_transport(), count, report);
    REQUIRE(report.text() == no_faults);
  }
}

TEST_CASE("a storm of messages between processes arrives whole and in order", "[mpi][property]") {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    CAPTURE(seed);
    LawReport report;
    check_storm(mpi_transport(), seed, report);
    REQUIRE(report.text() == no_faults);
  }
}

TEST_CASE("a message of a size that ends on a piece, or beside it, arrives whole", "[mpi]") {
  Transport& transport = mpi_transport();
  const int next = (transport.rank() + 1) % transport.size();
  const int previous = (transport.rank() + transport.size() - 1) % transport.size();
  for (const std::size_t bytes : {1020, 1021, 1022, 2042, 2043}) {
    const std::vector<char> out(bytes, static_cast<char>(transport.rank() + 1));
    std::vector<char> in(bytes, 0);
    const Send send{next, out.data(), bytes};
    const Receive receive{previous, in.data(), bytes};
    transport.wait(transport.start({&send, 1}, {&receive, 1}));
    REQUIRE(in == std::vector<char>(bytes, static_cast<char>(previous + 1)));
  }
}

TEST_CASE("a wait for an exchange that is not under way is refused", "[mpi]") {
  REQUIRE_THROWS_AS(mpi_transport().wait(1U << 30), UnsupportedInput);
}

}  // namespace
}  // namespace hdpsim::kernels
