#include "kernels/transport/in_process.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kernels/transport/group_transport.h"
#include "tests/support/catch.h"
#include "tests/support/transport_laws.h"

namespace hdpsim::kernels {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

constexpr auto short_limit = 150ms;

// What each rank of a failing job throws, "" where it does not.
std::vector<std::string> errors_of(int ranks, const std::function<void(Transport&)>& work,
                                   std::chrono::milliseconds limit) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  const auto recorded = [&](Transport& transport) {
    try {
      work(transport);
    } catch (const std::exception& error) {
      errors[static_cast<std::size_t>(transport.rank())] = error.what();
      throw;
    }
  };
  try {
    run_ranks(ranks, recorded, limit);
  } catch (const std::exception&) {  // recorded
  }
  return errors;
}

TEST_CASE("collectives of threads are the plain sums and copies, for every size and number of ranks", "[transport]") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const std::size_t count : {0, 1, 2, 7, 64, 1001}) {
      CAPTURE(ranks, count);
      LawReport report;
      run_ranks(ranks, [&](Transport& transport) { check_collectives(transport, count, report); });
      REQUIRE(report.text() == no_faults);
    }
  }
}

TEST_CASE("groups of ranks have collectives of their own, at the same time and crosswise", "[transport]") {
  constexpr int groups = 2;
  for (const int size : {1, 2, 3}) {
    LawReport report;
    run_ranks(groups * size, [&](Transport& transport) {
      // Neighbours, as tensor-parallel devices are, and those that have the same place among them.
      std::vector<int> neighbours;
      for (int i = 0; i < size; ++i) neighbours.push_back(transport.rank() / size * size + i);
      std::vector<int> alike;
      for (int i = 0; i < groups; ++i) alike.push_back(transport.rank() % size + i * size);
      GroupTransport beside(transport, neighbours);
      GroupTransport across(transport, alike);
      for (int round = 0; round < 3; ++round) {
        check_collectives(beside, 101, report);
        check_collectives(across, 7, report);
      }
    });
    CHECK(report.text() == no_faults);
  }
}

TEST_CASE("a group without its rank, or with one that is not there, is refused", "[transport]") {
  run_ranks(1, [](Transport& transport) {
    CHECK_THROWS_WITH(GroupTransport(transport, {}), "rank 0 is not in its group");
    CHECK_THROWS_WITH(GroupTransport(transport, {0, 1}), "a group has rank 1, but there are 1 ranks");
  });
}

TEST_CASE("a sum too long for the memory of its parts is made slice by slice", "[transport]") {
  LawReport report;
  run_ranks(3, [&](Transport& transport) { check_collectives(transport, 1'200'001, report); });
  REQUIRE(report.text() == no_faults);
}

TEST_CASE("floating-point sums are added in the order of ranks", "[transport]") {
  // 1e8 + 1 and 1e8 + 2 are 1e8 in fp32: of the small terms only what follows both large ones counts.
  const std::vector<float> terms = {1e8F, 1.0F, -1e8F, 2.0F};
  std::vector<float> sums(4);
  run_ranks(4, [&](Transport& transport) {
    const auto rank = static_cast<std::size_t>(transport.rank());
    float sum = terms[rank];
    transport.all_reduce(&sum, 1);
    sums[rank] = sum;
  });
  for (const float sum : sums) REQUIRE(sum == 2.0F);
}

TEST_CASE("nobody leaves a barrier before everybody has come", "[transport]") {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    std::atomic<int> came = 0;
    LawReport report;
    run_ranks(ranks, [&](Transport& transport) {
      for (int round = 0; round < ranks; ++round) {
        if (round == transport.rank()) std::this_thread::sleep_for(2ms);  // each is the last one once
        ++came;
        transport.barrier();
        if (came < ranks * (round + 1)) report.fail(fmt::format("{} of {} had come", came.load(), ranks));
        transport.barrier();
      }
    });
    REQUIRE(report.text() == no_faults);
  }
}

TEST_CASE("a storm of messages of random sizes arrives whole and in order", "[transport][property]") {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    for (const int ranks : {1, 2, 3, 5}) {
      CAPTURE(seed, ranks);
      LawReport report;
      run_ranks(ranks, [&](Transport& transport) { check_storm(transport, seed, report); });
      REQUIRE(report.text() == no_faults);
    }
  }
}

TEST_CASE("a message moves in the progress() of either end, before anybody waits", "[transport]") {
  constexpr std::size_t pieces = 12;  // of 256 KiB
  for (const int mover : {0, 1}) {
    std::atomic<int> started = 0;
    std::atomic<bool> moved = false;
    LawReport report;
    run_ranks(2, [&](Transport& transport) {
      std::vector<char> data(pieces << 18, transport.rank() == 0 ? 'x' : '.');
      const Send send{1, data.data(), data.size()};
      const Receive receive{0, data.data(), data.size()};
      const bool sends = transport.rank() == 0;
      const Ticket ticket = sends ? transport.start({&send, 1}, {}) : transport.start({}, {&receive, 1});
      ++started;
      if (transport.rank() == mover) {
        while (started < 2) std::this_thread::yield();
        for (std::size_t call = 0; call < pieces; ++call) transport.progress();
        moved = true;
      } else {
        while (!moved) std::this_thread::yield();
      }
      if (!sends && data.back() != 'x') report.fail("the last piece has not arrived");
      transport.wait(ticket);
    });
    REQUIRE(report.text() == no_faults);
  }
}

