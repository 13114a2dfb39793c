#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/impl/job_port.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The messages of rings in the exact fidelity. An exchange is a grouped send/recv: message n over a hop starts when
/// both its sender and its receiver have posted exchange n, and exchange n of a rank ends when the messages of both its
/// hops have arrived. A message over private links takes its time without other traffic; other messages are flows.
class ExchangeBoard {
 public:
  ExchangeBoard(const Pipeline& pipeline, JobFlows& flows, JobQueue& queue);
  ~ExchangeBoard();
  ExchangeBoard(const ExchangeBoard&) = delete;
  ExchangeBoard& operator=(const ExchangeBoard&) = delete;

  /// The hops of a pass's rings, by sender (ring_hops).
  void open(PassId id, std::vector<Hop> hops, const GroupSharing& sharing);
  void close(PassId id);

  /// The `index`-th rank of the group posts its next exchange, of `bytes`.
  void post(PassId id, std::size_t index, Bytes bytes);
  /// The number of exchanges of this rank that have ended in both directions.
  [[nodiscard]] std::uint32_t ended(PassId id, std::size_t index) const;
  /// When the message that the rank received last began; its latency comes after that.
  [[nodiscard]] Instant last_received_began(PassId id, std::size_t index) const;

  /// A rank of a group.
  struct Member {
    PassId pass;
    std::size_t index = 0;
  };
  /// Handles an event of the board. Returns the two ranks whose exchanges may have ended, or none if no message has
  /// arrived.
  [[nodiscard]] std::vector<Member> handle(const Event& event);
  /// Events of the board have tags from first_tag to 2 x first_tag - 1.
  static constexpr std::uint32_t first_tag = 1U << 30;
  /// The rate of a flow with this key has changed, so that its message arrives at another time.
  void rate_changed(std::uint32_t key) { set_rate(key); }

 private:
  struct Lane;
  struct Place {
    PassId pass;
    std::uint32_t index;
  };

  [[nodiscard]] Lane& lane(PassId id, std::size_t index);
  [[nodiscard]] const Lane& lane(PassId id, std::size_t index) const;
  [[nodiscard]] std::size_t ranks_of(PassId id) const { return pipeline_.micro_batch(id).group.size(); }
  void try_start(PassId id, std::size_t index);
  void begin_flow(std::uint32_t slot);
  void set_rate(std::uint32_t slot);
  void arrive(Lane& hop);

  const Pipeline& pipeline_;
  JobFlows& flows_;
  JobQueue& queue_;
  std::vector<std::uint32_t> first_slot_;  // by pass: the first of its lanes, which are consecutive
  std::vector<Place> places_;              // by slot
  std::vector<Lane> lanes_;                // by slot
  std::vector<GroupSharing> sharing_;      // by pass
};

}  // namespace hdpsim
