#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The links of a step on which no two messages of rings ever meet.
///
/// A worker posts an exchange when its last one has ended, and that ends when its message to the next rank and the one
/// from the rank before have both arrived. So what one worker sends goes out one after the other, whatever ring it is
/// in, and what one worker receives comes in so. A link is serial if all messages over it have one sender, or all have
/// one receiver, and no message between stages shares it: two GPUs of a rank may share a NIC, and many rings a link
/// between nodes, if one pair of neighbours at a time uses it.
///
/// A message over serial links finds them idle but for the other shards of its rank. Its time is known when it begins.
class SerialLinks {
 public:
  /// Of a job that has the network to itself. O(hops of all rings and stages x shards).
  SerialLinks(const Program& program, const Machine& machine);

  /// A hop of one of the step's rings becomes private if all of its links are serial. `alone` is then the rate of its
  /// slowest shard beside the others.
  void make_private(Hop& hop) const;

 private:
  /// Who puts messages on a link.
  struct Users {
    static constexpr std::uint32_t nobody = UINT32_MAX;
    static constexpr std::uint32_t several = UINT32_MAX - 1;
    std::uint32_t sender = nobody;  ///< Worker.
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