TEST_CASE("a rank that dies ends those who wait for it, and those who wait for them", "[transport]") {
  const auto work = [](Transport& transport) {
    const int ranks = transport.size();
    std::vector<char> out(65536);
    std::vector<char> in(65536);
    if (transport.rank() == 2) throw std::runtime_error("rank 2 has had enough");
    const Send send{(transport.rank() + 1) % ranks, out.data(), out.size()};
    const Receive receive{(transport.rank() + ranks - 1) % ranks, in.data(), in.size()};
    transport.wait(transport.start({&send, 1}, {&receive, 1}));
    transport.barrier();
  };
  const auto errors = errors_of(4, work, 60s);
  REQUIRE(errors[2] == "rank 2 has had enough");
  // Of the two neighbours that each of them misses in the end, either may be named; the state tells of all.
  for (const std::size_t rank : {0, 1, 3}) {
    REQUIRE_THAT(errors[rank], Contains(fmt::format("rank {} waits for ", rank)) && Contains("65,536 B") &&
                                   Contains(", which has left. State: ") && Contains("rank 2 has left"));
  }
  REQUIRE_THROWS_WITH(run_ranks(4, work), "rank 2 has had enough");
}

TEST_CASE("a dead peer is noticed though a message from a living one comes before it", "[transport]") {
  std::atomic<bool> noticed = false;
  const auto work = [&](Transport& transport) {
    if (transport.rank() == 1) {
      while (!noticed) std::this_thread::sleep_for(1ms);
    }
    if (transport.rank() != 0) return;
    std::vector<char> data(32);
    const std::vector<Receive> receives = {{1, data.data(), 16}, {2, data.data() + 16, 16}};
    try {
      transport.wait(transport.start({}, receives));
    } catch (const DeviceError&) {
      noticed = true;
      throw;
    }
  };
  REQUIRE_THAT(errors_of(3, work, 60s)[0], Contains("rank 0 waits for 16 B from rank 2, which has left"));
}

TEST_CASE("a rank that goes home early fails the barrier of the others", "[transport]") {
  const auto work = [](Transport& transport) {
    if (transport.rank() != 0) transport.barrier();
  };
  const auto errors = errors_of(3, work, 60s);
  REQUIRE(errors[0].empty());
  REQUIRE_THAT(errors[1], Contains("has left"));
  REQUIRE_THAT(errors[2], Contains("has left"));
}

TEST_CASE("sizes that differ between the ends are an error on both", "[transport]") {
  const auto work = [](Transport& transport) {
    std::vector<char> data(32);
    const Send send{1, data.data(), 16};
    const Receive receive{0, data.data(), 32};
    const bool sends = transport.rank() == 0;
    transport.wait(sends ? transport.start({&send, 1}, {}) : transport.start({}, {&receive, 1}));
  };
  const auto errors = errors_of(2, work, 60s);
  REQUIRE_THAT(errors[0] + errors[1], Contains("rank 0 sends 16 B where rank 1 expects 32 B"));
  for (const std::string& error : errors) REQUIRE_FALSE(error.empty());
}

TEST_CASE("a peer that does not come is reported after the limit, with what every rank waits for", "[transport]") {
  std::atomic<int> failed = 0;
  const auto work = [&](Transport& transport) {
    std::vector<char> data(1234);
    const Receive receive{(transport.rank() + 1) % 3, data.data(), data.size()};
    if (transport.rank() == 2) {  // neither waits nor leaves, as a rank that computes for ever
      while (failed < 2) std::this_thread::sleep_for(1ms);
      return;
    }
    try {
      transport.wait(transport.start({}, {&receive, 1}));
    } catch (const DeviceError&) {
      ++failed;
      throw;
    }
  };
  const auto began = std::chrono::steady_clock::now();
  const auto errors = errors_of(3, work, short_limit);
  REQUIRE(std::chrono::steady_clock::now() - began >= short_limit);
  const std::string both = errors[0] + errors[1];
  REQUIRE_THAT(both, Contains("and nothing has moved for 0.15 s. State: "));
  REQUIRE_THAT(both, Contains("rank 1 waits for 1,234 B from rank 2"));
  REQUIRE_THAT(both, Contains("rank 2 waits for nobody"));
  REQUIRE(errors[2].empty());
}

TEST_CASE("a transport that has failed refuses further work", "[transport]") {
  auto transports = make_in_process_transports(2, short_limit);
  transports[1].reset();
  REQUIRE_THROWS_AS(transports[0]->barrier(), DeviceError);
  REQUIRE_THROWS_WITH(transports[0]->barrier(), "rank 0 has left after an error");
}

TEST_CASE("messages to ranks that do not exist and bytes without memory are refused", "[transport]") {
  auto transports = make_in_process_transports(2);
  char byte = 0;
  const Send beyond{2, &byte, 1};
  const Receive nowhere{1, nullptr, 1};
  REQUIRE_THROWS_WITH(transports[0]->start({&beyond, 1}, {}), Contains("a message to rank 2, but there are 2 ranks"));
  REQUIRE_THROWS_AS(transports[0]->start({}, {&nowhere, 1}), UnsupportedInput);
  REQUIRE_THROWS_AS(transports[0]->wait(99), UnsupportedInput);
  REQUIRE_THROWS_AS(make_in_process_transports(0), UnsupportedInput);
}

}  // namespace
}  // namespace hdpsim::kernels
