#pragma once

#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

#include "sim/base/id.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// How the ranks of a group come to talk to each other.
enum class Communicators {
  one,        ///< One for the whole pool; a ring is grouped sends and receives in it.
  per_group,  ///< One for each distinct group of ranks, kept after its first use.
};

/// What a study says of connections.
struct ConnectionOptions {
  Communicators communicators = Communicators::one;
  bool cold = false;  ///< The first step of a job: nobody has talked to anybody. Otherwise every connection is there.
};

/// Which ranks have talked to each other. A connection joins two neighbours of a ring within one communicator, whatever
/// the direction of the message, and stays. Devices of different shards never talk, so that what is said of a rank
/// holds for each of its devices. A group of one rank needs nothing. A group of n ranks is looked up in O(n log
/// groups), in any order of its ranks in O(n log n) more.
class ConnectionTable {
 public:
  explicit ConnectionTable(Communicators communicators) : communicators_(communicators) {}

  struct Missing {
    bool communicator = false;
    bool connection = false;  ///< At least one of the ring's.
    friend bool operator==(const Missing&, const Missing&) = default;
  };
  /// What a ring over the group, in this order, still lacks.
  [[nodiscard]] Missing missing(const std::vector<HdpRank>& group) const;
  /// From now on it lacks nothing.
  void connect(const std::vector<HdpRank>& group);

  /// Distinct sets of at least two ranks that were connected.
  [[nodiscard]] std::int64_t groups() const { return static_cast<std::int64_t>(groups_.size()); }
  /// The largest number of ranks that one rank talks to.
  [[nodiscard]] std::int64_t most_peers() const;
  /// Connections of a rank, each with channels of its own: as many as its peers within one communicator, more if it has
  /// the same peer in several.
  [[nodiscard]] std::int64_t connections(HdpRank rank) const;
  [[nodiscard]] std::int64_t most_connections() const;

 private:
  struct Connection {
    std::uint32_t communicator;
    HdpRank low;
    HdpRank high;
    friend bool operator==(const Connection&, const Connection&) = default;
  };
  struct Hash {
    std::size_t operator()(const Connection& connection) const noexcept;
  };
  using Group = std::vector<HdpRank>;  // sorted

  [[nodiscard]] static Connection connection_at(const std::vector<HdpRank>& group, std::size_t hop,
                                                std::uint32_t communicator);
  void add(const Connection& connection, std::vector<std::int64_t>& counts);

  Communicators communicators_;
  std::map<Group, std::uint32_t> groups_;       // their communicators, from 1 on
  std::unordered_set<Connection, Hash> known_;  // communicator 0: of any communicator
  std::vector<std::int64_t> peers_;             // by rank
  std::vector<std::int64_t> connections_;       // by rank; unused with one communicator
};

/// After all groups of a plan have talked, whatever the order. O(n log n), n the sum of the groups' sizes.
[[nodiscard]] ConnectionTable connections_of(const Plan& plan, Communicators communicators);

}  // namespace hdpsim
