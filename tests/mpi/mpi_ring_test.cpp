#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/mpi/mpi_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/reference_backend.h"
#include "tests/support/ring_laws.h"

namespace hdpsim::kernels {
namespace {

// What this rank finds wrong in rings that follow one another.
std::string check(const std::vector<RingCase>& ring_cases) {
  LawReport report;
  ReferenceBackend backend;
  RingRank rank(backend, mpi_transport());
  for (const RingCase& ring_case : ring_cases) rank.check(ring_case, WholeAttention(ring_case), report);
  return report.text();
}

std::vector<int> all_ranks() {
  std::vector<int> ranks(static_cast<std::size_t>(mpi_transport().size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST_CASE("a ring of processes computes what one device computes, forward and backward", "[mpi][ring]") {
  for (const Sharding sharding : {Sharding::zigzag, Sharding::contiguous}) {
    REQUIRE(check({{.lengths = {37, 5, 0, 1, 16, 3}, .members = all_ranks(), .sharding = sharding}}) == no_faults);
  }
}

TEST_CASE("random documents on a ring of processes", "[mpi][ring][property]") {
  for (const unsigned seed : {1U, 2U, 3U}) {
    std::mt19937 random(seed);
    RingCase ring_case{.lengths = std::vector<std::int64_t>(1 + random() % 4), .members = all_ranks(), .seed = seed};
    for (std::int64_t& length : ring_case.lengths) length = static_cast<std::int64_t>(random() % 60);
    REQUIRE(check({ring_case}) == no_faults);
  }
}

TEST_CASE("rings of processes need no communicator of their own, whatever their members", "[mpi][ring]") {
  std::vector<int> half = all_ranks();
  std::vector<int> rest(half.begin() + (static_cast<std::ptrdiff_t>(half.size()) + 1) / 2, half.end());
  half.resize(half.size() - rest.size());
  std::vector<int> backwards = all_ranks();
  std::reverse(backwards.begin(), backwards.end());
  std::vector<RingCase> ring_cases = {{.lengths = {20, 3}, .members = half}, {.lengths = {33}, .members = backwards}};
  if (!rest.empty()) ring_cases.push_back({.lengths = {14, 15}, .members = rest});
  REQUIRE(check(ring_cases) == no_faults);
}

}  // namespace
}  // namespace hdpsim::kernels
