#pragma once

#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

#include "sim/base/id.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// The communicators through which the ranks of a group talk to each other.
enum class Communicators {
  one,        ///< One for the whole pool; a ring is grouped sends and receives in it.
  per_group,  ///< One for each distinct group of ranks, kept after its first use.
};

/// The settings of a study for connections.
struct ConnectionOptions {
  Communicators communicators = Communicators::one;
  /// True in the first step of a job, where no rank has talked to another. Otherwise every connection exists.
  bool cold = false;
};

/// Which ranks have talked to each other. A connection joins two neighbours of a ring within one communicator, for both
/// directions, and persists. Devices of different shards never talk, so the figures of a rank hold for each of its
/// devices. A group of one rank needs no connection. A group of n ranks is looked up in O(n (log groups + log n)).
class ConnectionTable {
 public:
  explicit ConnectionTable(Communicators communicators) : communicators_(communicators) {}

  struct Missing {
    bool communicator = false;
    bool connection = false;  ///< At least one connection of the ring.
    friend bool operator==(const Missing&, const Missing&) = default;
  };
  /// What a ring over the group, in this order, still lacks.
  [[nodiscard]] Missing missing(const std::vector<HdpRank>& group) const;
  /// Creates what a ring over the group lacks.
  void connect(const std::vector<HdpRank>& group);

  /// The number of distinct sets of at least two ranks that were connected.
  [[nodiscard]] std::int64_t groups() const { return static_cast<std::int64_t>(groups_.size()); }
  /// The largest number of ranks that one rank talks to.
  [[nodiscard]] std::int64_t most_peers() const;
  /// Connections of a rank, each with its own channels: one per peer within one communicator; more if several
  /// communicators contain the same peer.
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

/// The connections after all groups of a plan have talked, in any order. O(n log n), n the sum of the groups' sizes.
[[nodiscard]] ConnectionTable connections_of(const Plan& plan, Communicators communicators);

}  // namespace hdpsim
