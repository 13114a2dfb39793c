#include "sim/plan/connection_table.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

std::vector<HdpRank> ranks(const std::vector<std::size_t>& indices) {
  std::vector<HdpRank> group;
  group.reserve(indices.size());
  for (const std::size_t index : indices) group.emplace_back(index);
  return group;
}

constexpr ConnectionTable::Missing nothing{};
constexpr ConnectionTable::Missing a_connection{.communicator = false, .connection = true};
constexpr ConnectionTable::Missing everything{.communicator = true, .connection = true};

TEST_CASE("within one communicator a ring lacks what two of its neighbours lack", "[connections]") {
  ConnectionTable table(Communicators::one);
  CHECK(table.missing(ranks({0, 1, 2})) == a_connection);
  table.connect(ranks({0, 1}));
  table.connect(ranks({1, 2}));
  CHECK(table.missing(ranks({0, 1, 2})) == a_connection);  // from 2 back to 0
  table.connect(ranks({0, 2}));
  CHECK(table.missing(ranks({0, 1, 2})) == nothing);
}

TEST_CASE("a communicator of its own has its own connections", "[connections]") {
  ConnectionTable table(Communicators::per_group);
  for (const auto& pair : {ranks({0, 1}), ranks({1, 2}), ranks({0, 2})}) table.connect(pair);
  CHECK(table.missing(ranks({0, 1, 2})) == everything);
  table.connect(ranks({0, 1, 2}));
  CHECK(table.missing(ranks({0, 1, 2})) == nothing);
}

TEST_CASE("the same ranks in another order share a communicator, not all neighbours", "[connections]") {
  ConnectionTable table(Communicators::per_group);
  table.connect(ranks({0, 1, 2, 3}));
  CHECK(table.missing(ranks({3, 2, 1, 0})) == nothing);       // a connection carries both directions
  CHECK(table.missing(ranks({0, 2, 1, 3})) == a_connection);  // 0 and 2 never talked
}

TEST_CASE("a rank alone talks to nobody", "[connections]") {
  for (const Communicators way : {Communicators::one, Communicators::per_group}) {
    ConnectionTable table(way);
    CHECK(table.missing(ranks({5})) == nothing);
    table.connect(ranks({5}));
    CHECK(table.groups() == 0);
    CHECK(table.most_peers() == 0);
    CHECK(table.most_connections() == 0);
    CHECK(table.connections(HdpRank(5)) == 0);
  }
}

TEST_CASE("peers are counted once, connections once a communicator", "[connections]") {
  // Rank 1 talks to 0 in both groups, to 2 in the second alone: two peers. Two communicators hold three connections.
  ConnectionTable one(Communicators::one);
  ConnectionTable each(Communicators::per_group);
  for (ConnectionTable* table : {&one, &each}) {
    for (int time = 0; time < 2; ++time) {
      table->connect(ranks({0, 1}));
      table->connect(ranks({0, 1, 2, 3}));
    }
    CHECK(table->groups() == 2);
    CHECK(table->most_peers() == 2);
  }
  CHECK(one.connections(HdpRank(1)) == 2);
  CHECK(one.most_connections() == 2);
  CHECK(each.connections(HdpRank(1)) == 3);
  CHECK(each.connections(HdpRank(3)) == 2);
  CHECK(each.most_connections() == 3);
}

}  // namespace
}  // namespace hdpsim
