#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// A pass in the exact fidelity whose rings share no link. Nothing outside its group can slow it down, so that the
/// begins of its ranks determine all other times. Every instruction of every rank and every message gets the same time
/// as with events, to the picosecond, but each instruction is computed for all ranks at once and without a queue. One
/// object runs once.
class PrivateRing {
 public:
  /// `speeds` by rank of the group. `hops` is empty for a group of one. All must outlive the object.
  PrivateRing(const PricedProgram& priced, const std::vector<Hop>& hops, const std::vector<double>& speeds);

  struct Outcome {
    std::vector<Instant> ends;      ///< By rank of the group.
    std::vector<Breakdown> booked;  ///< By rank of the group: the time from its begin to its end.
    std::uint64_t events = 0;       ///< Instructions and messages that ended.
  };
  /// `begins` by rank of the group. O(instructions x iterations x ranks).
  [[nodiscard]] Outcome run(const std::vector<Instant>& begins);

 private:
  using Row = std::vector<Instant>;  ///< By rank of the group.
  /// One exchange, by rank: when the rank posted it, when the message to the rank began, and when both its messages had
  /// arrived.
  struct Exchange {
    Row posted;
    Row began;
    Row ended;
  };
  /// A rank only waits for the exchange that its next kernel needs and, after the last kernel, for the two exchanges
  /// that follow.
  static constexpr std::size_t remembered_exchanges = 8;
  static constexpr auto compute = static_cast<std::size_t>(Stream::compute);

  void run_block(std::size_t block);
  void execute(std::size_t index);
  void exchange(const Instruction& instruction, Row& ended);
  void run_kernel(std::size_t index, Row& ended);
  void run_on_device(std::size_t index, Row& ended);
  /// The ranks of a collective begin it when the last of them comes: changes starts_.
  void meet(const SharingCollective& collective);
  /// The same for a collective that overlaps with kernels.
  void meet_overlapped(std::size_t index, Row& ended);
  void end_block();
  /// Computes when each rank can start an instruction: when its stream is free and its dependencies have ended.
  void find_starts(const Instruction& instruction);
  [[nodiscard]] Activity waited_for(std::size_t rank, const Instruction& instruction);
  void book_wait(std::size_t rank, Instant until, Activity waited_for);
  [[nodiscard]] Duration peer_wait(std::size_t rank, Instant since, Instant until) const;
  [[nodiscard]] const std::vector<Duration>& transfers(std::uint32_t work);
  [[nodiscard]] Row& ends_of(std::int64_t iteration, std::size_t index);

  const PricedProgram& priced_;
  const std::vector<Hop>& hops_;
  GroupSharing sharing_;
  std::size_t ranks_;
  std::vector<double> speeds_;           // distinct
  std::vector<std::uint32_t> speed_of_;  // by rank: index into speeds_

  std::size_t block_ = 0;
  std::int64_t iteration_ = 0;
  std::int64_t kept_iterations_ = 1;  // iterations to whose ends dependencies may refer
  std::array<Row, stream_count> free_;
  std::vector<Row> ends_;  // by kept iteration and instruction
  Row starts_;
  Row came_;                                      // to a collective
  Row arrivals_;                                  // of the messages, by sender
  std::vector<std::vector<Duration>> transfers_;  // by work and sender; filled on first use
  std::array<Exchange, remembered_exchanges> exchanges_;
  std::size_t next_exchange_ = 0;
  std::vector<Breakdown> kernels_;  // by speed
  Outcome outcome_;
};

}  // namespace hdpsim
