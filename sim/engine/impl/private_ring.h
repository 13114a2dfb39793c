#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// A pass in the exact fidelity whose rings share no link. Nothing outside its group can slow it down, so that the
/// begins of its ranks determine all other times. Every instruction of every rank and every message gets the same time
/// as with events, to the picosecond, but each instruction is computed for all ranks at once and without a queue. Where
/// an iteration of a loop moves all times by one amount, those that follow it are not run but taken from it. One object
/// runs once.
class PrivateRing {
 public:
  /// `speeds` by rank of the group. `hops` is empty for a group of one. All must outlive the object.
  PrivateRing(const PricedProgram& priced, const std::vector<Hop>& hops, const std::vector<double>& speeds);

  struct Outcome {
    std::vector<Instant> ends;      ///< By rank of the group.
    std::vector<Breakdown> booked;  ///< By rank of the group: the time from its begin to its end.
    std::uint64_t events = 0;       ///< Instructions and messages that ended.
  };
  /// `begins` by rank of the group. O(instructions x iterations x ranks) for the iterations until a loop is steady:
  /// about three of those with the same instructions, unless copies or slow devices take longer to settle.
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
  using Streams = std::array<bool, stream_count>;
  /// What has happened so far, from which, with the ends of the kept iterations, all later times follow.
  struct Course {
    std::array<Row, stream_count> free;  ///< When each stream has ended what it has run.
    std::array<Exchange, remembered_exchanges> exchanges;
    std::size_t next_exchange = 0;
    std::vector<Breakdown> kernels;  ///< By speed.
    std::vector<Breakdown> waits;    ///< By rank.
    std::uint64_t events = 0;
  };

  void run_block(std::size_t block);
  /// Runs the iterations before `end`, in all of which the same instructions are active.
  void run_alike(std::int64_t end);
  void run_iteration();
  /// By how much the last iteration has moved every time that can still matter, where it has moved all by the same: the
  /// iterations that follow will do so, too. `busy`: the streams with an active instruction.
  [[nodiscard]] std::optional<Duration> steady_move(const Streams& busy);
  [[nodiscard]] bool ends_moved(Duration move) const;
  [[nodiscard]] bool exchanges_moved(Duration move) const;
  /// Whether a time of a rank is as much later than one iteration ago, or too early to matter in both.
  [[nodiscard]] bool has_moved(Instant before, Instant now, Duration move, std::size_t rank) const;
  /// Takes `iterations` iterations, at least kept_iterations_, as run that are like the last one.
  void skip(std::int64_t iterations, Duration move, const Streams& busy);
  void execute(std::size_t index);
  void exchange(const Instruction& instruction, std::span<Instant> ended);
  void run_kernel(std::size_t index, std::span<Instant> ended);
  void run_on_device(std::size_t index, std::span<Instant> ended);
  /// The ranks of a collective begin it when the last of them comes: changes starts_.
  void meet(const SharingCollective& collective);
  /// The same for a collective that overlaps with kernels.
  void meet_overlapped(std::size_t index, std::span<Instant> ended);
  void end_block();
  /// Computes when each rank can start an instruction: when its stream is free and its dependencies have ended.
  void find_starts(const Instruction& instruction);
  [[nodiscard]] Activity waited_for(std::size_t rank, const Instruction& instruction);
  void book_wait(std::size_t rank, Instant until, Activity waited_for);
  [[nodiscard]] Duration peer_wait(std::size_t rank, Instant since, Instant until) const;
  [[nodiscard]] const std::vector<Duration>& transfers(std::uint32_t work);
  [[nodiscard]] Exchange& new_exchange();
  /// The ends of an instruction, by rank, in the current iteration (0) or one of those before it.
  [[nodiscard]] std::span<Instant> ends_of(std::int64_t iterations_back, std::size_t index);
  [[nodiscard]] std::span<const Instant> ends_of(std::int64_t iterations_back, std::size_t index) const;

  const PricedProgram& priced_;
  const std::vector<Hop>& hops_;
  GroupSharing sharing_;
  std::size_t ranks_;
  std::vector<double> speeds_;           // distinct
  std::vector<std::uint32_t> speed_of_;  // by rank: index into speeds_

  std::size_t block_ = 0;
  std::int64_t iteration_ = 0;
  std::int64_t kept_iterations_ = 1;  // iterations to whose ends dependencies may refer
  std::int64_t turn_ = 0;             // iterations of the block that were run, not skipped
  std::vector<Instant> ends_;         // by kept iteration, instruction and rank
  Course course_;
  Course before_;  // the course before the last iteration, where that is looked at
  Row floor_;      // no later start lies before it
  Row starts_;
  Row came_;                                      // to a collective
  Row arrivals_;                                  // of the messages, by sender
  std::vector<Duration> times_;                   // of an instruction, by speed
  std::vector<std::vector<Duration>> transfers_;  // by work and sender; filled on first use
};

}  // namespace hdpsim
