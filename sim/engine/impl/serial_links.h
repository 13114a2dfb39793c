#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The links of a step on which two ring messages never overlap.
///
/// A worker posts an exchange when its previous one has ended, and an exchange ends when the message to the next rank
/// and the message from the previous rank have both arrived. Therefore a worker sends its messages one after another,
/// whatever rings they belong to, and receives them one after another too. A link is serial if all messages over it
/// have the same sender, or all have the same receiver, and no message between stages uses it: two GPUs of a rank may
/// share a NIC, and many rings a link between nodes if only one pair of neighbours uses it at a time.
///
/// A message shares serial links with the other shards of its rank only, so that its time is known when it begins.
class SerialLinks {
 public:
  /// For a job that has the network to itself. O(hops of all rings and stages x shards).
  SerialLinks(const Program& program, const Machine& machine);

  /// Makes a hop of one of the step's rings private if all of its links are serial. `alone` is then the rate of its
  /// slowest shard while all shards send.
  void make_private(Hop& hop) const;

 private:
  /// The workers whose messages use a link.
  struct Users {
    static constexpr std::uint32_t nobody = UINT32_MAX;
    static constexpr std::uint32_t several = UINT32_MAX - 1;
    std::uint32_t sender = nobody;  ///< Worker index, `nobody` or `several`, like the receiver.
    std::uint32_t receiver = nobody;
  };

  void add_rings(const Program& program);
  void add_stage_messages(const Program& program);
  void add(const Hop& hop, std::uint32_t sender, std::uint32_t receiver);
  [[nodiscard]] bool is_serial(LinkId link) const;

  const Machine& machine_;
  std::vector<Users> users_;  // by LinkId
};

}  // namespace hdpsim
